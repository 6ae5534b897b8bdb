"""Phonemes of a clause, dealt out to its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.g2p.align import split
from services.inference.word_times import joined


@pytest.mark.parametrize(
    ("together", "alone", "parts"),
    [
        ("nˈɛs pˈa", ["nɛ", "sə", "pˈa"], ["nˈɛ", "s ", "pˈa"]),
        ("ˈʌvðə haʊs", ["ˈʌv", "ðˈiː", "haʊs"], ["ˈʌv", "ðə ", "haʊs"]),
        ("a bˈi sˈi", ["abˈi", "sˈi"], ["a bˈi ", "sˈi"]),
        ("", ["a", "b"], ["", ""]),
        ("abc", ["abc"], ["abc"]),
        ("abc", [], []),
        ("", ["", ""], ["", ""]),
        ("ab", ["ab", ""], ["ab", ""]),
        ("xy", ["", "ab"], ["", "xy"]),
    ],
)
def test_each_word_has_its_part(together: str, alone: list[str], parts: list[str]) -> None:
    assert split(together, alone) == parts


@given(st.text("abˈ "), st.lists(st.text("abˈ "), min_size=1))
def test_the_parts_are_the_whole_and_as_many_as_words(together: str, alone: list[str]) -> None:
    parts = split(together, alone)
    assert "".join(parts) == together
    assert len(parts) == len(alone)


def test_what_stands_for_the_same_characters_is_one_word() -> None:
    said = [(0, 3, 0.0, 0.2), (4, 6, 0.2, 0.5), (4, 6, 0.5, 0.9), (7, 11, 1.0, 1.1)]
    assert joined(said) == ((0, 3, 0.0, 0.2), (4, 6, 0.2, 0.9), (7, 11, 1.0, 1.1))
    assert joined([(0, 2, 0.0, 0.1), (0, 10, 0.1, 0.4)]) == ((0, 10, 0.0, 0.4),)
    assert joined([]) == ()
