"""Barge-in: from the mark on nothing more of the turn is said, and its synthesis stops."""

from __future__ import annotations

import pytest

from firstword import messages as m
from firstword import session_protocol as wire
from services.tts_gateway.actions import Commit
from tests.doubles.ear import Ear
from tests.unit.tts_gateway.world import (
    Backend,
    World,
    hint,
    segment,
    session_open,
    turn_end,
    voice,
)

CANCELLED: list[m.Segments] = [
    segment(1, "A sentence."),
    segment(2, "Another one."),
    turn_end(segments=2),
]
NEXT: list[m.Segments] = [segment(3, "Yes?", turn="u", first=True), turn_end("u")]


def world_of(*entries: m.Segments) -> World:
    return World([session_open(), *entries, *NEXT])


def drops(world: World) -> list[str]:
    """What ended unspoken, as it is counted."""
    return [action.drops for action in world.done if isinstance(action, Commit) and action.drops]


def next_turn_is_spoken(world: World) -> bool:
    ear = Ear(world.store.events)
    assert ear.ends[3] == "done"
    assert ear.segments[3] == voice("one", "Yes?")
    assert isinstance(ear.turn_ends["u"], m.TurnDone)
    assert isinstance(ear.turn_ends["t"], m.TurnCancelled)
    assert world.store.at_rest == {"done_turn", "position", "settings"}
    return True


@pytest.mark.parametrize("heard_of_it", [True, False], ids=["rung", "not rung"])
@pytest.mark.parametrize("commits", range(1, 8))
def test_after_any_commit(commits: int, heard_of_it: bool) -> None:
    world = world_of(*CANCELLED)
    world.run(until=lambda: len(world.store.events) >= commits)
    assert world.store.cancel("t")
    said = len(world.store.events)
    if heard_of_it:
        world.ring()
    world.run()
    assert {getattr(event, "turn", None) for event in world.store.events[said:]} == {"u"}
    assert next_turn_is_spoken(world)


def test_before_the_turn_began() -> None:
    world = world_of(*CANCELLED)
    world.store.cancel("t")
    world.run()
    assert next_turn_is_spoken(world)
    assert [request.text for request in world.backends[0].asked] == ["Yes?"]


def test_while_it_waits_for_a_connection() -> None:
    world = world_of(*CANCELLED)
    while world.can_begin:
        world.begin()
    assert world.connecting
    world.store.cancel("t")
    world.ring()
    world.run()
    assert next_turn_is_spoken(world)
    assert [request.text for request in world.backends[0].asked] == ["Yes?"]


def test_while_a_try_waits_for_its_time() -> None:
    world = world_of(*CANCELLED)
    world.run(until=lambda: len(world.store.events) >= 3)
    world.cut()
    world.store.cancel("t")
    world.ring()
    world.run()
    assert next_turn_is_spoken(world)
    assert [request.text for request in world.backends[1].asked] == ["Yes?"]


def test_in_the_middle_of_audio_stops_the_backend() -> None:
    world = world_of(*CANCELLED)
    world.run(until=lambda: len(world.store.events) >= 3)
    world.store.cancel("t")
    world.ring()
    assert world.backends[0].cancels == 1
    world.run()
    assert next_turn_is_spoken(world)
    assert len(world.backends) == 1  # the connection lives on


def test_at_the_commit_that_would_finish_the_segment() -> None:
    world = World([session_open(), segment(1, "x"), turn_end(), *NEXT])
    world.run(until=lambda: len(world.store.events) == 3)
    world.store.cancel("t")
    world.frame()  # `synthesis_complete`: refused, and nothing is left to stop
    assert world.backends[0].cancels == 0
    world.run()
    assert next_turn_is_spoken(world)
    assert 1 not in Ear(world.store.events).ends


def test_at_the_end_of_the_turn() -> None:
    world = world_of(*CANCELLED)
    world.run(until=lambda: 2 in Ear(world.store.events).ends)
    world.store.cancel("t")
    world.run()
    assert next_turn_is_spoken(world)
    assert drops(world) == ["turn"]


def test_each_dropped_segment_and_turn_is_counted_once() -> None:
    world = world_of(*CANCELLED)
    world.store.cancel("t")
    world.run()
    assert drops(world) == ["segment", "segment", "turn"]


def test_of_a_turn_that_is_over_changes_nothing() -> None:
    world = world_of(*CANCELLED).run()
    assert not world.store.cancel("t")


def test_before_a_segment_begins_anew_on_another_engine() -> None:
    engines = iter(["one", "two", "two"])
    world = World([session_open(), *CANCELLED, *NEXT], make_backend=lambda: Backend(next(engines)))
    world.run(until=lambda: len(world.store.events) >= 3)
    world.cut()
    world.store.cancel("t")  # and no ring: the commit finds out
    world.run()
    ear = Ear(world.store.events)
    assert ear.ends == {3: "done"}
    assert bytes(ear.segments[1]) == voice("one", "A sentence.")[:1_600]
    assert not any(isinstance(event, m.SegmentRestarted) for event in world.store.events)


def test_while_the_container_goes_leaves_it_at_once() -> None:
    world = world_of(*CANCELLED)
    world.run(until=lambda: len(world.store.events) >= 3)
    world.backends[0].say(wire.encode_server(wire.Closing("drain")))
    world.frame()
    world.store.cancel("t")
    world.ring()
    assert world.disconnects == 1
    assert world.backends[0].cancels == 0
    world.run()
    assert next_turn_is_spoken(world)
    assert len(world.backends) == 2


def test_survives_the_death_of_the_worker() -> None:
    world = world_of(*CANCELLED)
    world.run(until=lambda: len(world.store.events) >= 3)
    world.store.cancel("t")
    world.restart()
    world.run()
    assert next_turn_is_spoken(world)


def test_stops_a_synthesis_begun_on_a_hint() -> None:
    world = World([session_open(), hint(1, "Never."), *CANCELLED, *NEXT])
    world.run(until=lambda: bool(world.backends and world.backends[0].asked))
    world.store.cancel("t")
    world.begin()
    assert world.backends[0].cancels == 1
    world.run()
    assert next_turn_is_spoken(world)


def test_twenty_in_a_row_leave_the_session_healthy() -> None:
    entries: list[m.Segments] = [session_open()]
    for i in range(1, 21):
        entries += [segment(i, turn=f"t{i}", first=True), turn_end(f"t{i}")]
    world = World(entries)
    for i in range(1, 21):
        world.run(until=lambda i=i: f"t{i}" in Ear(world.store.events).turns)  # type: ignore[misc]
        world.store.cancel(f"t{i}")
        world.ring()
    world.entries += [segment(21, "Yes?", turn="u", first=True), turn_end("u")]
    world.run()
    ear = Ear(world.store.events)
    assert ear.ends == {21: "done"}
    assert ear.segments[21] == voice("one", "Yes?")
    assert len(world.backends) == 1
    assert world.backends[0].cancels == 20
