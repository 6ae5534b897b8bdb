"""An idle connection is asked whether it is there; one that is refused for good is told."""

from __future__ import annotations

from firstword import messages as m
from firstword.errors import UpstreamError
from services.tts_gateway.actions import Connect, Disconnect
from tests.doubles.ear import Ear
from tests.unit.tts_gateway.world import World, segment, session_open, turn_end

PING_S, PONG_S = 45.0, 10.0
REFUSED = UpstreamError("upstream_forbidden", "grant it")


def idle() -> World:
    return World([session_open(), segment(1), turn_end()]).run()


def wait(world: World) -> None:
    """Time passes until the core wants to be woken."""
    timer = world.speech.timer()
    assert timer is not None
    world.now = timer
    world.perform(world.speech.expired(world.now))


def test_nothing_is_asked_without_a_connection() -> None:
    assert World([session_open()]).speech.timer() is None


def test_an_idle_connection_is_asked_after_some_silence() -> None:
    world = idle()
    began_at = world.now
    assert world.speech.timer() == began_at + PING_S
    wait(world)
    assert world.backends[0].pings == 1
    assert world.speech.timer() == began_at + PING_S + PONG_S


def test_an_answer_gives_it_another_while() -> None:
    world = idle()
    wait(world)
    world.now += 1
    world.run()  # the pong
    assert world.speech.timer() == world.now + PING_S
    wait(world)
    assert world.backends[0].pings == 2
    assert world.disconnects == 0


def test_without_an_answer_it_is_dropped_and_the_next_segment_has_another() -> None:
    world = idle()
    wait(world)
    world.backends[0].forget()
    wait(world)
    assert world.done[-1] == Disconnect()
    assert world.speech.timer() is None
    world.entries += [segment(2, turn="u", first=True), turn_end("u")]
    world.run()
    assert len(world.backends) == 2
    assert Ear(world.store.events).ends == {1: "done", 2: "done"}


def test_a_segment_that_comes_meanwhile_is_spoken() -> None:
    world = idle()
    wait(world)
    world.entries += [segment(2, turn="u", first=True), turn_end("u")]
    world.run()
    assert len(world.backends) == 1
    assert Ear(world.store.events).ends == {1: "done", 2: "done"}


def test_another_connection_may_take_its_place_while_nothing_is_asked_of_it() -> None:
    world = World([session_open(), segment(1), turn_end()])
    world.begin()
    assert world.speech.quiet
    world.run(until=lambda: world.backend is not None)
    world.begin()
    assert not world.speech.quiet
    world.run()
    assert world.speech.quiet


def test_a_connection_that_is_refused_for_good_costs_one_error_a_segment() -> None:
    """Nothing loops, and once it is mended the session speaks."""
    world = World([session_open(), segment(1), segment(2), segment(3), turn_end(segments=3)])
    world.begin()
    for _ in range(3):
        world.run(until=lambda: world.connecting)
        world.refuse(REFUSED)  # the first is that of `open`: there is nothing to give up
    world.run()
    assert Ear(world.store.events).ends == {1: REFUSED.code, 2: REFUSED.code, 3: "done"}
    errors = [e for e in world.store.events if isinstance(e, m.ErrorEvent)]
    assert [(e.message, e.retryable) for e in errors] == [("grant it", False)] * 2
    assert world.waits == [0.0] * 4
    assert world.done.count(Connect()) == 4
