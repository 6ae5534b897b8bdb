"""The threads that an engine works in, and whether one of them hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from services.inference.synthesizer import SynthesisError

T = TypeVar("T")


class Job(Generic[T]):
    """One piece of work; `waited_s` and `worked_s` are known when it has ended."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._submitted = time.monotonic()
        self.started: float | None = None
        self.waited_s = 0.0
        self.worked_s = 0.0
        self.future: Future[T]

    def run(self) -> T:
        self.started = time.monotonic()
        self.waited_s = self.started - self._submitted
        try:
            return self._work()
        finally:
            self.worked_s = time.monotonic() - self.started


class Workers:
    """First come, first served, one piece of a request at a time.

    A request submits its next piece when the one before is done, so requests take turns and a
    short one waits for one piece of a long one, not for all of it. Another order (by deadline) is
    a matter of this class alone.
    """

    def __init__(self, count: int, hang_s: float) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="synthesis")
        self._count = count
        self._hang_s = hang_s
        self._jobs: set[Job[object]] = set()

    def submit(self, work: Callable[[], T]) -> Job[T]:
        job = Job(work)
        tracked: Job[object] = job  # type: ignore[assignment] # only its times are looked at
        self._jobs.add(tracked)
        job.future = self._pool.submit(job.run)
        job.future.add_done_callback(lambda _: self._jobs.discard(tracked))
        return job

    async def result(self, job: Job[T]) -> T:
        """What the work returned or raised. Raises SynthesisError `synthesis_stuck` if it hangs,
        or if it waits while all workers hang."""
        future = asyncio.wrap_future(job.future)
        try:
            while not (await asyncio.wait({future}, timeout=self._patience(job)))[0]:
                if self._overdue(job) or self.stuck() == self._count:
                    message = f"the engine did not answer within {self._hang_s:g} s; try elsewhere"
                    raise SynthesisError("synthesis_stuck", message, retryable=True)
            return future.result()
        finally:
            future.cancel()  # nobody waits any more: work that has not begun never does

    def stuck(self) -> int:
        """How many workers hang now."""
        return sum(self._overdue(job) for job in list(self._jobs))

    @property
    def busy(self) -> bool:
        """Whether a worker works now."""
        return any(job.started is not None for job in list(self._jobs))

    def close(self) -> None:
        """Forget what waits; what runs goes on, and nobody waits for it."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _overdue(self, job: Job[T]) -> bool:
        return job.started is not None and time.monotonic() - job.started >= self._hang_s

    def _patience(self, job: Job[T]) -> float:
        if job.started is None:
            return self._hang_s
        return max(0.0, job.started + self._hang_s - time.monotonic())
