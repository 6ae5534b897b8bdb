"""Words begin and end with what is heard of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.word_times import Sounds, heard_begin, heard_end, joined

SOUNDS = ((30, 100), (150, 300))


@pytest.mark.parametrize(
    ("end", "heard"),
    [(60, 60), (100, 100), (110, 100), (150, 100), (160, 160), (300, 300), (999, 300), (20, 20)],
)
def test_a_word_ends_before_the_silence_behind_it(end: float, heard: float) -> None:
    assert heard_end(SOUNDS, end) == heard


@pytest.mark.parametrize(
    ("begin", "before", "end", "heard"),
    [
        (160, 120, 250, 150),  # it has begun a little before
        (140, 120, 250, 150),  # or begins a little later
        (160, 155, 250, 160),  # the word before is heard until then
        (110, 100, 140, 110),  # nothing is heard of it
        (310, 300, 400, 310),
        (40, 0, 90, 30),
    ],
)
def test_a_word_begins_with_its_sound(
    begin: float, before: float, end: float, heard: float
) -> None:
    assert heard_begin(SOUNDS, begin, before, end) == heard


@given(
    st.lists(st.integers(0, 1000), unique=True).map(sorted),
    st.lists(st.integers(0, 1000), min_size=3, max_size=3).map(sorted),
)
def test_a_word_stays_behind_the_one_before(edges: list[int], times: list[int]) -> None:
    sounds: Sounds = list(zip(edges[::2], edges[1::2], strict=False))
    before, begin, end = times
    begins = heard_begin(sounds, begin, before, end)
    assert before <= begins <= max(begin, end)
    assert heard_end(sounds, before) <= before


def test_words_of_one_place_in_the_text_are_one() -> None:
    words = [(0, 2, 0.1, 0.3), (0, 2, 0.3, 0.6), (3, 7, 0.7, 0.9)]
    assert joined(words) == ((0, 2, 0.1, 0.6), (3, 7, 0.7, 0.9))
