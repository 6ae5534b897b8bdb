"""What a publisher keeps of its open turns, to publish it again when the server lost it.

Pure: it is told what was published and what the session's events say, and answers with what to
publish again. A turn is kept until it is spoken or cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from firstword import messages as m
from firstword.errors import FirstwordError

KEPT_CHARACTERS = 4_000_000
"""In all open turns of a session: some days of speech."""
REFUSALS = ("overloaded", "server_full")
"""Errors that end a turn: of an overloaded one what was taken is still spoken."""
PIECE_COST = 64
"""What a piece weighs beside its characters."""

Piece = m.Text | m.Flush | m.End


@dataclass(slots=True)
class _Turn:
    pieces: list[Piece] = field(default_factory=list)
    weight: int = 0
    first_n: int = 0
    """Number of its first segment that was told of; 0 while none was."""


class Outbox:
    """The open turns of one publisher in one session, in the order of their first piece."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        self._weight = 0
        self._last_n = 0

    @property
    def empty(self) -> bool:
        """Whether no turn is open."""
        return not self._turns

    def check(self, piece: Piece) -> None:
        """Raises FirstwordError `too_much` if this piece is too large to keep beside the others."""
        if self._weight + _weight(piece) > KEPT_CHARACTERS:
            raise FirstwordError(
                "too_much",
                f"the open turns of the session hold {KEPT_CHARACTERS} characters, and more is not "
                "kept: publish this when some of it is spoken, in a turn of its own",
                retryable=True,
            )

    def keep(self, piece: Piece) -> None:
        """This was published."""
        turn = self._turns.setdefault(piece.turn or "", _Turn())
        turn.pieces.append(piece)
        turn.weight += _weight(piece)
        self._weight += _weight(piece)

    def forget(self, turn: str) -> None:
        """The turn is over: nothing of it will be asked for."""
        gone = self._turns.pop(turn, None)
        if gone is not None:
            self._weight -= gone.weight

    def clear(self) -> None:
        """All turns are over."""
        self._turns.clear()
        self._weight = 0

    def has(self, turn: str) -> bool:
        """Whether the turn is open."""
        return turn in self._turns

    def take(self, message: m.Audio) -> list[Piece]:
        """An event of the session; returns what it asks to be published again."""
        match message:
            case m.TurnDone():
                self.forget(message.turn)
            case m.TurnCancelled():
                for name in message.stopped:
                    self.forget(name)
            case m.Closed():
                self.clear()
            case m.SegmentStarted() | m.SegmentDone():
                self._number(message.turn, message.n)
            case m.ErrorEvent():
                return self._on_error(message)
            case _:
                pass
        return []

    def everything(self) -> list[Piece]:
        """All that is kept, marked: the server lost it."""
        return [
            replace(piece, again=turn.first_n or self._last_n + 1)
            for turn in self._turns.values()
            for piece in turn.pieces
        ]

    def _on_error(self, error: m.ErrorEvent) -> list[Piece]:
        turn = self._turns.get(error.turn or "")
        if turn is None or error.code != "gap":
            if error.code == "server_full":
                self.forget(error.turn or "")  # none of it was taken
            return []
        if not error.expected:
            return self.everything()  # its beginning is lost: likely not it alone
        return list(_from(turn.pieces, error.expected))

    def _number(self, turn: str, n: int) -> None:
        self._last_n = max(self._last_n, n)
        kept = self._turns.get(turn)
        if kept is not None and not kept.first_n:
            kept.first_n = n


def _from(pieces: Iterable[Piece], expected: int) -> Iterable[Piece]:
    return (piece for piece in pieces if piece.seq is not None and piece.seq >= expected)


def _weight(piece: Piece) -> int:
    return PIECE_COST + (len(piece.text) if isinstance(piece, m.Text) else 0)
