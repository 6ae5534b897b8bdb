"""What the engine takes, as far as it can be learned from what it took."""

from __future__ import annotations

import pytest

from services.inference.pace import Pace


def test_nothing_is_known_before_the_first_run() -> None:
    assert Pace().seconds(100, 4) == 0.0


def test_seconds_follow_the_size_and_the_newest_runs_count_most() -> None:
    pace = Pace()
    pace.took(1.0, 10)
    assert pace.seconds(20) == pytest.approx(2.0)
    pace.took(2.0, 10)
    assert pace.seconds(10) == pytest.approx(1.2)


def test_what_a_further_piece_adds_is_learned_from_runs_of_several() -> None:
    pace = Pace()
    pace.took(1.0, 10)
    assert pace.seconds(10, 5) == pytest.approx(2.0), "not tried: a quarter is taken for it"
    pace.took(2.5, 10, 4)
    assert pace.growth == pytest.approx(0.5)
    assert pace.seconds(10, 5) == pytest.approx(3.0)
    assert pace.seconds(10) == pytest.approx(1.0), "one alone takes what it took"


@pytest.mark.parametrize(("seconds", "growth"), [(0.1, 0.0), (100.0, 1.0)])
def test_a_run_adds_between_nothing_and_all_of_a_piece(seconds: float, growth: float) -> None:
    pace = Pace()
    pace.took(1.0, 10)
    pace.took(seconds, 10, 4)
    assert pace.growth == growth


def test_a_run_of_several_teaches_nothing_before_one_alone_was_seen() -> None:
    pace = Pace()
    pace.took(5.0, 10, 4)
    assert pace.seconds(10, 4) == 0.0
