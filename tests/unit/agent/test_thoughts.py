"""Reasoning between tags is not spoken, however the answer is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.agent.thoughts import Thoughts


def spoken(pieces: list[str]) -> str:
    thoughts = Thoughts()
    return "".join([thoughts.feed(piece) for piece in pieces]) + thoughts.end()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Just an answer.", "Just an answer."),
        ("<think>Hm. < /think> <think></think>\n\nYes.", "Yes."),
        (" \n<think></think>Yes. </think>", "Yes. </think>"),
        ("No tag: <think> is a word here.", "No tag: <think> is a word here."),
        ("<thinking>Hm.</think></thinking> Yes.", "Yes."),
        ("<thin air", "<thin air"),
        ("<thi", "<thi"),
        (" ", " "),
        ("<think>never over", ""),
        ("", ""),
    ],
)
def test_what_is_said(written: str, said: str) -> None:
    assert spoken([written]) == said
    assert spoken(list(written)) == said


@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<thinking>", "</thinking>", "<th", "ink>", " ", "a", "</"]
        )
    ),
    st.data(),
)
def test_cuts_do_not_matter(words: list[str], data: st.DataObject) -> None:
    written = "".join(words)
    cuts = data.draw(st.sets(st.integers(0, len(written))))
    edges = sorted({0, len(written), *cuts})
    assert spoken([written[a:b] for a, b in pairwise(edges)]) == spoken([written])
