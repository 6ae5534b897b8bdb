"""A publisher's open turns, kept to publish them again if the server loses them.

Pure: it is told what was published and what the session's events say, and answers with what to
publish again. A turn is kept until it is spoken or cancelled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import msgpack

from firstword import messages as m
from firstword.errors import FirstwordError

KEPT_CHARACTERS = 4_000_000
"""In all open turns of a session: some days of speech."""
NOT_TAKEN = ("server_full", "not_opened")
"""Errors that refuse a turn as a whole."""
REFUSALS = ("overloaded", *NOT_TAKEN)
"""Errors that end a turn: of an overloaded one what was taken is still spoken."""
PIECE_COST = 64
"""What a piece weighs beside its characters."""
SPOKEN_CHARACTERS = 100_000
"""Of turns that are over, in all: after a small rewind of the server the last of them are open."""
STOPPED_KEPT = 16
TRIES = 4
"""After this many tries a piece that is read but not taken is left: something else is wrong."""
NO_MORE = -1

Piece = m.Text | m.Flush | m.End


@dataclass(frozen=True, slots=True)
class Taken:
    """What a session's text side has taken of what was published to it.

    It is in fields of its own beside the state, stored in the same step.
    """

    turns: Mapping[str, int]
    """For each open turn the number of the piece it waits for; NO_MORE if it takes none."""
    finished: frozenset[str]
    """The last turns that are over."""
    cancels: frozenset[str]
    """Entry ids of the last cancels."""

    @classmethod
    def read(cls, values: Sequence[bytes | None]) -> Self:
        """From the values of the fields TAKEN_FIELDS."""
        turns, finished, cancels = ({} if v is None else msgpack.unpackb(v) for v in values)
        return cls(dict(turns), frozenset(finished), frozenset(cancels))


TAKEN_FIELDS = ("taken", "finished", "cancels")


@dataclass(slots=True)
class _Turn:
    pieces: list[Piece] = field(default_factory=list)
    weight: int = 0
    first_n: int = 0
    """Number of its first segment that an event named; 0 while none did."""
    missed_at: int = 0
    """The piece that the server waited for when some of the turn was found missing."""
    tries: int = 0

    def try_again(self, waits_for: int) -> bool:
        """Whether to publish it again, now that the server waits for piece `waits_for`."""
        self.tries = self.tries + 1 if waits_for == self.missed_at else 1
        self.missed_at = waits_for
        return self.tries <= TRIES


class Outbox:
    """The open turns of one publisher in one session, in the order of their first piece."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        self._spoken: dict[str, _Turn] = {}
        self._stopped: deque[str] = deque(maxlen=STOPPED_KEPT)
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
        """The turn is over: nothing of it will be needed again."""
        gone = self._turns.pop(turn, None)
        if gone is not None:
            self._weight -= gone.weight

    def clear(self) -> None:
        """All turns are over."""
        self._turns.clear()
        self._spoken.clear()
        self._weight = 0

    def has(self, turn: str) -> bool:
        """Whether the turn is open."""
        return turn in self._turns

    def take(self, message: m.Audio) -> list[Piece]:
        """Take an event of the session; returns what must be published again because of it."""
        match message:
            case m.TurnDone():
                self._remember(message.turn)
                self.forget(message.turn)
            case m.TurnCancelled():
                for name in message.stopped:
                    self.forget(name)
                    self._stopped.append(name)
            case m.Closed():
                self.clear()
            case m.SegmentStarted() | m.SegmentDone():
                self._number(message.turn, message.n)
            case m.ErrorEvent():
                return self._on_error(message)
            case _:
                pass
        return []

    def published(self) -> dict[str, Piece]:
        """The last piece of each open turn. Call it before asking the server what it has taken."""
        return {name: turn.pieces[-1] for name, turn in self._turns.items()}

    def is_missed(self, published: Mapping[str, Piece], taken: Taken) -> bool:
        """Whether some of this was not taken and must be published again. Counts the tries."""
        missed = False
        for name, piece in published.items():
            turn, waits_for = self._turns.get(name), taken.turns.get(name, 0)
            if turn is None or name in taken.finished or not _is_before(waits_for, piece):
                continue
            missed = turn.try_again(waits_for) or missed
        return missed

    def reopen(self, taken: Taken) -> list[Piece]:
        """After a rewind turns that were spoken may be open on the server again. They would wait
        for what is lost, and all later turns with them. Reopen them; returns what they lack."""
        undone = [name for name in self._spoken if name in taken.turns]
        turns = {name: self._spoken.pop(name) for name in undone}
        self._turns = {**turns, **self._turns}
        self._weight += sum(turn.weight for turn in turns.values())
        return [
            piece
            for name, turn in turns.items()
            for piece in turn.pieces
            if _is_before(taken.turns[name], piece)
        ]

    def stopped(self) -> list[str]:
        """The last stopped turns. Call it before asking the server what it has taken."""
        return list(dict.fromkeys(self._stopped))

    def revived(self, stopped: Iterable[str], taken: Taken) -> list[str]:
        """Those that the server has open again after a rewind. Each is returned once, until it is
        stopped again."""
        found = [name for name in stopped if name in taken.turns]
        kept = [name for name in self._stopped if name not in found]
        self._stopped = deque(kept, maxlen=STOPPED_KEPT)
        return found

    def everything(self) -> list[Piece]:
        """All open turns, each piece marked `again`: the server lost them."""
        return [
            replace(piece, again=turn.first_n or self._last_n + 1)
            for turn in self._turns.values()
            for piece in turn.pieces
        ]

    def _on_error(self, error: m.ErrorEvent) -> list[Piece]:
        turn = self._turns.get(error.turn or "")
        if turn is None or error.code != "gap":
            if error.code in NOT_TAKEN:
                self.forget(error.turn or "")  # none of it was taken
            return []
        if not error.expected:
            return self.everything()  # its beginning is lost, so probably other turns are too
        return list(_from(turn.pieces, error.expected))

    def _remember(self, name: str) -> None:
        turn = self._turns.get(name)
        if turn is None:
            return
        self._spoken[name] = turn
        while sum(spoken.weight for spoken in self._spoken.values()) > SPOKEN_CHARACTERS:
            del self._spoken[next(iter(self._spoken))]

    def _number(self, turn: str, n: int) -> None:
        self._last_n = max(self._last_n, n)
        kept = self._turns.get(turn)
        if kept is not None and not kept.first_n:
            kept.first_n = n


def _from(pieces: Iterable[Piece], expected: int) -> Iterable[Piece]:
    return (piece for piece in pieces if piece.seq is not None and piece.seq >= expected)


def _is_before(next_seq: int, piece: Piece) -> bool:
    """Whether a turn that waits for `next_seq` lacks this piece."""
    return next_seq != NO_MORE and piece.seq is not None and piece.seq >= next_seq


def _weight(piece: Piece) -> int:
    return PIECE_COST + (len(piece.text) if isinstance(piece, m.Text) else 0)
