"""Times of the words of a text. A number is several spoken words but one in the text; and at a
pause, words begin and end where they are actually heard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firstword.session_protocol import Words

Sounds = Sequence[tuple[int, int]]
"""From where to where something is heard, in order; in samples."""


def heard_end(sounds: Sounds, end: float) -> float:
    """Where a word really ends that the model ends at `end`: models give most of a pause's silence
    to the last sound before it."""
    before = [past for first, past in sounds if first < end]
    return min(end, before[-1]) if before else end


def heard_begin(sounds: Sounds, begin: float, before: float, end: float) -> float:
    """Where a word really begins that the model places from `begin` to `end`: at the start of the
    sound heard there or next, unless that began during the word before, which ends at `before`."""
    for first, past in sounds:
        if past > begin:
            return first if before <= first < end else begin
    return begin


def joined(words: Iterable[tuple[int, int, float, float]]) -> Words:
    """Words for overlapping characters of the text are joined into one, from first to last."""
    kept: list[tuple[int, int, float, float]] = []
    for start, end, begins, ends in words:
        if kept and start < kept[-1][1]:
            last = kept[-1]
            kept[-1] = (min(last[0], start), max(last[1], end), last[2], max(last[3], ends))
        else:
            kept.append((start, end, begins, ends))
    return tuple(kept)
