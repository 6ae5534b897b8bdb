"""What cannot be handled: entries that our own code fails on, and entries that come in floods.

Pure. Tries are counted only of code that decides: a server that is away says nothing of an entry.
"""

from __future__ import annotations

import traceback
from collections import deque
from pathlib import Path

TRIES = 3
KEPT = 1000
"""Of so many things the failures are remembered; the oldest are forgotten."""

FLOOD_PER_S = 1
"""More dead letters than this a second, over FLOOD_S, are a flood: somebody's publisher is broken.
The alert FirstwordPoisonFlood goes by the same; a test holds the two together."""
FLOOD_S = 60
OVER_S = 15
"""A flood of which nothing came for so long is over."""


def where(error: BaseException) -> str:
    """Where in the code it began. Its message is left out: it may hold what a customer said."""
    frames = traceback.extract_tb((error.__cause__ or error).__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


class Poison:
    """Counts failures by what was worked on; one for as long as a unit is worked on."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}

    def failed(self, what: str) -> bool:
        """It failed once more; returns whether it is to be put aside now."""
        self._failures[what] = self._failures.pop(what, 0) + 1
        if len(self._failures) > KEPT:
            del self._failures[next(iter(self._failures))]
        return self.is_over(what)

    def is_over(self, what: str) -> bool:
        """Whether it failed often enough to be put aside."""
        return self._failures.get(what, 0) >= TRIES

    def forget(self, what: str) -> None:
        """It was put aside; what comes under its name is something else."""
        self._failures.pop(what, None)


class Flood:
    """Counts the dead letters of one process; `now` is monotonic seconds."""

    def __init__(self) -> None:
        self._came: deque[float] = deque(maxlen=KEPT)

    def came(self, now: float) -> None:
        """One more entry is put aside."""
        if self._is_over(now):
            self._came.clear()  # a single one after a flood begins no other
        self._came.append(now)

    def problem(self, now: float) -> str | None:
        """What comes and what to do, for `/readyz`; None while it is no flood."""
        lately = sum(now - at < FLOOD_S for at in self._came)
        if lately <= FLOOD_PER_S * FLOOD_S or self._is_over(now):
            return None
        count = f"{lately} or more" if lately == KEPT else str(lately)
        return (
            f"{count} entries of the last {FLOOD_S} s could not be used and were put aside; all "
            "others are served. `firstword dead list` says which and why, the entry "
            "FirstwordPoisonFlood of docs/RUNBOOK.md how to stop who writes them"
        )

    def _is_over(self, now: float) -> bool:
        return not self._came or now - self._came[-1] >= OVER_S
