"""What a listener has heard of a session, so that nothing reaches it twice.

After the server lost or rewound its state a turn may be spoken again, with other numbers. Audio is
then identified by its turn and its place in the text, not by `n`. Pure: messages in, messages out.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TypeVar

from firstword import messages as m

OVER_KEPT = 128
"""Ended turns kept: fewer than the segmenter keeps, so that it refuses a name before we do."""
OPEN_KEPT = 64
SAMPLE_BYTES = 2

Numbered = TypeVar(
    "Numbered",
    m.AudioChunk,
    m.SegmentRestarted,
    m.SegmentDone | m.ErrorEvent,
)


@dataclass(slots=True)
class _Segment:
    """The segment being heard. `start` is unknown (-1) if listening began inside it."""

    n: int
    start: int = -1
    end: int = 0
    samples: int = 0


@dataclass(slots=True)
class _Turn:
    announced: bool = False
    upto: int = 0
    """Characters whose segments are over."""
    segment: _Segment | None = None
    spoken_as: int | None = None
    """The new number of the segment being heard, if it comes again under another one."""
    muted: set[int] = field(default_factory=set)
    """Numbers of segments that are over: anything more of them was heard before."""


@dataclass(frozen=True, slots=True)
class Position:
    """How much of a turn was heard (`resume`, docs/PROTOCOL.md). `end`: None between segments."""

    turn: str
    start: int
    samples: int
    end: int | None = None


@dataclass(slots=True)
class Heard:
    """Give it every event in order; it returns what is new."""

    _turns: dict[str, _Turn] = field(default_factory=dict)
    _over: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def take(self, message: m.Audio) -> m.Audio | None:
        """The event for the listener: as it is, or without what was heard before, or None."""
        if isinstance(message, m.Gap | m.Closed) or message.turn is None:
            return message
        if isinstance(message, m.ErrorEvent) and message.n is None:
            return message  # about the turn, or about a cancel of it
        if isinstance(message, m.TurnCancelled):  # the answer to a cancel, also to a second one
            for stopped in message.stopped:
                self._end(stopped)
            return message
        name = message.turn
        if name in self._over:
            return None
        if isinstance(message, m.TurnDone):
            self._end(name)
            return message
        turn = self._turn(name)
        match message:
            case m.TurnStarted():
                repeated, turn.announced = turn.announced, True
                return None if repeated else message
            case m.SegmentStarted():
                return _started(turn, message)
            case m.AudioChunk():
                return _chunk(turn, message)
            case m.SegmentRestarted():
                return _restarted(turn, message)
            case _:
                return _over(turn, message)

    def positions(self) -> list[Position]:
        """How much was heard of the turns that are not over, and of the last one that is."""
        found = [_position(name, turn) for name, turn in self._turns.items()]
        last = next(reversed(self._over), None)
        return found if last is None else [Position(last, self._over[last], 0), *found]

    def _turn(self, name: str) -> _Turn:
        if name not in self._turns:
            self._turns[name] = _Turn()
            if len(self._turns) > OPEN_KEPT:  # the ends of some were trimmed before we came
                del self._turns[next(iter(self._turns))]
        return self._turns[name]

    def _end(self, name: str) -> None:
        turn = self._turns.pop(name, None)
        if name not in self._over:
            self._over[name] = 0 if turn is None else turn.upto
            if len(self._over) > OVER_KEPT:
                self._over.popitem(last=False)


def _position(name: str, turn: _Turn) -> Position:
    segment = turn.segment
    if segment is None or segment.start < 0:
        return Position(name, turn.upto, 0)
    return Position(name, segment.start, segment.samples, segment.end)


def _started(turn: _Turn, message: m.SegmentStarted) -> m.SegmentStarted | None:
    segment = turn.segment
    turn.spoken_as = None
    if message.end <= turn.upto:
        turn.muted.add(message.n)
        return None
    turn.muted.discard(message.n)
    if segment is not None:
        if segment.start == message.start:
            turn.spoken_as = message.n
            return None
        if segment.start < 0 and segment.n == message.n:  # listening began inside it
            segment.start, segment.end = message.start, message.end
            return message
        if segment.end <= message.start:  # its end was never published
            turn.upto = max(turn.upto, segment.end)
    turn.segment = _Segment(message.n, message.start, message.end)
    return message


def _ours(turn: _Turn, n: int) -> _Segment | None:
    """The segment that is being heard, if `n` means it."""
    segment = turn.segment
    if segment is None:
        return None
    return segment if n in (segment.n, turn.spoken_as) else None


def _chunk(turn: _Turn, message: m.AudioChunk) -> m.AudioChunk | None:
    if message.n in turn.muted:
        return None
    segment = _ours(turn, message.n)
    if segment is None:
        segment = turn.segment = _Segment(message.n)
    known = segment.samples - message.offset
    if known >= len(message.data) // SAMPLE_BYTES > 0:
        return None
    segment.samples = message.offset + len(message.data) // SAMPLE_BYTES
    if known <= 0:
        return _numbered(message, segment)
    data = message.data[known * SAMPLE_BYTES :]
    return replace(message, n=segment.n, offset=message.offset + known, data=data)


def _restarted(turn: _Turn, message: m.SegmentRestarted) -> m.SegmentRestarted | None:
    if message.n in turn.muted:
        return None
    segment = _ours(turn, message.n)
    if segment is None:
        return message
    segment.samples = 0
    return _numbered(message, segment)


def _over(
    turn: _Turn, message: m.SegmentDone | m.ErrorEvent
) -> m.SegmentDone | m.ErrorEvent | None:
    """A segment is over."""
    if message.n is None or message.n in turn.muted:
        return None
    segment = _ours(turn, message.n)
    if segment is None:
        return message
    turn.upto = max(turn.upto, segment.end)
    turn.muted.add(message.n)
    turn.segment = turn.spoken_as = None
    return _numbered(message, segment)


def _numbered(message: Numbered, segment: _Segment) -> Numbered:
    """The message with the number by which the listener knows the segment."""
    return message if message.n == segment.n else replace(message, n=segment.n)
