"""When a gateway counts its backend as away."""

from __future__ import annotations

import pytest

from services.tts_gateway.reachability import (
    BRIEF_S,
    FAILURES,
    QUIET_S,
    UNANSWERED,
    Reachability,
)

LONG_AGO = -1000.0


@pytest.fixture
def reachability() -> Reachability:
    """Of a backend that was there once."""
    made = Reachability()
    made.worked(LONG_AGO)
    return made


def fail(reachability: Reachability, times: int = FAILURES) -> None:
    for number in range(times):
        reachability.refused(f"failure {number}")


def test_a_backend_that_was_never_tried_is_not_well_until_it_was() -> None:
    reachability = Reachability()
    assert reachability.untried
    assert "tried yet" in (reachability.problem(0.0) or "")
    reachability.refused("connection refused")
    assert "connection refused" in (reachability.problem(0.0) or "")
    reachability.worked(1.0)
    assert not reachability.untried
    assert reachability.problem(1.0 + 10 * QUIET_S) is None


def test_a_backend_that_went_is_away_after_some_failures(reachability: Reachability) -> None:
    fail(reachability, FAILURES - 1)
    assert reachability.problem(1.0) is None
    reachability.refused("connection refused")
    assert "connection refused" in (reachability.problem(1.0) or "")


def test_who_said_something_lately_is_there(reachability: Reachability) -> None:
    reachability.worked(100.0)
    fail(reachability)
    assert reachability.problem(100.0 + QUIET_S - 0.1) is None
    assert reachability.problem(100.0 + QUIET_S) is not None


def test_one_success_is_enough(reachability: Reachability) -> None:
    fail(reachability, FAILURES * 10)
    reachability.worked(50.0)
    fail(reachability, FAILURES - 1)
    assert reachability.problem(50.0 + 10 * QUIET_S) is None


@pytest.mark.parametrize(
    ("lived_s", "asked", "away"),
    [(0.0, False, True), (BRIEF_S, False, False), (BRIEF_S, True, True), (0.0, True, True)],
)
def test_connections_that_end_without_a_word(
    reachability: Reachability, lived_s: float, asked: bool, away: bool
) -> None:
    for _ in range(FAILURES):
        reachability.ended("closed", lived_s, asked=asked)
    assert (reachability.problem(0.0) is not None) == away


def test_a_backend_that_takes_requests_and_does_not_speak_is_not_well(
    reachability: Reachability,
) -> None:
    for n in range(UNANSWERED):
        assert reachability.problem(30.0) is None
        reachability.silent(since=float(n))
        reachability.worked(30.0)  # it may well answer pings
    assert reachability.mute
    assert "does not speak" in (reachability.problem(30.0) or "")
    reachability.spoke(31.0)
    assert not reachability.mute
    assert reachability.problem(31.0) is None


def test_one_text_that_is_never_spoken_says_nothing_where_others_are(
    reachability: Reachability,
) -> None:
    for n in range(10):
        reachability.spoke(30.0 * n + 29.0)
        reachability.silent(since=30.0 * n)
    assert reachability.problem(300.0) is None
