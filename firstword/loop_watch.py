"""Whether the event loop turns: a timer that says how late it was woken.

A loop that is blocked answers nothing, `/livez` included; what it can tell is that it was blocked
just now, and that its own timer has died.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from firstword import telemetry

TICK_S = 0.1
KEPT_S = 10.0
"""So far back `worst_s` looks."""
DEAD_S = 5.0
"""A timer that has not come for so long, in a loop that answers, is gone."""


class LoopWatch:
    """Runs beside everything else of a process; its measure is also a metric."""

    def __init__(self) -> None:
        self._late: deque[float] = deque([0.0], maxlen=round(KEPT_S / TICK_S))
        self._ticked_at = time.monotonic()

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            due = time.monotonic() + TICK_S
            await asyncio.sleep(TICK_S)
            self._ticked_at = time.monotonic()
            late_s = max(0.0, self._ticked_at - due)
            self._late.append(late_s)
            telemetry.loop_late.observe(late_s)

    @property
    def worst_s(self) -> float:
        """The latest that it was of late, seconds."""
        return max(self._late)

    @property
    def alive(self) -> bool:
        """Whether the timer still comes."""
        return time.monotonic() - self._ticked_at < DEAD_S
