"""What a turn is written in: pieces of text, how they are spoken, and why there can be no more."""

from __future__ import annotations

from dataclasses import dataclass

from firstword.errors import FirstwordError

PIECE_CHARACTERS = 4_096  # some fifty sentences: what is queued is counted in between


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a turn is spoken where it differs from its session; None: as the session."""

    voice: str | None = None
    speed: float | None = None
    lang: str | None = None


AS_THE_SESSION = Manner()


class TurnOver(FirstwordError):
    """The turn has ended or was cancelled: nothing can be said in it any more."""

    def __init__(self, turn: str) -> None:
        super().__init__("turn_over", f"turn {turn} is over: begin another one")


class TurnCut(FirstwordError):
    """The server ended the turn before we did: too much waits, it is full, or nothing came for too
    long."""

    def __init__(self, turn: str, reason: str) -> None:
        super().__init__(
            reason,
            f"turn {turn} was ended by the server ({reason}): what came after is not spoken. "
            "Publish it in another turn",
            retryable=reason != "abandoned",
        )


def split(piece: str) -> list[str]:
    """Parts small enough for one entry each."""
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
