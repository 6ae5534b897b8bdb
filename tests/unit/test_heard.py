"""What a listener has heard comes to it once, whatever is spoken again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from firstword.heard import OPEN_KEPT, OVER_KEPT, Heard, Position

SAMPLES = 50
"""Of each segment."""


def turn_of(
    name: str = "t",
    *,
    count: int = 3,
    first_n: int = 1,
    skip: tuple[int, int] = (0, 0),
    chunk: int = 20,
) -> list[m.Audio]:
    """A turn from its segment `skip[0]`, sample `skip[1]` on; segment i is characters 10i … 10i+9.

    Sample k of segment i is the number 100i + k.
    """
    events: list[m.Audio] = [m.TurnStarted(turn=name, voice="v", sample_rate=8_000)]
    for index in range(skip[0], count):
        n = first_n + index
        events.append(
            m.SegmentStarted(turn=name, n=n, text="x", start=10 * index, end=10 * index + 9)
        )
        at = skip[1] if index == skip[0] else 0
        while at < SAMPLES:
            size = min(chunk, SAMPLES - at)
            data = b"".join((100 * index + at + i).to_bytes(2, "little") for i in range(size))
            events.append(m.AudioChunk(turn=name, n=n, offset=at, data=data))
            at += size
        events.append(m.SegmentDone(turn=name, n=n, samples=SAMPLES))
    return [*events, m.TurnDone(turn=name, segments=count, samples=0, reason="complete")]


@dataclass
class Hearer:
    """Hears through `Heard`, and fails on what a listener must never get."""

    heard: Heard

    def __post_init__(self) -> None:
        self.events: list[m.Audio] = []

    def feed(self, events: Sequence[m.Audio]) -> list[m.Audio]:
        new = [kept for event in events if (kept := self.heard.take(event)) is not None]
        self.events += new
        return new

    def samples(self, turn: str = "t") -> list[int]:
        """Every sample, in the order in which it came."""
        return [
            int.from_bytes(event.data[i : i + 2], "little")
            for event in self.events
            if isinstance(event, m.AudioChunk) and event.turn == turn
            for i in range(0, len(event.data), 2)
        ]

    def check(self, turn: str = "t", count: int = 3) -> None:
        assert self.samples(turn) == [100 * i + k for i in range(count) for k in range(SAMPLES)]
        of_turn = [event for event in self.events if getattr(event, "turn", None) == turn]
        kinds = [type(event) for event in of_turn if not isinstance(event, m.AudioChunk)]
        assert kinds == [
            m.TurnStarted,
            *[m.SegmentStarted, m.SegmentDone] * count,
            m.TurnDone,
        ]
        open_n = 0
        for event in of_turn:
            if isinstance(event, m.SegmentStarted):
                open_n = event.n
            elif isinstance(event, m.AudioChunk | m.SegmentDone):
                assert event.n == open_n, "a number that was not announced"


def fresh() -> Hearer:
    return Hearer(Heard())


@given(st.integers(1, 60), st.integers(0, 5))
def test_what_comes_once_is_not_touched(chunk: int, count: int) -> None:
    hearer = fresh()
    events = turn_of(chunk=chunk, count=count) + turn_of("u", first_n=9)
    assert hearer.feed(events) == events


@given(st.data(), st.integers(1, 60), st.integers(1, 60), st.sampled_from([1, 2, 40]))
def test_a_turn_spoken_again_from_its_start_is_heard_once(
    data: st.DataObject, chunk: int, chunk_again: int, first_n: int
) -> None:
    hearer = fresh()
    before = turn_of(chunk=chunk)
    hearer.feed(before[: data.draw(st.integers(0, len(before)))])
    hearer.feed([m.ErrorEvent(code="state_lost", message="lost", retryable=True)])
    hearer.feed(turn_of(chunk=chunk_again, first_n=first_n))
    hearer.check()


@given(st.data(), st.integers(1, 60), st.integers(1, 60), st.sampled_from([1, 2, 40]))
def test_a_turn_that_goes_on_where_the_listener_is_is_heard_whole(
    data: st.DataObject, chunk: int, chunk_again: int, first_n: int
) -> None:
    hearer = fresh()
    before = turn_of(chunk=chunk)
    stop = data.draw(st.integers(1, len(before) - 1))
    hearer.feed(before[:stop])
    [position] = hearer.heard.positions()
    index = -(-position.start // 10)
    assert position.end in (None, 10 * index + 9)
    hearer.feed(
        turn_of(chunk=chunk_again, first_n=first_n, skip=(index, position.samples))
        if index < 3
        else turn_of(first_n=first_n, count=3, skip=(3, 0))
    )
    hearer.check()


@given(st.data())
def test_a_rewound_stream_is_heard_once(data: st.DataObject) -> None:
    """An older copy of the server goes on from any earlier point, any number of times."""
    events = turn_of() + turn_of("u", first_n=4)
    hearer = fresh()
    at = 0
    for _ in range(data.draw(st.integers(1, 4))):
        stop = data.draw(st.integers(at, len(events)))
        hearer.feed(events[at:stop])
        at = data.draw(st.integers(0, stop))
    hearer.feed(events[at:])
    hearer.check("t")
    hearer.check("u")


def test_a_segment_that_begins_anew_is_heard_anew() -> None:
    hearer = fresh()
    events = turn_of(count=1)
    hearer.feed(events[:3])
    restarted = m.SegmentRestarted(turn="t", n=1)
    assert hearer.feed([restarted]) == [restarted]
    assert hearer.feed(events[2:]) == events[2:]


def test_a_segment_that_begins_anew_under_another_number_is_told_under_its_own() -> None:
    hearer = fresh()
    hearer.feed(turn_of(count=1)[:3])
    again = turn_of(count=1, first_n=7)
    hearer.feed([*again[:3], m.SegmentRestarted(turn="t", n=7)])
    assert hearer.events[-1] == m.SegmentRestarted(turn="t", n=1)
    hearer.feed(again[2:])
    assert hearer.samples()[-SAMPLES:] == list(range(SAMPLES))


def test_what_was_heard_to_its_end_is_silent_to_the_end_of_its_repeat() -> None:
    hearer = fresh()
    hearer.feed(turn_of(count=2)[:-1])
    again = turn_of(count=2, first_n=5)
    again.insert(3, m.SegmentRestarted(turn="t", n=5))
    failed = m.ErrorEvent(code="x", message="y", retryable=False, turn="t", n=6)
    again[-2] = failed
    assert hearer.feed(again) == [again[-1]]


def test_errors_of_a_segment_end_it_and_others_pass() -> None:
    hearer = fresh()
    events = turn_of(count=2)
    hearer.feed(events[:3])
    failed = m.ErrorEvent(code="x", message="y", retryable=False, turn="t", n=1, samples=20)
    about_turn = m.ErrorEvent(code="gap", message="y", retryable=True, turn="t", expected=3)
    nobodys = m.ErrorEvent(code="bad_setting", message="y", retryable=False)
    assert hearer.feed([about_turn, nobodys, failed]) == [about_turn, nobodys, failed]
    assert hearer.heard.positions() == [Position("t", 9, 0)]


def test_a_turn_that_is_over_stays_over_and_every_cancel_is_answered() -> None:
    hearer = fresh()
    cancelled = m.TurnCancelled(turn="t", sent={}, already_done=False)
    hearer.feed([*turn_of()[:3], cancelled])
    assert hearer.feed(turn_of()) == []
    again = replace(cancelled, already_done=True)
    several = m.TurnCancelled(turn="u", sent={}, already_done=False, turns=["u", "v"])
    assert hearer.feed([*turn_of("v")[:3], several])[-1] == several
    assert hearer.feed(turn_of("v") + turn_of("u")) == []
    nameless = m.TurnCancelled(turn="", sent={}, already_done=True)
    about_it = m.ErrorEvent(code="bad_field", message="x", retryable=False, turn="t")
    assert hearer.feed([about_it, again, nameless]) == [about_it, again, nameless]


def test_what_belongs_to_no_turn_passes() -> None:
    hearer = fresh()
    events: list[m.Audio] = [m.Gap(first="1-0"), m.Closed(reason="closed")]
    assert hearer.feed(events) == events
    assert hearer.heard.positions() == []


def test_the_names_of_the_last_turns_are_kept() -> None:
    hearer = fresh()
    for number in range(OVER_KEPT + 1):
        hearer.feed(turn_of(f"t{number}", count=0))
    assert hearer.feed(turn_of("t1", count=0)) == []
    assert hearer.feed(turn_of("t0", count=0)) == turn_of("t0", count=0)


def test_turns_whose_ends_nobody_told_are_forgotten() -> None:
    hearer = fresh()
    for number in range(OPEN_KEPT + 1):
        hearer.feed(turn_of(f"t{number}", count=1)[:3])
    names = [position.turn for position in hearer.heard.positions()]
    assert names == [f"t{number}" for number in range(1, OPEN_KEPT + 1)]


# -- positions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "position"),
    [
        (1, Position("t", 0, 0)),
        (2, Position("t", 0, 0, 9)),
        (3, Position("t", 0, 20, 9)),
        (5, Position("t", 0, 50, 9)),
        (6, Position("t", 9, 0)),
        (8, Position("t", 10, 20, 19)),
    ],
)
def test_where_a_listener_is(events: int, position: Position) -> None:
    hearer = fresh()
    hearer.feed(turn_of()[:events])
    assert hearer.heard.positions() == [position]


def test_the_last_turn_that_is_over_is_told_too() -> None:
    """Its publisher may not have seen its end, and publish it again."""
    hearer = fresh()
    hearer.feed(turn_of("a") + turn_of("b") + turn_of("c")[:3])
    assert hearer.heard.positions() == [Position("b", 29, 0), Position("c", 0, 20, 9)]


def test_one_who_began_inside_a_segment_knows_its_samples_but_not_its_place() -> None:
    hearer = fresh()
    chunks = turn_of(count=2)[3:]
    hearer.feed(chunks[:1])
    assert hearer.heard.positions() == [Position("t", 0, 0)]
    again = turn_of(count=2)
    assert hearer.feed(again[:2]) == again[:2]
    hearer.feed(again[2:])
    assert hearer.samples() == [*range(20, SAMPLES), *range(100, 100 + SAMPLES)]


def test_an_unknown_segment_may_restart_and_end() -> None:
    hearer = fresh()
    events: list[m.Audio] = [
        m.SegmentRestarted(turn="t", n=4),
        m.SegmentDone(turn="t", n=4, samples=0),
    ]
    assert hearer.feed(events) == events


def test_a_segment_whose_end_was_not_told_is_over_when_the_next_begins() -> None:
    hearer = fresh()
    events = turn_of()
    hearer.feed([event for event in events if not isinstance(event, m.SegmentDone)][:5])
    hearer.feed(events[6:8])
    assert hearer.heard.positions() == [Position("t", 10, 20, 19)]
    assert hearer.feed(events[:6]) == []


def test_another_cut_of_the_text_loses_no_word() -> None:
    hearer = fresh()
    hearer.feed(turn_of()[:6])
    wider = m.SegmentStarted(turn="t", n=9, text="x", start=5, end=15)
    assert hearer.feed([wider]) == [wider]
    narrower = m.SegmentStarted(turn="t", n=10, text="x", start=12, end=15)
    assert hearer.feed([narrower]) == [narrower]
