"""What fails again and again is put aside; what fails now and then is not mixed up with it."""

from __future__ import annotations

from firstword.poison import (
    FLOOD_PER_S,
    FLOOD_S,
    KEPT,
    OVER_S,
    TRIES,
    Flood,
    Poison,
    where,
)


def test_a_thing_is_over_after_some_tries() -> None:
    poison = Poison()
    assert [poison.failed("a") for _ in range(TRIES)] == [False] * (TRIES - 1) + [True]
    assert poison.is_over("a")
    assert not poison.is_over("b")
    poison.forget("a")
    assert not poison.is_over("a")


def test_only_so_many_are_remembered() -> None:
    poison = Poison()
    for number in range(KEPT + 1):
        poison.failed(f"entry {number}")
    assert len(poison._failures) == KEPT
    assert "entry 0" not in poison._failures


def test_where_it_was_raised_is_told_without_the_message() -> None:
    try:
        raise ValueError("what a customer said")
    except ValueError as error:
        assert where(error).startswith("test_poison.py:")
    assert where(ValueError("never raised")) == ""


def test_where_the_cause_was_raised() -> None:
    cause = ValueError()
    try:
        try:
            raise cause
        except ValueError as error:
            raise KeyError from error
    except KeyError as error:
        assert where(error) == where(cause)


def test_some_bad_entries_are_no_flood() -> None:
    flood = Flood()
    assert flood.problem(0.0) is None
    for second in range(10 * FLOOD_S):
        flood.came(second / FLOOD_PER_S)
        assert flood.problem(second / FLOOD_PER_S) is None


def test_more_than_so_many_a_minute_are_one_and_it_says_how_many() -> None:
    flood = Flood()
    for number in range(FLOOD_PER_S * FLOOD_S + 1):
        assert flood.problem(0.01 * number) is None
        flood.came(0.01 * number)
    told = flood.problem(1.0) or ""
    assert told.startswith("61 entries of the last 60 s")
    assert "firstword dead list" in told
    for _ in range(KEPT):
        flood.came(2.0)
    assert (flood.problem(2.0) or "").startswith(f"{KEPT} or more")


def test_a_flood_is_over_soon_after_its_last_entry_and_one_more_begins_none() -> None:
    flood = Flood()
    for _ in range(KEPT):
        flood.came(0.0)
    assert flood.problem(OVER_S - 0.1) is not None
    assert flood.problem(OVER_S) is None
    flood.came(OVER_S)
    assert flood.problem(OVER_S) is None
