"""What our own code fails on, again and again: after some tries it is put aside.

Pure. Only for failures of code that decides: a server that is away says nothing about an entry.
"""

from __future__ import annotations

import traceback
from pathlib import Path

TRIES = 3
KEPT = 1000
"""Of so many things the failures are remembered; the oldest are forgotten."""


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
