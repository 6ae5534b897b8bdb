"""The segmenter of one turn: what comes out, and when."""

from __future__ import annotations

from services.segmenter.core import Segment, Segmenter, SegmenterOptions


def test_a_sentence_leaves_one_token_after_its_mark() -> None:
    segmenter = Segmenter(SegmenterOptions(lang="en", stall=0))
    for token in ("It", " is", " done"):
        assert segmenter.push(token, 0.0) == []
    segmenter.push(".", 0.0)
    events = segmenter.push(" Next", 0.0)
    assert Segment("It is done.", "It is done.", 0, 11) in events
    assert segmenter.flush(0.0) == [Segment("Next", "Next", 12, 16)]
