"""What fails again and again is put aside; what fails now and then is not mixed up with it."""

from __future__ import annotations

from firstword.poison import KEPT, TRIES, Poison, where


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
