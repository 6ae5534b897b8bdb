"""How long a segment is asked for: a backend that breaks off, one that is away, and both."""

from __future__ import annotations

from firstword import messages as m
from firstword.errors import UpstreamError
from services.tts_gateway.actions import Limits
from services.tts_gateway.retries import Retries
from tests.unit.tts_gateway.world import World, segment, session_open, turn_end

BROKEN = "upstream_lost"
AWAY = "upstream_unreachable"
LIMITS = Limits(attempts=3, patience_s=10.0, backoff_s=0.25, longest_backoff_s=2.0)


def pauses(retries: Retries, n: int, code: str) -> list[float]:
    """All pauses until the segment is given up."""
    found: list[float] = []
    while (pause_s := retries.pause_after(n, code)) is not None:
        found.append(pause_s)
    return found


def test_a_backend_that_breaks_off_has_a_few_tries_a_segment() -> None:
    retries = Retries(LIMITS)
    assert pauses(retries, 1, BROKEN) == [0.25, 0.5]
    assert pauses(retries, 2, BROKEN) == [0.25, 0.5]


def test_a_try_that_got_further_counts_as_the_first() -> None:
    retries = Retries(LIMITS)
    for samples in range(1, 9):
        assert retries.pause_after(1, BROKEN) == 0.25
        assert retries.pause_after(1, BROKEN) == 0.5
        retries.got(1, samples)


def test_a_try_that_got_no_further_than_another_does_not() -> None:
    retries = Retries(LIMITS)
    retries.got(1, 100)
    found = []
    while (pause_s := retries.pause_after(1, BROKEN)) is not None:
        found.append(pause_s)
        retries.got(1, 50)  # it began anew, and broke off before where it had been
    assert found == [0.25, 0.5]


def test_a_backend_that_is_away_is_waited_for_once() -> None:
    retries = Retries(LIMITS)
    assert pauses(retries, 1, AWAY) == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert pauses(retries, 2, AWAY) == [], "the wait is the session's"
    retries.got(3, 1)
    assert len(pauses(retries, 4, AWAY)) == 8


def test_a_long_absence_costs_no_try_of_the_segment() -> None:
    retries = Retries(LIMITS)
    assert retries.pause_after(1, AWAY) == 0.25
    assert retries.pause_after(1, BROKEN) == 0.5
    assert retries.pause_after(1, AWAY) == 1.0
    assert retries.pause_after(1, BROKEN) == 2.0
    assert retries.pause_after(1, BROKEN) is None


def test_a_pause_is_never_long_however_often_it_failed() -> None:
    retries = Retries(Limits(patience_s=100_000.0))
    assert max(pauses(retries, 1, AWAY)) == 2.0


def test_what_the_backend_says_is_heeded_as_far_as_the_time_reaches() -> None:
    retries = Retries(Limits(patience_s=10.0))
    assert retries.pause_after(1, AWAY, 3.0) == 3.0
    assert retries.pause_after(1, AWAY, 0.1) == 0.5, "its own pause is longer"
    assert retries.pause_after(1, AWAY, 3_600.0) == 6.5, "what is left of ten seconds"
    assert retries.pause_after(1, AWAY, 1.0) is None


def world_without_backend(refusals: int, limits: Limits) -> World:
    """A turn of two segments, and a backend that is away for so many tries."""
    world = World([session_open(), segment(1), segment(2), turn_end(segments=2)], limits)
    left = refusals
    while world.can_begin:
        world.begin()
        while world.connecting:
            if left:
                left -= 1
                world.refuse(UpstreamError(AWAY, "nobody there", retryable=True))
            else:
                world.connect()
        while world.backend is not None and world.backend.speaking:
            world.frame()
    return world


def ends(world: World) -> list[str]:
    kinds = (m.SegmentDone, m.ErrorEvent, m.TurnDone)
    return [type(event).__name__ for event in world.store.events if isinstance(event, kinds)]


def test_an_outage_costs_the_listener_a_pause() -> None:
    assert ends(world_without_backend(7, LIMITS)) == ["SegmentDone", "SegmentDone", "TurnDone"]


def test_a_long_outage_is_told_segment_by_segment() -> None:
    world = world_without_backend(11, LIMITS)
    assert ends(world) == ["ErrorEvent", "ErrorEvent", "TurnDone"]
