"""Arithmetic on stream entry ids."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firstword.ids import START, id_after, id_before, id_key, is_entry_id, seconds_between

LAST = 2**64 - 1
pairs = st.tuples(st.integers(0, 10**15), st.sampled_from([0, 1, LAST - 1, LAST]) | st.integers(0))


def as_id(pair: tuple[int, int]) -> str:
    return f"{pair[0]}-{pair[1]}"


valid_pairs = pairs.filter(lambda pair: pair[1] <= LAST)


@given(valid_pairs)
def test_an_id_is_its_two_numbers(pair: tuple[int, int]) -> None:
    assert id_key(as_id(pair)) == pair
    assert is_entry_id(as_id(pair))


def test_ids_are_ordered_as_numbers_not_as_text() -> None:
    ids = ["10-0", "9-0", "9-10", "9-9"]
    assert sorted(ids, key=id_key) == ["9-0", "9-9", "9-10", "10-0"]


def test_an_id_without_a_sequence_is_the_first_of_its_millisecond() -> None:
    assert id_key("1700000000000") == (1_700_000_000_000, 0)
    assert id_after("1700000000000") == "1700000000000-1"


@given(valid_pairs)
@example((5, LAST))
def test_the_next_id_is_the_least_that_is_greater(pair: tuple[int, int]) -> None:
    after = id_after(as_id(pair))
    assert id_key(after) > pair
    assert id_key(after)[1] <= LAST
    assert id_before(after) == as_id(pair)


@given(valid_pairs.filter(lambda pair: pair != (0, 0)))
@example((5, 0))
def test_the_id_before_is_the_greatest_that_is_less(pair: tuple[int, int]) -> None:
    before = id_before(as_id(pair))
    assert id_key(before) < pair
    assert id_after(before) == as_id(pair)


def test_nothing_is_before_the_start() -> None:
    assert id_before(START) == START


@pytest.mark.parametrize(
    "text", ["", "-", "5", "5-", "-5", "a-b", "1-2-3", " 1-2", "1-2\n", "٥-٥", "1" * 21 + "-0", "$"]
)
def test_what_is_no_complete_id(text: str) -> None:
    assert not is_entry_id(text)


def test_seconds_between() -> None:
    assert seconds_between("1700000000000-7", "1700000000250-0") == 0.25
    assert seconds_between("1700000000250-0", "1700000000000-0") == -0.25
