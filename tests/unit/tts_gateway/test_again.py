"""A turn that listeners know in part, and answers without a sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from services.tts_gateway.actions import Limits
from tests.unit.tts_gateway.world import (
    Backend,
    World,
    hint,
    segment,
    session_open,
    turn_end,
    voice,
)

LONG = "A sentence of some length."
SAMPLES = len(voice("one", LONG)) // 2


def known(samples: int | None, **options: object) -> World:
    """A session in which listeners have so much of segment 1."""
    said = replace(segment(1, LONG), skip_samples=samples)
    entries: list[m.Segments] = [session_open(), said, turn_end()]
    return World(entries, **options)  # type: ignore[arg-type]


def heard(world: World) -> tuple[int, bytes]:
    """Where segment 1 begins, and all of its audio, each piece at its place."""
    chunks = [event for event in world.store.events if isinstance(event, m.AudioChunk)]
    at = first = chunks[0].offset if chunks else -1
    for chunk in chunks:
        assert chunk.offset == at
        at += len(chunk.data) // 2
    return first, b"".join(chunk.data for chunk in chunks)


def done(world: World) -> list[m.SegmentDone]:
    return [event for event in world.store.events if isinstance(event, m.SegmentDone)]


# -- what is known is not said again --------------------------------------------------------------


@given(st.integers(0, SAMPLES - 1), st.lists(st.integers(1, 400).map(lambda n: 2 * n)))
def test_only_what_listeners_lack_is_published(samples: int, frames: list[int]) -> None:
    world = known(samples, make_backend=lambda: Backend(frame_bytes=frames)).run()
    assert heard(world) == (samples, voice("one", LONG)[2 * samples :])
    assert done(world)[0].samples == SAMPLES
    [end] = [event for event in world.store.events if isinstance(event, m.TurnDone)]
    assert (end.segments, end.samples) == (1, SAMPLES)


@pytest.mark.parametrize("samples", [SAMPLES, SAMPLES + 1_000])
def test_a_segment_known_to_its_end_is_announced_and_done(samples: int) -> None:
    world = known(samples).run()
    assert [type(event) for event in world.store.events] == [
        m.TurnStarted,
        m.SegmentStarted,
        m.SegmentDone,
        m.TurnDone,
    ]
    assert done(world)[0].samples == SAMPLES
    assert "turn_at" not in world.store.fields


def test_another_worker_goes_on_behind_what_is_out() -> None:
    world = known(1_000)
    world.run(until=lambda: heard(world)[0] >= 0)
    world.restart()
    world.run()
    assert heard(world) == (1_000, voice("one", LONG)[2_000:])
    assert world.backends[1].asked[0].skip_samples > 1_000


def test_a_connection_that_breaks_before_anything_is_new_skips_again() -> None:
    world = known(2_000, make_backend=lambda: Backend(frame_bytes=[1_600] * 9))
    world.run(until=lambda: bool(world.backends and world.backends[0].asked))
    for _ in range(3):
        world.frame()
    world.cut()
    world.run()
    assert heard(world) == (2_000, voice("one", LONG)[4_000:])


def test_another_engine_begins_the_segment_anew() -> None:
    engines = iter(("one", "two"))
    world = known(1_000, make_backend=lambda: Backend(next(engines)))
    world.run(until=lambda: heard(world)[0] >= 0)
    world.cut()
    world.run()
    restarted = [isinstance(event, m.SegmentRestarted) for event in world.store.events]
    after = world.store.events[restarted.index(True) :]
    pcm = b"".join(event.data for event in after if isinstance(event, m.AudioChunk))
    assert pcm == voice("two", LONG)
    [end] = [event for event in world.store.events if isinstance(event, m.TurnDone)]
    assert end.samples == SAMPLES


def test_a_segment_begun_on_a_hint_skips_too() -> None:
    said = replace(segment(1, LONG), skip_samples=700)
    world = World([session_open(), hint(1, LONG), said, turn_end()])
    world.run(until=lambda: world.backend is not None)
    world.run()
    assert heard(world) == (700, voice("one", LONG)[1_400:])


# -- answers without a sound ----------------------------------------------------------------------


def mute(times: int) -> Callable[[], Backend]:
    """Backends that say nothing so many times, together."""
    left = [times]

    class Mute(Backend):
        def _audio_of(self, text: str) -> bytes:
            left[0] -= 1
            return b"" if left[0] >= 0 else super()._audio_of(text)

    return Mute


def failures(world: World) -> list[tuple[int | None, str, bool]]:
    errors = (event for event in world.store.events if isinstance(event, m.ErrorEvent))
    return [(error.n, error.code, error.retryable) for error in errors]


def test_a_text_that_comes_back_without_a_sound_is_tried_again() -> None:
    world = known(None, make_backend=mute(2)).run()
    assert heard(world) == (0, voice("one", LONG))
    assert world.waits[-2:] == [0.25, 0.5]
    assert failures(world) == []


def test_silence_to_the_last_try_is_an_error_of_that_segment_alone() -> None:
    entries: list[m.Segments] = [
        session_open(),
        segment(1, LONG),
        segment(2, "Next."),
        turn_end(segments=2),
    ]
    world = World(entries, Limits(attempts=3), make_backend=mute(3)).run()
    assert failures(world) == [(1, "no_audio", True)]
    assert [(event.n, event.samples) for event in done(world)] == [(2, 500)]


def test_a_success_lets_the_next_segment_have_all_its_tries() -> None:
    entries: list[m.Segments] = [
        session_open(),
        segment(1, "One."),
        segment(2, "Two."),
        turn_end(segments=2),
    ]
    silent = iter((True, True, False, True, True, False))

    class Moody(Backend):
        def _audio_of(self, text: str) -> bytes:
            return b"" if next(silent) else super()._audio_of(text)

    world = World(entries, Limits(attempts=3), make_backend=Moody).run()
    assert failures(world) == []
    assert [event.n for event in done(world)] == [1, 2]


def test_a_text_without_a_letter_is_rightly_silent() -> None:
    world = World([session_open(), segment(1, "— ?!"), turn_end()]).run()
    assert failures(world) == []
    assert [event.samples for event in done(world)] == [0]
    assert len(world.backends[0].asked) == 1
