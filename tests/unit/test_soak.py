"""The soak's arithmetic: growth is seen, noise is not, and its sentences are all different."""

from __future__ import annotations

import pytest

from benchmarks import soak


def test_flat_is_flat_and_growth_is_growth() -> None:
    flat = [400.0, 500.0, 510.0, 505.0, 512.0, 505.0, 511.0, 508.0] * 2
    assert abs(soak.growth(flat)) < soak.ALLOWED
    grown = [500.0 + 5 * step for step in range(20)]
    assert soak.growth(grown) > soak.ALLOWED
    assert soak.growth([100.0, 200.0]) == pytest.approx(0.0), "too short to tell"


def test_sentences_are_all_different_and_the_same_every_time() -> None:
    texts = list(soak.sentences(200))
    assert len(set(texts)) == 200 and texts == list(soak.sentences(200))
    assert {len(text.split()) for text in texts} >= set(range(2, 20))
