"""What the ladder tries, what a step is worth, and what is made of Q_max and T_total."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.capacity import Demand, Ladder, Step, percentile, plan
from firstword.errors import FirstwordError


def step(sessions: int, first_s: float = 0.1, failed: int = 0, silent: int = 0) -> Step:
    return Step(sessions, [first_s] * 100, failed, silent)


def climb(capacity: int, most: int) -> tuple[Ladder, list[int]]:
    """Let an instance that carries `capacity` sessions be found out."""
    ladder, tried = Ladder(0.5, most), []
    while (sessions := ladder.next()) is not None:
        tried.append(sessions)
        ladder.took(step(sessions, 0.1 if sessions <= capacity else 2.0))
    return ladder, tried


def test_it_doubles_and_then_halves_the_distance() -> None:
    ladder, tried = climb(11, 64)
    assert tried == [1, 2, 4, 8, 16, 12, 10, 11]
    assert (ladder.carried, ladder.bounded) == (11, True)


def test_the_most_that_is_tried_is_only_a_lower_bound() -> None:
    ladder, tried = climb(100, 6)
    assert tried == [1, 2, 4, 6]
    assert (ladder.carried, ladder.bounded) == (6, False)


@given(st.integers(0, 2000), st.integers(1, 1500))
def test_the_answer_is_right_within_a_tenth_and_soon_there(capacity: int, most: int) -> None:
    ladder, tried = climb(capacity, most)
    assert len(tried) <= 18
    assert ladder.carried <= min(capacity, most)
    assert ladder.carried >= min(capacity, most) * 0.9 - 1
    assert len(set(tried)) == len(tried)


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (step(1), ""),
        (step(1, 0.6), "p95 0.600 s"),
        (step(1, failed=1), ""),
        (Step(1, [0.1] * 9, failed=1, why="busy"), "1 of 10 turns failed (busy)"),
        (Step(1, failed=3, why="busy"), "3 of 3 turns failed"),
        (Step(1), "p95 inf s"),
        (step(1, silent=5), ""),
        (step(1, silent=6), "6 of 100 turns fell silent"),
    ],
)
def test_a_step_is_met_or_says_why_not(outcome: Step, says: str) -> None:
    problem = Ladder(0.5, 4).took(outcome)
    assert says in problem
    assert bool(problem) == bool(says)


def test_the_95th_of_a_hundred() -> None:
    assert percentile([float(n) for n in range(100, 0, -1)], 0.95) == 95
    assert percentile([3.0], 0.95) == 3
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_what_comes_until_an_instance_serves_has_room() -> None:
    made = plan(24, 300, Demand(peak=200, growth_per_minute=6, speaking=0.5, least=2))
    assert made.per_instance == 48
    assert made.scale_out_at == 33  # 30 sessions come in 300 s, 15 on each of two
    assert made.scale_in_at == 16.5
    assert (made.least, made.most) == (2, 7)
    assert made.context() == {
        "target_sessions": "33",
        "scale_in_sessions": "16.5",
        "min_instances": "2",
        "max_instances": "7",
    }


@given(
    st.integers(1, 500),
    st.floats(1, 3600),
    st.integers(1, 5000),
    st.floats(0, 1),
    st.floats(0.05, 1),
    st.integers(1, 50),
)
def test_no_plan_lets_an_instance_carry_too_much(
    q_max: int, total_s: float, peak: int, growth: float, speaking: float, least: int
) -> None:
    demand = Demand(peak, growth * peak, speaking, least)
    try:
        made = plan(q_max, total_s, demand)
    except FirstwordError as error:
        assert "--least" in error.message  # nothing else is wrong with these
        advised = int(error.message.split("keep at least ")[1].split()[0])
        assert advised > least
        made = plan(q_max, total_s, Demand(peak, growth * peak, speaking, advised))
    comes = demand.growth_per_minute * total_s / 60
    assert made.scale_out_at + comes / made.least <= made.per_instance
    assert made.scale_out_at > 0
    assert made.scale_in_at <= made.scale_out_at / 2
    assert made.most >= made.least
    assert (made.most - 1) * made.per_instance >= peak or made.most == made.least
    assert made.most * made.scale_out_at >= peak


@pytest.mark.parametrize(
    ("q_max", "total_s", "demand", "says"),
    [
        (0, 300, Demand(10, 1), "not even one session"),
        (8, 0, Demand(10, 1), "until an instance serves"),
        (8, 4000, Demand(10, 1), "until an instance serves"),
        (8, math.nan, Demand(10, 1), "until an instance serves"),
        (8, 300, Demand(0, 0), "peak"),
        (8, 300, Demand(10, -1), "at least 0"),
        (8, 300, Demand(10, math.nan), "at least 0"),
        (8, 300, Demand(10, 11), "the whole peak"),
        (8, 300, Demand(10, 1, speaking=0), "share"),
        (8, 300, Demand(10, 1, speaking=1e-310), "share"),
        (8, 300, Demand(10, 1, speaking=1.5), "share"),
        (8, 300, Demand(10, 1, least=0), "at least one instance"),
        (8, 300, Demand(100, 10, least=1), "keep at least"),
    ],
)
def test_nonsense_is_refused_with_the_reason(
    q_max: int, total_s: float, demand: Demand, says: str
) -> None:
    with pytest.raises(FirstwordError, match=says):
        plan(q_max, total_s, demand)


@pytest.mark.parametrize(("slo_s", "most"), [(0, 4), (11, 4), (math.nan, 4), (0.5, 0)])
def test_a_ladder_to_nowhere_is_refused(slo_s: float, most: int) -> None:
    with pytest.raises(FirstwordError):
        Ladder(slo_s, most)
