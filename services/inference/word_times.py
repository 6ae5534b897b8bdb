"""Words of the text from what was said: a number is several words to the ear, one to the eye."""

from __future__ import annotations

from collections.abc import Iterable

from firstword.session_protocol import Words


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
