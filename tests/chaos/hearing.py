"""What a listener heard of one session, held against what was said to it.

Pure: events in, a tally out. Nothing is believed but the samples themselves: each says where it
belongs (`tests.doubles.stamps`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from firstword import messages as m
from firstword.ids import id_key
from firstword.listener import Event
from tests.doubles.stamps import Stamps, named_in, read, stamp


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence that was published: its number in the session, its length in samples."""

    number: int
    samples: int


@dataclass(slots=True)
class Turn:
    """One turn that was published. Without a name it is known by its first sentence."""

    sentences: tuple[Sentence, ...]
    name: str | None = None
    opened_ms: int = 0
    """When its first text was accepted, on the server's clock; 0: not yet."""
    cancels: int = 0
    """How many cancels of it were published."""


@dataclass(slots=True)
class Tally:
    """Samples, unless said otherwise. All from `lost` to `odd` must be 0."""

    sessions: int = 0
    segments: int = 0
    expected: int = 0
    received: int = 0
    lost: int = 0
    repeated: int = 0
    reordered: int = 0
    crossed: int = 0
    endless: int = 0
    """Turns without an end."""
    odd: int = 0
    """Broken promises that are not about samples: an event out of place, a wrong receipt."""
    restarts: int = 0
    errors: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another one in."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    @property
    def wrong(self) -> bool:
        """Whether anything is not as it was promised."""
        return any((self.lost, self.repeated, self.reordered, self.crossed, self.endless, self.odd))


@dataclass(slots=True, eq=False)
class _Segment:
    turn: str
    n: int
    sentence: int
    session: int
    committed_ms: int
    losses: int
    """How often the server had lost its data when it began."""
    pieces: list[Stamps] = field(default_factory=list)
    length: int = 0
    done: int | None = None
    """Its length as `segment_done` tells it."""


class Hearing:
    """Give it every event of one session, in the order they came."""

    def __init__(self, session: int) -> None:
        self.restarts = 0
        self.errors: Counter[str] = Counter()
        self.ends: dict[str, m.TurnDone | m.TurnCancelled] = {}
        self.receipts: Counter[str] = Counter()
        self._session = session
        self._turn_of: dict[int, str] = {}
        self._segments: list[_Segment] = []
        self._numbered: dict[int, _Segment] = {}
        self._losses = 0
        self._odd: list[str] = []
        self._misplaced = 0
        self._came: list[tuple[int, _Segment]] = []

    def feed(self, event: Event) -> None:
        """Take the next event."""
        message = event.message
        turn = getattr(message, "turn", None)
        # A receipt, or what a publisher is asked for, may come when nothing is left to be said.
        for_publishers = isinstance(message, m.ErrorEvent) and message.n is None
        if turn in self.ends and not for_publishers and not isinstance(message, m.TurnCancelled):
            self._odd.append(f"{type(message).__name__} after the end of its turn")
        match message:
            case m.SegmentStarted():
                self._start(message, id_key(event.id)[0])
            case m.AudioChunk():
                self._hear(message, id_key(event.id)[0])
            case m.SegmentRestarted(n=n):
                self.restarts += 1
                self._numbered[n].pieces.clear()
                self._numbered[n].length = 0
            case m.SegmentDone(n=n, samples=samples):
                self._finish(n, samples)
            case m.TurnDone():
                self.ends[message.turn] = message
            case m.TurnCancelled():
                self.receipts[message.turn] += 1
                if not message.already_done:
                    self.ends.setdefault(message.turn, message)
            case m.ErrorEvent(code=code):
                self.errors[code] += 1
                self._losses += code == "state_lost"
            case m.Gap():
                self._odd.append("a gap")
            case _:  # a turn's start and the session's end say nothing about samples
                pass

    def _start(self, message: m.SegmentStarted, at_ms: int) -> None:
        previous = self._segments[-1] if self._segments else None
        # A server that lost everything counts anew.
        if previous and previous.losses == self._losses and message.n <= previous.n:
            self._odd.append(f"segment {message.n} started after {previous.n}")
        session, sentence = named_in(message.text)
        segment = _Segment(
            message.turn,
            message.n,
            sentence,
            session,
            id_key(message.committed_at)[0],
            self._losses,
        )
        self._segments.append(segment)
        self._numbered[message.n] = segment
        self._turn_of.setdefault(sentence, message.turn)
        self._came.append((at_ms, segment))

    def _hear(self, chunk: m.AudioChunk, at_ms: int) -> None:
        segment = self._numbered.get(chunk.n)
        if segment is None:
            self._odd.append("audio of a segment that has not started")
            return
        samples: Stamps = np.frombuffer(chunk.data, "<i2").astype(np.int16)
        if chunk.offset != segment.length:
            self._misplaced += len(samples)
        segment.pieces.append(samples)
        segment.length += len(samples)
        self._came.append((at_ms, segment))

    def _finish(self, n: int, samples: int) -> None:
        segment = self._numbered.get(n)
        if segment is None or segment.done is not None or segment.length != samples:
            self._odd.append("a segment's end that does not fit what came of it")
        if segment is not None:
            segment.done = samples

    def name_of(self, turn: Turn) -> str:
        """The turn's name, '' while an unnamed one has not been heard."""
        return turn.name or self._turn_of.get(turn.sentences[0].number, "")

    # -- the tally --------------------------------------------------------------------------------

    def tally(self, turns: Sequence[Turn]) -> Tally:
        """What came, held against what was published."""
        tally = Tally(sessions=1, restarts=self.restarts, errors=self.errors.total())
        tally.reordered += self._misplaced
        heard = self._segments
        known = {s.number: turn for turn in turns for s in turn.sentences}
        for segment in heard:
            tally.segments += 1
            tally.received += segment.length
            if segment.session != self._session or segment.sentence not in known:
                tally.crossed += segment.length
        for turn in turns:
            numbers = {s.number for s in turn.sentences}
            self._check_turn(turn, [s for s in heard if s.sentence in numbers], tally)
        _check_wholeness(heard, tally)
        tally.odd += len(self._odd)
        tally.problems += [f"session {self._session}: {what}" for what in self._odd]
        return tally

    def _check_turn(self, turn: Turn, heard: list[_Segment], tally: Tally) -> None:
        before = (tally.lost, tally.repeated, tally.reordered, tally.crossed)
        name = self.name_of(turn)
        end = self.ends.get(name)
        if end is None and turn.cancels and not turn.opened_ms:
            return  # stopped before any of it was published
        if end is None:
            tally.endless += 1
            tally.problems.append(f"session {self._session}: turn {name!r} has no end")
        if self.receipts[name] != turn.cancels:
            tally.odd += 1
            tally.problems.append(
                f"session {self._session}: {turn.cancels} cancels of {name!r}, "
                f"{self.receipts[name]} receipts"
            )
        spoken = {segment.sentence: segment for segment in reversed(heard)}
        cancelled = end if isinstance(end, m.TurnCancelled) else None
        if cancelled is not None:
            self._check_receipt(cancelled, heard, tally)
        for sentence in turn.sentences:
            segment = spoken.get(sentence.number)
            length = 0 if segment is None else segment.length
            wanted = length if cancelled is not None else sentence.samples
            tally.expected += wanted
            if segment is not None:
                self._check_samples(segment, wanted, tally)
                if segment.done is None and cancelled is None:
                    tally.problems.append(f"session {self._session}: a segment has no end")
                    tally.odd += 1
            else:
                tally.lost += wanted
        extra = [segment for segment in heard if spoken[segment.sentence] is not segment]
        tally.repeated += sum(segment.length for segment in extra)
        order = [segment.sentence for segment in heard]
        if order != sorted(order):
            tally.reordered += sum(segment.length for segment in heard)
        if before != (tally.lost, tally.repeated, tally.reordered, tally.crossed):
            came = [(s.n, s.sentence, s.length, s.done) for s in heard]
            wants = [(s.number, s.samples) for s in turn.sentences]
            tally.problems.append(
                f"session {self._session}: turn {name!r} wants {wants}, heard {came} (n, sentence, "
                f"samples, done), errors {dict(self.errors)}, ended with {end}"
            )

    def _check_receipt(self, receipt: m.TurnCancelled, heard: list[_Segment], tally: Tally) -> None:
        """`sent` is all that had come, and what had come is all there is."""
        done = sum(segment.done is not None for segment in heard)
        last = heard[-1] if heard else None
        came = {
            "segments": done,
            "n": 0 if last is None else last.n,
            "samples": 0 if last is None else last.length,
        }
        if came != receipt.sent:
            tally.odd += 1
            told = f"receipt tells {receipt.sent}, what came is {came}"
            tally.problems.append(f"session {self._session}: {told}")

    def _check_samples(self, segment: _Segment, wanted: int, tally: Tally) -> None:
        samples = np.concatenate([np.zeros(0, np.int16), *segment.pieces])
        right = stamp(self._session, segment.sentence, 0, wanted)
        if np.array_equal(samples, right):
            return
        places = read(samples)
        here = (self._session, segment.sentence)
        own = [place for place in places if place is not None and place[:2] == here]
        tally.crossed += 4 * sum(p is not None and p.session != self._session for p in places)
        tally.reordered += 4 * _out_of_order(p.fours for p in own)
        tally.reordered += 4 * sum(
            p is not None and p.session == self._session and p.sentence != segment.sentence
            for p in places
        )
        tally.reordered += sum(p is None for p in places)
        distinct = {p.fours for p in own}
        tally.repeated += 4 * (len(own) - len(distinct)) + max(0, len(samples) - wanted)
        tally.lost += max(0, wanted - 4 * len(distinct))

    # -- how long it was silent -------------------------------------------------------------------

    def silence_of_gateway(self, since_ms: int) -> int | None:
        """Milliseconds from a moment to the next audio, if a segment was waiting then."""
        after = next(((at, s) for at, s in self._came if at > since_ms), None)
        return after[0] - since_ms if after and after[1].committed_ms <= since_ms else None

    def silence_of_segmenter(self, since_ms: int, turns: Iterable[Turn]) -> int | None:
        """Milliseconds from a moment to the next segment, if a turn was being written then."""
        opened = {turn.name: turn.opened_ms for turn in turns if turn.opened_ms}
        for segment in self._segments:
            if segment.committed_ms > since_ms:
                written = opened.get(segment.turn, since_ms + 1) <= since_ms
                return segment.committed_ms - since_ms if written else None
        return None


def _out_of_order(fours: Iterable[int]) -> int:
    highest, count = -1, 0
    for each in fours:
        count += each < highest
        highest = max(highest, each)
    return count


def _check_wholeness(heard: list[_Segment], tally: Tally) -> None:
    """Turns are spoken whole: no turn comes back after another one."""
    left: set[str] = set()
    previous = ""
    for segment in heard:
        if segment.turn != previous:
            left.add(previous)
            previous = segment.turn
        if segment.turn in left:
            tally.reordered += segment.length
