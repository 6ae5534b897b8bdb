"""Which piece the device makes next. Pure: pieces and `now` in, decisions out.

One queue for all sessions. A piece is as urgent as its listener is near to silence: `due` is the
moment when what the listener has is used up. A turn's first piece goes `FIRST_S` before that, so
it overtakes whoever has sound left, and also whoever has been in silence for a little less. Since
`due` is a moment and not a span, whatever waits becomes more urgent than all that comes later:
nothing starves, however many turns begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FIRST_S: Final = 1.0
"""So much earlier than its `due` a turn's first piece is wanted. Longer would let a stream of new
callers keep a listener in silence for longer."""

MAX_AHEAD_S: Final = 30.0
"""More audio than this counts as this: so nobody waits longer, whatever was asked for."""

ALIKE: Final = 1.5
"""Pieces of one run differ by this factor at most: the shorter ones are padded to the longest."""

LEAST_RETRY_S: Final = 0.05

_WEIGHT: Final = 0.2
"""Of the newest run in the average of what runs take."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One piece that waits for the device; equal to itself only.

    `due`: when its listener runs dry, on the clock of `now`. `first`: nothing of its turn was
    heard. `size`: how much work it is, in the engine's unit.
    """

    due: float
    first: bool = False
    size: int = 1

    @property
    def urgency(self) -> float:
        """The less, the sooner."""
        return self.due - FIRST_S if self.first else self.due


class Listener:
    """When the listener of one request runs dry, as far as it can be known here."""

    def __init__(self, now: float, deadline_ms: int | None) -> None:
        self.due = now + min(max(0.0, (deadline_ms or 0) / 1000), MAX_AHEAD_S)

    def given(self, now: float, seconds: float) -> None:
        """So much audio was handed over."""
        self.due = min(max(self.due, now) + seconds, now + MAX_AHEAD_S)


@dataclass(frozen=True, slots=True)
class Limits:
    """`workers`: runs at a time. `max_wait_s`: how long a listener may be kept in silence by
    others before new requests are refused. `hang_s`: when a run counts as hung."""

    workers: int
    max_wait_s: float
    hang_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What one worker makes now, since `started`."""

    jobs: tuple[Job, ...]
    started: float

    @property
    def size(self) -> int:
        """The work of it: padded to its longest piece."""
        return len(self.jobs) * max(job.size for job in self.jobs)


class Scheduler:
    """All that waits and runs on one device."""

    def __init__(self, limits: Limits) -> None:
        self.max_batch = 1
        """Most pieces of one run."""
        self._limits = limits
        self._waiting: dict[Job, None] = {}  # in the order of their coming
        self._runs: dict[Run, None] = {}
        self._pace: float | None = (
            None  # seconds of work for a size of 1; None before the first run
        )

    # ------------------------------------------------------------------ the queue

    def add(self, job: Job) -> None:
        """This piece is to be made."""
        self._waiting[job] = None

    def cancel(self, job: Job) -> bool:
        """Forget a piece that waits; False if it does not wait (any more)."""
        if job not in self._waiting:
            return False
        del self._waiting[job]
        return True

    def take(self, now: float) -> Run | None:
        """What a worker that is free makes next: the most urgent piece, and with it others that
        are like it if the engine makes several at once. None if nothing waits."""
        if not self._waiting:
            return None
        order = sorted(self._waiting, key=lambda job: job.urgency)
        batch = [job for job in order if _alike(order[0], job)][: self.max_batch]
        for job in batch:
            del self._waiting[job]
        run = Run(tuple(batch), now)
        self._runs[run] = None
        return run

    def ended(self, run: Run, now: float, size: int | None) -> None:
        """A run is over; `size`: the work it did, None if that says nothing about others."""
        del self._runs[run]
        if size is None:
            return
        pace = (now - run.started) / size
        self._pace = pace if self._pace is None else self._pace + _WEIGHT * (pace - self._pace)

    # ------------------------------------------------------------------ what can be known of it

    @property
    def waiting(self) -> int:
        """How many pieces wait."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many workers work."""
        return len(self._runs)

    @property
    def idle(self) -> bool:
        """Whether a piece that came now would be made at once."""
        return not self._waiting and len(self._runs) < self._limits.workers

    def stuck(self, now: float) -> int:
        """How many workers hang."""
        return sum(1 for run in self._runs if now - run.started >= self._limits.hang_s)

    def backlog_s(self, now: float) -> float:
        """Seconds until all is made that waits or runs, by what runs have taken so far."""
        return self._work_s(now, list(self._waiting)) / self._limits.workers

    def retry_after_s(self, now: float, *, due: float, first: bool) -> float:
        """0 if a request is to be taken, else in how many seconds it might be.

        It is not taken if what is more urgent would keep its listener in silence for more than
        `max_wait_s`. Its own work does not count: a long sentence alone is nobody's fault.
        """
        urgency = Job(due, first).urgency
        ahead = [job for job in self._waiting if job.urgency <= urgency]
        wait_s = self._work_s(now, ahead) / self._limits.workers
        late_s = wait_s - max(0.0, due - now) - self._limits.max_wait_s
        return max(late_s, LEAST_RETRY_S) if late_s > 0 else 0.0

    def _work_s(self, now: float, jobs: list[Job]) -> float:
        pace = self._pace or 0.0
        return sum(job.size * pace for job in jobs) + sum(self._left_s(now, pace))

    def _left_s(self, now: float, pace: float) -> Iterator[float]:
        for run in self._runs:
            yield max(0.0, run.started + run.size * pace - now)


def _alike(head: Job, job: Job) -> bool:
    """Whether a piece may go with the most urgent one without making it wait for much.

    First pieces keep to themselves: one that nobody waits for would only make them later.
    """
    longer, shorter = max(head.size, job.size), min(head.size, job.size)
    return head.first == job.first and longer <= ALIKE * shorter
