"""How long the engine takes, learned from what it has made. Pure."""

from __future__ import annotations

from typing import Final

CHEAP: Final = 0.5
"""Where a further piece adds at most this share of the first, all of a run are heard sooner, on the
average, than one after the other: (1 + n) / 2 pieces' time is what they would wait for then."""

_UNTRIED: Final = 0.25
"""Taken for what a further piece adds until a run of several was seen."""

_WEIGHT: Final = 0.2
"""Of the newest run in the average of what runs take."""


class Pace:
    """Seconds by size, in the engine's unit, and what a run of several costs."""

    def __init__(self) -> None:
        self._per_size: float | None = None
        self._growth: float | None = None

    @property
    def growth(self) -> float:
        """What each further piece of a run adds, as a share of the first."""
        return _UNTRIED if self._growth is None else self._growth

    def seconds(self, size: int, pieces: int = 1) -> float:
        """Of a run of so many pieces that are padded to this size; 0 before the first run."""
        return size * (self._per_size or 0.0) * pieces * self.share(pieces)

    def share(self, pieces: int) -> float:
        """Of the time that so many pieces take one by one: what they take in one run."""
        return (1 + self.growth * (pieces - 1)) / pieces

    def took(self, seconds: float, size: float, pieces: int = 1) -> None:
        """Such a run was made in so many seconds."""
        if pieces == 1:
            self._per_size = _average(self._per_size, seconds / size)
        elif self._per_size:
            growth = (seconds / (size * self._per_size) - 1) / (pieces - 1)
            self._growth = _average(self._growth, min(max(growth, 0.0), 1.0))


def _average(known: float | None, new: float) -> float:
    return new if known is None else known + _WEIGHT * (new - known)
