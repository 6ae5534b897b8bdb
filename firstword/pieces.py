"""The pieces that a turn is published in, how they are spoken, errors of a finished turn."""

from __future__ import annotations

from dataclasses import dataclass

from firstword.errors import FirstwordError

PIECE_CHARACTERS = 4_096  # some fifty sentences: what is queued is counted in between


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a turn is spoken, if not like its session; None: as the session."""

    voice: str | None = None
    speed: float | None = None
    lang: str | None = None


AS_THE_SESSION = Manner()


class TurnOver(FirstwordError):
    """The turn has ended or was cancelled: it takes no more text."""

    def __init__(self, turn: str) -> None:
        super().__init__("turn_over", f"turn {turn} is over: begin another one")


class TurnCut(FirstwordError):
    """The server ended the turn: too much waited, its memory was short, or no text came for too
    long."""

    def __init__(self, turn: str, reason: str) -> None:
        super().__init__(
            reason,
            f"turn {turn} was ended by the server ({reason}): what came after is not spoken. "
            "Publish it in another turn",
            retryable=reason != "abandoned",
        )


def split(piece: str) -> list[str]:
    """Split a piece into parts small enough for one entry each."""
    try:
        if len(piece) <= PIECE_CHARACTERS:
            piece.encode("utf-8", "surrogateescape")
            return [piece] if piece else []
    except UnicodeEncodeError as error:
        raise FirstwordError(
            "bad_text", "the text holds half of a surrogate pair: join the pieces before"
        ) from error
    return [
        part
        for start in range(0, len(piece), PIECE_CHARACTERS)
        for part in split(piece[start : start + PIECE_CHARACTERS])
    ]
