"""What goes wrong with a backend, at every point of a segment, and what listeners hear of it."""

from __future__ import annotations

import pytest

from firstword import messages as m
from firstword import session_protocol as wire
from services.tts_gateway.actions import Commit, Connect, Disconnect, Limits, Send
from tests.doubles.ear import Ear
from tests.unit.tts_gateway.world import (
    RATE,
    Backend,
    World,
    segment,
    session_open,
    turn_end,
    voice,
)

LONG = "A sentence of some length."
ENTRIES: list[m.Segments] = [
    session_open(),
    segment(1, LONG),
    segment(2, "Next."),
    turn_end(segments=2),
]
FRAMES = 2 + -(-len(voice("one", LONG)) // 1_600)
"""Start, audio, complete."""


def world_at(frames: int, **options: object) -> World:
    """A session in which so many frames of segment 1 have come."""
    world = World(list(ENTRIES), **options)  # type: ignore[arg-type]
    world.run(until=lambda: bool(world.backends and world.backends[0].asked))
    for _ in range(frames):
        world.frame()
    return world


def heard(world: World) -> Ear:
    return Ear(world.store.events)


def errors(world: World) -> list[m.ErrorEvent]:
    return [event for event in world.store.events if isinstance(event, m.ErrorEvent)]


def everything_is_heard(world: World) -> bool:
    ear = heard(world)
    assert ear.segments == {1: voice("one", LONG), 2: voice("one", "Next.")}
    assert ear.ends == {1: "done", 2: "done"}
    assert ear.turn_ends["t"] == m.TurnDone(
        turn="t",
        segments=2,
        samples=len(LONG + "Next.") * 100,
        ttfa_ms=1_000_000_000_000,
        reason="complete",
    )
    return True


# -- the connection -------------------------------------------------------------------------------


@pytest.mark.parametrize("frames", range(FRAMES))
def test_a_connection_that_breaks_anywhere_costs_no_sample(frames: int) -> None:
    world = world_at(frames)
    world.cut()
    assert world.waits[-1] == 0.25
    world.run()
    assert everything_is_heard(world)
    assert not any(isinstance(event, m.SegmentRestarted) for event in world.store.events)


@pytest.mark.parametrize("frames", range(FRAMES))
def test_a_worker_that_dies_anywhere_costs_no_sample(frames: int) -> None:
    world = world_at(frames)
    world.restart()
    world.run()
    assert everything_is_heard(world)


@pytest.mark.parametrize("frames", range(FRAMES))
def test_a_backend_with_another_voice_begins_the_segment_again(frames: int) -> None:
    engines = iter(["one", "two"])
    world = world_at(frames, make_backend=lambda: Backend(next(engines)))
    world.cut()
    world.run()
    assert heard(world).segments == {1: voice("two", LONG), 2: voice("two", "Next.")}
    assert heard(world).ends == {1: "done", 2: "done"}
    restarts = [event for event in world.store.events if isinstance(event, m.SegmentRestarted)]
    assert restarts == [m.SegmentRestarted(turn="t", n=1)][: frames > 1]


def test_a_backend_without_plans_begins_the_segment_again() -> None:
    def make() -> Backend:
        backend = Backend()
        backend.plans = False
        return backend

    world = world_at(3, make_backend=make)
    world.cut()
    world.run()
    assert everything_is_heard(world)
    assert world.backends[1].asked[0].plan is None
    assert world.backends[1].asked[0].skip_samples == 0
    assert sum(isinstance(event, m.SegmentRestarted) for event in world.store.events) == 1


def test_a_worker_that_dies_after_a_restart_goes_on_from_it() -> None:
    engines = iter(["one", "two", "two"])
    world = world_at(3, make_backend=lambda: Backend(next(engines)))
    world.cut()
    world.run(until=lambda: isinstance(world.store.events[-1], m.SegmentRestarted))
    world.restart()
    world.run()
    assert heard(world).segments[1] == voice("two", LONG)
    assert sum(isinstance(event, m.SegmentRestarted) for event in world.store.events) == 1


def test_a_restarted_segment_does_not_count_twice_as_audio_ahead() -> None:
    engines = iter(["one", "two"])
    world = world_at(FRAMES - 1, make_backend=lambda: Backend(next(engines)))
    world.cut()
    world.run(until=lambda: 1 in heard(world).ends)
    world.run(until=lambda: len(world.backends[1].asked) == 2)
    ahead_ms = len(LONG) * 100 / RATE * 1000
    assert world.backends[1].asked[1].deadline_ms == pytest.approx(ahead_ms, abs=1)


def test_a_backend_that_cannot_be_had_costs_one_error_a_segment() -> None:
    world = World(list(ENTRIES))
    while world.can_begin:
        world.begin()
        while world.connecting:
            world.refuse()
    assert heard(world).ends == {1: "upstream_lost", 2: "upstream_lost"}
    assert heard(world).segments == {}
    assert heard(world).turn_ends["t"].turn == "t"
    assert [error.retryable for error in errors(world)] == [True, True]
    assert [wait for wait in world.waits if wait] == [0.25, 0.5, 0.25, 0.5]


def test_a_connection_that_breaks_while_nothing_is_to_do_is_made_when_it_is_needed() -> None:
    world = World([session_open()]).run()
    world.cut()
    assert not world.connecting
    world.entries += ENTRIES[1:]
    world.run()
    assert everything_is_heard(world)
    assert len(world.backends) == 2


def test_a_connection_that_breaks_while_a_try_waits_costs_no_try() -> None:
    world = world_at(0, limits=Limits(attempts=2))
    backend = world.backends[0]
    backend.forget()
    backend.say(wire.encode_server(wire.Error("1.1", "busy", "not now", retryable=True)))
    world.frame()
    assert world.waits[-1] == 0.25
    waits = len(world.waits)
    world.cut()
    assert len(world.waits) == waits
    world.run()
    assert everything_is_heard(world)


def test_a_backend_that_says_when_to_come_back_is_asked_then() -> None:
    world = world_at(0)
    backend = world.backends[0]
    backend.forget()
    busy = wire.Error("1.1", "busy", "not now", retryable=True, retry_after_ms=3_000)
    backend.say(wire.encode_server(busy))
    world.frame()
    assert world.waits[-1] == 3.0
    world.run()
    assert everything_is_heard(world)


def test_a_connection_that_comes_up_twice_asks_once() -> None:
    world = world_at(1)
    assert world.speech.connected(False, world.now) == []


# -- a backend that hangs -------------------------------------------------------------------------


def test_a_backend_that_never_begins_is_given_up() -> None:
    world = world_at(1)
    assert world.speech.timer() == world.now + 30
    assert world.speech.owed_since == world.now
    assert world.speech.expired(world.now) == [Disconnect(), Connect(0.25)]
    assert world.speech.timer() is None
    assert world.speech.owed_since is None


def test_a_backend_that_stops_speaking_is_given_up() -> None:
    world = world_at(1)
    world.now += 20
    world.frame()
    assert world.speech.timer() == world.now + 15
    assert world.speech.owed_since == world.now
    world.now += 15
    world.perform(world.speech.expired(world.now))
    world.backend = None
    world.run()
    assert everything_is_heard(world)


def test_a_backend_that_hangs_each_time_costs_one_error() -> None:
    world = world_at(2)
    for _ in range(3):
        world.backends[-1].forget()
        world.perform(world.speech.expired(world.now))
        world.run(until=lambda: not world.connecting)
    assert [(e.code, e.n, e.samples) for e in errors(world)] == [("upstream_timeout", 1, 800)]
    assert heard(world).ends[1] == "upstream_timeout"
    world.run()
    assert heard(world).segments[2] == voice("one", "Next.")


# -- what a backend says --------------------------------------------------------------------------


def test_a_permanent_error_ends_the_segment_at_once() -> None:
    world = world_at(2)
    world.backends[0].forget()
    world.backends[0].say(wire.encode_server(wire.Error("1.1", "unknown_voice", "no such voice")))
    world.run()
    assert errors(world) == [
        m.ErrorEvent(
            code="unknown_voice",
            message="no such voice",
            retryable=False,
            turn="t",
            n=1,
            samples=800,
        )
    ]
    ear = heard(world)
    assert ear.ends == {1: "unknown_voice", 2: "done"}
    assert ear.segments[1] == voice("one", LONG)[:1_600]
    assert len(world.backends) == 1
    assert [e.samples for e in world.store.events if isinstance(e, m.TurnDone)] == [1_300]


def test_an_error_that_may_pass_is_tried_again_on_the_same_connection() -> None:
    world = world_at(0)
    for attempt in (1, 2):
        backend = world.backends[0]
        backend.forget()
        busy = wire.Error(f"1.{attempt}", "busy", "not now", retryable=True)
        backend.say(wire.encode_server(busy))
        world.frame()
        world.run(until=lambda: not world.connecting)
    assert [wait for wait in world.waits if wait] == [0.25, 0.5]
    world.run()
    assert everything_is_heard(world)
    assert len(world.backends) == 1


def test_samples_that_went_missing_are_asked_for_again() -> None:
    world = world_at(FRAMES - 1)
    world.backends[0].forget()
    world.backends[0].say(wire.encode_server(wire.SynthesisComplete("1.1", 99_999)))
    world.run()
    assert everything_is_heard(world)
    assert world.backends[0].asked[1].skip_samples == len(LONG) * 100


@pytest.mark.parametrize(
    "frame",
    [
        wire.encode_server(wire.SynthesisStart("1.1", RATE, "again")),
        wire.encode_server(wire.SynthesisComplete("9.9", 1)),
        b"\0\0\0",
        '{"type":"synthesis_complete","samples":-1}',
        "no JSON",
    ],
    ids=["second start", "complete of nothing", "half a sample", "bad field", "no JSON"],
)
def test_a_backend_that_talks_nonsense_is_left_and_tried_again(frame: str | bytes) -> None:
    world = world_at(2)
    world.backends[0].say(frame)
    world.frame()
    assert world.disconnects == 1
    world.run()
    assert everything_is_heard(world)


def test_audio_before_its_announcement_is_not_heard() -> None:
    world = world_at(0)
    world.backends[0].say(b"\1\1" * 50)
    world.run()
    assert everything_is_heard(world)
    assert len(world.backends) == 2


def test_a_backend_that_stops_on_its_own_is_asked_again() -> None:
    world = world_at(2)
    world.backends[0].forget()
    world.backends[0].say(wire.encode_server(wire.Cancelled("1.1", 800)))
    world.run()
    assert everything_is_heard(world)


def test_what_a_backend_says_of_nothing_in_hand_changes_nothing() -> None:
    world = world_at(2)
    world.backends[0].say(
        wire.encode_server(wire.Pong()),
        wire.encode_server(wire.Error("0.0", "late", "of an ended one", retryable=True)),
        '{"type":"of a later version"}',
    )
    world.run()
    assert everything_is_heard(world)
    world.backends[0].say(wire.encode_server(wire.Error(None, "odd", "of the connection")))
    world.run()
    assert errors(world) == []


def test_a_backend_with_another_sample_rate_is_told_apart_from_noise() -> None:
    world = World([session_open(16_000), segment(1, LONG), segment(2, "Next."), turn_end()])
    world.run(until=lambda: bool(world.backends and world.backends[0].asked))
    world.backends[0].forget()
    world.backends[0].say(wire.encode_server(wire.SynthesisStart("1.1", 24_000)))
    world.run()
    assert heard(world).ends == {1: "sample_rate_differs", 2: "done"}
    assert "24000 Hz and the session wants 16000 Hz" in errors(world)[0].message
    assert world.backends[0].cancels == 1


# -- a container that will go ---------------------------------------------------------------------

CLOSING = wire.encode_server(wire.Closing("drain"))


def test_a_container_that_will_go_finishes_its_segment_first() -> None:
    world = world_at(2)
    world.backends[0].say(CLOSING)
    world.run()
    assert everything_is_heard(world)
    assert [len(backend.asked) for backend in world.backends] == [1, 1]
    assert [wait for wait in world.waits if wait] == []


def test_a_container_that_will_go_while_nothing_is_to_do_is_left() -> None:
    world = World([session_open()]).run()
    world.backends[0].say(CLOSING)
    world.run()
    assert world.disconnects == 1
    world.entries += ENTRIES[1:]
    world.run()
    assert everything_is_heard(world)


def test_a_container_that_refuses_because_it_will_go_costs_one_try() -> None:
    world = world_at(0, limits=Limits(attempts=2))
    world.backends[0].forget()
    refused = wire.Error("1.1", "draining", "connect elsewhere", retryable=True)
    world.backends[0].say(wire.encode_server(refused), CLOSING)
    world.frame()
    world.frame()
    assert world.disconnects == 1
    assert world.connecting
    world.run()
    assert everything_is_heard(world)


def test_a_container_that_fails_while_it_goes_is_left() -> None:
    world = world_at(2)
    world.backends[0].forget()
    failed = wire.Error("1.1", "engine_failed", "try again", retryable=True)
    world.backends[0].say(CLOSING, wire.encode_server(failed))
    world.frame()
    world.frame()
    assert world.disconnects == 1
    world.run()
    assert everything_is_heard(world)


def test_a_container_that_goes_and_refuses_for_good_is_left() -> None:
    world = world_at(2)
    world.backends[0].forget()
    world.backends[0].say(CLOSING, wire.encode_server(wire.Error("1.1", "bad", "never")))
    world.run()
    assert heard(world).ends == {1: "bad", 2: "done"}
    assert len(world.backends) == 2


def test_a_container_that_is_gone_before_it_finished_costs_a_try() -> None:
    world = world_at(2)
    world.backends[0].say(CLOSING)
    world.frame()
    world.cut()
    assert world.done[-2:] == [Disconnect(), Connect(0.25)]
    world.run()
    assert everything_is_heard(world)


# -- what is stored -------------------------------------------------------------------------------


def test_a_commit_that_is_stored_twice_is_the_same_commit() -> None:
    """A retried script must not carry another content: nothing of it may change afterwards."""
    world = world_at(FRAMES - 1)
    commits = [action for action in world.done if isinstance(action, Commit)]
    before = [dict(commit.fields) for commit in commits]
    world.run()
    assert [commit.fields for commit in commits] == before


def test_only_frames_and_commits_pass_while_a_segment_is_spoken() -> None:
    world = world_at(0)
    before = len(world.done)
    world.run(until=lambda: world.speech.idle)
    assert {type(action) for action in world.done[before:]} <= {Commit, Send}
