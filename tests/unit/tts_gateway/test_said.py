"""What is kept of a session's last turns, so that a cancel can be told what was heard."""

from __future__ import annotations

from dataclasses import replace

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from firstword import session_protocol as wire
from services.tts_gateway.said import KEPT, Said
from tests.unit.tts_gateway.world import (
    RATE,
    World,
    segment,
    session_open,
    turn_end,
    voice,
)


def kept(fields: dict[str, bytes]) -> dict[int, list[object]]:
    """What is kept, by segment."""
    return {
        int(name.removeprefix("said:")): msgpack.unpackb(value)
        for name, value in fields.items()
        if name.startswith("said:")
    }


def speak(turns: dict[str, int], world: World | None = None) -> World:
    """A session of these turns, of so many segments each."""
    entries: list[m.Segments] = [session_open(pace="none")]
    n = 0
    for turn, count in turns.items():
        for index in range(count):
            n += 1
            entries.append(segment(n, turn=turn, first=index == 0))
        entries.append(turn_end(turn, count))
    return World(entries).run()


def test_a_segment_that_sounds_is_kept_at_a_usual_pace_and_then_as_it_was() -> None:
    said = replace(segment(1, "One two."), text="*One* two.")
    world = World([session_open(), said, turn_end()])
    world.run(until=lambda: bool(kept(world.store.fields)))
    place = ["t", 10, 18, "*One* two.", "One two."]
    per_character = RATE / 15
    assert kept(world.store.fields)[1] == [
        *place,
        0,
        [round(3 * per_character), 3, round(8 * per_character), 8],
    ]
    world.run()
    samples = len(voice("one", "One two.")) // 2
    word = round(0.1 * RATE)  # the backend tells of one word, up to its first character
    assert kept(world.store.fields)[1] == [*place, samples, [word, 1]]


def test_a_quick_speaker_is_heard_sooner() -> None:
    fields = Said({}).begin(replace(segment(1, "One"), speed=2.0), RATE)
    assert msgpack.unpackb(fields["said:1"] or b"")[-1] == [round(3 * RATE / 30), 3]


def test_without_word_times_each_word_has_its_share() -> None:
    fields = Said({}).done(segment(1, "Grüße an alle"), 1_300, (), RATE)
    *_, samples, marks = msgpack.unpackb(fields["said:1"] or b"")
    assert (samples, marks) == (1_300, [500, 7, 800, 10, 1_300, 15])


def test_two_turns_are_kept_and_what_came_before_goes() -> None:
    world = speak({"a": 3, "b": 2, "c": 2})
    assert sorted(kept(world.store.fields)) == [4, 5, 6, 7]
    assert {str(said[0]) for said in kept(world.store.fields).values()} == {"b", "c"}


def test_a_successor_knows_what_is_kept() -> None:
    world = speak({"a": 3, "b": 2})
    world.restart()
    world.entries += [segment(6, turn="c", first=True), turn_end("c")]
    world.run()
    assert sorted(kept(world.store.fields)) == [4, 5, 6]


@given(st.integers(0, 20))
def test_of_a_long_turn_the_last_segments_are_kept(more: int) -> None:
    said = Said({})
    stored: dict[str, bytes] = {}

    def store(fields: dict[str, str | bytes | None]) -> None:
        for name, value in fields.items():
            if value is None:
                stored.pop(name, None)
            elif isinstance(value, bytes):
                stored[name] = value

    count = KEPT + more
    for n in range(1, count + 1):
        store(said.begin(segment(n), RATE))
    assert sorted(kept(stored)) == list(range(count - KEPT + 1, count + 1))
    store(said.begin(segment(count + 1, turn="u"), RATE))
    assert sorted(kept(stored)) == list(range(count - KEPT + 1, count + 2))
    store(said.begin(segment(count + 2, turn="v"), RATE))
    assert sorted(kept(stored)) == [count + 1, count + 2]


def test_what_made_no_sound_was_not_heard() -> None:
    world = World([session_open(), segment(1, "?!"), segment(2, "Yes."), turn_end(segments=2)])
    assert list(kept(world.run().store.fields)) == [2]


def test_what_failed_is_kept_as_far_as_it_came() -> None:
    world = World([session_open(), segment(1, "One two.")])
    world.run(until=lambda: bool(kept(world.store.fields)))
    assert world.backend is not None
    world.backend.forget()
    world.backend.say(wire.encode_server(wire.Error("1.1", "broken", "no more", retryable=False)))
    world.run()
    assert [event.n for event in world.store.events if isinstance(event, m.ErrorEvent)] == [1]
    assert kept(world.store.fields)[1][5] == 0
