"""Which piece the device makes next. Pure: pieces and `now` in, decisions out.

One queue for all sessions. A turn's first piece goes first, as long as no other listener runs dry
because of it; the other pieces go in the order in which their listeners would run dry. A listener
about to run dry goes before a first piece: better one more caller who waits a moment than one who
is cut off in the middle of a sentence. `due` is a point in time, so whatever waits becomes more
urgent than all that comes later, and nothing starves.

A run of several pieces delays a request that arrives meanwhile, which has to wait for all of it. So
an engine that can make several is given one piece at a time, with two exceptions: first pieces, if
that is cheap, and when so much waits that only runs of several keep up. `benchmarks/ladder.py`
shows what each rule is worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from services.inference.pace import CHEAP, Pace

PATIENCE_S: Final = 3.0
"""How long a first piece gives way to listeners about to run dry, until it is as urgent as they."""

SPARE_S: Final = 0.5
"""How long before a listener runs dry its piece should be made: estimates and networks vary."""

MAX_AHEAD_S: Final = 30.0
"""More audio than this counts as this much, so that no piece waits longer."""

ALIKE: Final = 1.5
"""Pieces of one run differ by this factor at most: the shorter ones are padded to the longest."""

CROWD_S: Final = 2.0
"""When making all that waits one by one would take longer than this, several go in one run."""

LEAST_RETRY_S: Final = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One piece that waits for the device; equal to itself only.

    `due`: when its listener runs dry, on the clock of `now`. `first`: its listener has heard
    nothing of the turn yet. `size`: how much work it is, in the engine's unit.
    """

    due: float
    first: bool = False
    size: int = 1

    @property
    def urgency(self) -> float:
        """The order in which pieces are made if not all can be made in time: least first."""
        return self.due + PATIENCE_S if self.first else self.due


class Listener:
    """When the listener of one request runs dry, as far as is known here."""

    def __init__(self, now: float, deadline_ms: int | None) -> None:
        self.due = now + min(max(0.0, (deadline_ms or 0) / 1000), MAX_AHEAD_S)

    def given(self, now: float, seconds: float) -> None:
        """`seconds` of audio were delivered."""
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
        """The size of its longest piece, to which the others are padded."""
        return max(job.size for job in self.jobs)


class Scheduler:
    """All that waits and runs on one device."""

    def __init__(self, limits: Limits) -> None:
        self.max_batch = 1
        """Most pieces of one run."""
        self._limits = limits
        self._waiting: dict[Job, None] = {}  # in the order of their coming
        self._expected: dict[Job, None] = {}
        self._runs: dict[Run, None] = {}
        self._pace = Pace()

    # ------------------------------------------------------------------ the queue

    def expect(self, job: Job) -> None:
        """Such a piece will be added soon: until `came`, it counts for what others must wait."""
        self._expected[job] = None

    def came(self, job: Job) -> None:
        """The expected piece was added, or never will be."""
        self._expected.pop(job, None)

    def add(self, job: Job) -> None:
        """Queue a piece."""
        self._waiting[job] = None

    def cancel(self, job: Job) -> bool:
        """Drop a waiting piece; False if it does not wait (any more)."""
        if job not in self._waiting:
            return False
        del self._waiting[job]
        return True

    def take(self, now: float) -> Run | None:
        """What a free worker makes next: one piece, or several of similar size. None if nothing
        waits."""
        if not self._waiting:
            return None
        order = self._order(now, self._waiting)
        pieces = self.max_batch if self._gains_by_several(order) else 1
        batch = [job for job in order if _alike(order[0], job)][:pieces]
        for job in batch:
            del self._waiting[job]
        run = Run(tuple(batch), now)
        self._runs[run] = None
        return run

    def _gains_by_several(self, order: Sequence[Job]) -> bool:
        cheap = order[0].first and self._pace.growth <= CHEAP
        return cheap or self._alone_s(order) > CROWD_S

    def _order(self, now: float, jobs: Iterable[Job]) -> list[Job]:
        """These pieces in the order in which to make them."""
        by_urgency = sorted(jobs, key=lambda job: job.urgency)
        firsts = [job for job in by_urgency if job.first]
        others = [job for job in by_urgency if not job.first]
        if firsts and others and self._in_time(now + self._alone_s(firsts[:1]), others):
            return [*firsts, *others]
        return by_urgency

    def _in_time(self, now: float, jobs: Iterable[Job]) -> bool:
        """Whether these pieces, made in this order from `now` on, all come in time."""
        for job in jobs:
            now += self._alone_s([job])
            if now > job.due - SPARE_S:
                return False
        return True

    def ended(self, run: Run, now: float, size: int | None) -> None:
        """A run is over; `size`: of its longest piece as it turned out, None if that is of no use
        for estimates."""
        del self._runs[run]
        if size is not None:
            self._pace.took(now - run.started, size, len(run.jobs))

    # ------------------------------------------------------------------ estimates

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
        """Whether a piece added now would be made at once."""
        return not self._waiting and len(self._runs) < self._limits.workers

    def stuck(self, now: float) -> int:
        """How many workers hang."""
        return sum(1 for run in self._runs if now - run.started >= self._limits.hang_s)

    def backlog_s(self, now: float) -> float:
        """Estimated seconds until all that waits, runs or is expected is made."""
        return self._work_s([*self._waiting, *self._expected]) + self._left_s(now)

    def retry_after_s(self, now: float, *, due: float, first: bool) -> float:
        """0 if a request may be admitted, else after how many seconds to try again.

        It is not admitted if the work ahead of it would keep its listener waiting for more than
        `max_wait_s`. Its own work does not count, however long its sentence.
        """
        new = Job(due, first)
        order = self._order(now, [*self._waiting, *self._expected, new])
        wait_s = self._work_s(order[: order.index(new)]) + self._left_s(now)
        late_s = wait_s - max(0.0, due - now) - self._limits.max_wait_s
        return max(late_s, LEAST_RETRY_S) if late_s > 0 else 0.0

    def _work_s(self, jobs: Iterable[Job]) -> float:
        """Seconds to make these, in runs of several if they are many."""
        alone_s = self._alone_s(jobs)
        if alone_s <= CROWD_S:
            return alone_s
        return max(CROWD_S, alone_s * self._pace.share(self.max_batch))

    def _alone_s(self, jobs: Iterable[Job]) -> float:
        """Seconds to make these one by one."""
        return self._pace.seconds(sum(job.size for job in jobs)) / self._limits.workers

    def _left_s(self, now: float) -> float:
        """Seconds until the present runs end; an overdue run is assumed to end now."""
        ends = (run.started + self._pace.seconds(run.size, len(run.jobs)) for run in self._runs)
        return sum(max(0.0, end - now) for end in ends) / self._limits.workers


def _alike(head: Job, job: Job) -> bool:
    """Whether a piece may be made with the most urgent one without delaying it much.

    First pieces are made only with first pieces: any other would only delay them.
    """
    longer, shorter = max(head.size, job.size), min(head.size, job.size)
    return head.first == job.first and longer <= ALIKE * shorter
