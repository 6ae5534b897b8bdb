"""Characters that were cut between two pieces."""

from __future__ import annotations

import pytest

from services.segmenter.repair import repair


@pytest.mark.parametrize(
    ("text", "whole", "held"),
    [
        ("plain", "plain", ""),
        ("naïve", "naïve", ""),
        ("\ud83d\ude00", "😀", ""),
        ("a\ud83d", "a", "\ud83d"),
        ("\udcc3\udca9", "é", ""),
        ("a\udcc3", "a", "\udcc3"),
        ("a\udcf0\udc9f\udc98", "a", "\udcf0\udc9f\udc98"),
        ("\udcf0\udc9f\udc98\udc80", "😀", ""),
        ("\udcff", "\ufffd", ""),
        ("\udcff\udcc3", "\ufffd", "\udcc3"),
        ("\udd00x", "\ufffdx", ""),
        ("\ud83dx", "\ufffdx", ""),
        ("\ud83d\udc80", "💀", ""),  # a pair whose second half looks like a byte
    ],
)
def test_repair(text: str, whole: str, held: str) -> None:
    assert repair(text, final=False) == (whole, held)


def test_what_is_held_at_the_end_is_replaced() -> None:
    assert repair("a\ud83d", final=True) == ("a\ufffd", "")
    assert repair("a\udcc3", final=True) == ("a\ufffd", "")
