"""A synthesis begun before its segment is certain: used if it comes so, never heard if not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstword import messages as m
from firstword import session_protocol as wire
from services.tts_gateway.actions import Commit
from tests.doubles.ear import Ear
from tests.unit.tts_gateway.world import (
    World,
    hint,
    segment,
    session_open,
    turn_end,
    voice,
)


def hinted(*entries: m.Segments, frames: int | None = None) -> World:
    """A connected session with a hint of segment 1, of which so many frames (or all) have come."""
    world = World([session_open(), hint(1, "Perhaps.")])
    world.run(until=lambda: bool(world.backends and world.backends[0].asked))
    if frames is None:
        world.run()
    else:
        for _ in range(frames):
            world.frame()
    assert world.store.events == []
    world.entries += [*entries, turn_end()]
    return world


def heard(world: World) -> dict[int, bytearray]:
    return Ear(world.store.events).segments


@pytest.mark.parametrize("frames", [0, 1, 2, None])
def test_the_segment_that_was_hinted_at_is_asked_for_once(frames: int | None) -> None:
    world = hinted(segment(1, "Perhaps."), frames=frames)
    world.run()
    assert heard(world) == {1: voice("one", "Perhaps.")}
    (request,) = world.backends[0].asked
    assert request.text == "Perhaps." and request.first
    assert world.backends[0].cancels == 0
    assert Ear(world.store.events).ends == {1: "done"}


def test_held_audio_begins_the_turn_with_its_first_event() -> None:
    """All of it leaves in one go, each commit with its own fields: the first says where it is."""
    world = World([session_open(), hint(1, "x" * 60)]).run()
    world.entries += [segment(1, "x" * 60), turn_end()]
    world.run(until=lambda: world.speech.idle and 1 in Ear(world.store.events).ends)
    assert sum(isinstance(event, m.AudioChunk) for event in world.store.events) > 3
    assert world.store.fields["turn_at"] == world.store.audio[0][0].encode()
    world.run()
    assert world.store.events[-1] == m.TurnDone(
        turn="t", segments=1, samples=6_000, ttfa_ms=1_000_000_000_000, reason="complete"
    )


def test_the_time_of_held_audio_is_that_of_its_coming() -> None:
    world = hinted(segment(1, "Perhaps."), frames=1)
    world.now += 0.2
    world.frame()
    world.now += 3
    world.run()
    (started,) = [e for e in world.store.events if isinstance(e, m.SegmentStarted)]
    assert started.ttfb_ms == 200.0


@pytest.mark.parametrize("frames", [0, 2, None])
def test_another_text_than_hinted_at_is_asked_for_anew(frames: int | None) -> None:
    world = hinted(segment(1, "Perhaps not."), frames=frames)
    world.begin()
    world.run()
    assert heard(world) == {1: voice("one", "Perhaps not.")}
    assert [r.text for r in world.backends[0].asked] == ["Perhaps.", "Perhaps not."]
    assert world.backends[0].cancels == (frames is not None)


@pytest.mark.parametrize(
    "changed", [{"n": 2}, {"voice": "am_adam"}, {"speed": 1.5}, {"lang": "en-gb"}]
)
def test_a_hint_must_match_in_everything(changed: dict[str, Any]) -> None:
    world = hinted(replace(segment(1, "Perhaps."), **changed))
    world.run()
    assert len(world.backends[0].asked) == 2


def test_a_hint_that_is_revoked_is_never_heard() -> None:
    world = hinted(m.Revoke(turn="t", n=1), segment(1, "Other."), frames=2)
    world.begin()
    assert world.backends[0].cancels == 1
    world.run()
    assert heard(world) == {1: voice("one", "Other.")}


def test_a_turn_that_ends_takes_its_hint_along() -> None:
    world = hinted(frames=2)
    world.begin()
    assert world.backends[0].cancels == 1
    assert world.store.events == [
        m.TurnDone(turn="t", segments=1, samples=0, ttfa_ms=None, reason="complete")
    ]


def test_settings_that_change_make_a_hint_stale() -> None:
    world = hinted(session_open(16_000), segment(1, "Perhaps."), frames=2)
    world.run()
    assert [request.sample_rate for request in world.backends[0].asked] == [8_000, 16_000]
    assert heard(world) == {1: voice("one", "Perhaps.")}


def test_a_connection_that_breaks_takes_the_hint_along() -> None:
    world = hinted(segment(1, "Perhaps."), frames=2)
    world.cut()
    assert not world.connecting
    world.run()
    assert heard(world) == {1: voice("one", "Perhaps.")}
    assert [len(backend.asked) for backend in world.backends] == [1, 1]


def test_a_hint_that_failed_is_tried_again_as_its_segment() -> None:
    world = hinted(segment(1, "Perhaps."), frames=1)
    world.backends[0].forget()
    failed = wire.Error("1.1", "engine_failed", "try again", retryable=True)
    world.backends[0].say(wire.encode_server(failed))
    world.run()
    assert heard(world) == {1: voice("one", "Perhaps.")}
    assert world.waits[-1] == 0.25


def test_one_hint_at_a_time() -> None:
    world = hinted(hint(1, "Perhaps this."), segment(1, "Perhaps."), frames=1)
    world.run()
    assert [request.text for request in world.backends[0].asked] == ["Perhaps."]


def test_a_hint_without_a_connection_is_nothing() -> None:
    world = World([hint(1), m.Revoke(turn="t", n=1)])
    world.begin()
    world.begin()
    assert world.done == []


def test_a_hint_read_again_after_a_death_goes_on_inside_the_segment() -> None:
    world = World([session_open(), hint(1, "Perhaps so."), segment(1, "Perhaps so."), turn_end()])
    world.run(until=lambda: len(world.store.events) == 3)
    world.restart()
    world.entries[0] = session_open()  # read before; the successor begins with the hint
    world.run()
    assert heard(world) == {1: voice("one", "Perhaps so.")}
    assert not any(isinstance(event, m.SegmentRestarted) for event in world.store.events)


def test_a_hint_moves_no_position() -> None:
    world = hinted()
    assert world.speech.position == "1000000000000-0"
    assert [action for action in world.done if isinstance(action, Commit)][1:] == []


def test_the_timer_of_a_hint_begins_when_its_segment_comes() -> None:
    world = hinted(segment(1, "Perhaps."), frames=1)
    assert world.speech.timer() is None
    world.begin()
    assert world.speech.timer() == world.now + 30
