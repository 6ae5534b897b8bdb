"""Words of the text from what was said, and when: a number is several words to the ear, one to the
eye; and where there is a pause, words begin and end with what is heard of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firstword.session_protocol import Words

Sounds = Sequence[tuple[int, int]]
"""From where to where something is heard, in order; in samples."""


def heard_end(sounds: Sounds, end: float) -> float:
    """Where a word ends that a model lets end at `end`: models give the last sound before a pause
    most of the silence, too."""
    before = [past for first, past in sounds if first < end]
    return min(end, before[-1]) if before else end


def heard_begin(sounds: Sounds, begin: float, before: float, end: float) -> float:
    """Where a word begins that a model lets begin at `begin` and end at `end`: with the sound that
    is heard there or is the next, unless that has begun while the word before was said, which ends
    at `before`."""
    for first, past in sounds:
        if past > begin:
            return first if before <= first < end else begin
    return begin


def joined(words: Iterable[tuple[int, int, float, float]]) -> Words:
    """Those that stand for overlapping characters of the text are one, from first to last."""
    kept: list[tuple[int, int, float, float]] = []
    for start, end, begins, ends in words:
        if kept and start < kept[-1][1]:
            last = kept[-1]
            kept[-1] = (min(last[0], start), max(last[1], end), last[2], max(last[3], ends))
        else:
            kept.append((start, end, begins, ends))
    return tuple(kept)
