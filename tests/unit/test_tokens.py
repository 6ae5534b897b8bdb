"""Pieces like a language model's tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firstword.tokens import tokens


@given(st.text())
def test_joined_pieces_are_the_text(text: str) -> None:
    pieces = tokens(text)
    assert "".join(pieces) == text
    assert all(pieces)


@given(st.text(), st.text())
def test_pieces_are_short(text: str, more: str) -> None:
    assert all(len(piece) <= 9 for piece in tokens(text + more))


def test_words_carry_their_space_and_punctuation_stands_apart() -> None:
    assert tokens("Don't panic, it is synthesised.\n\nReally?!  Yes") == [
        *("Don", "'t", " panic", ",", " it", " is", " synthesi", "sed", "."),
        *("\n", "\n", "Really", "?!", " ", " Yes"),
    ]
