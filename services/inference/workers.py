"""The threads that an engine works in: they make what the scheduler hands out.

All decisions are the scheduler's; this module has the lock around it, the clock, and the hand-over
to a thread and back.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, TypeVar

from services.inference.scheduler import Job, Limits, Run, Scheduler
from services.inference.synthesizer import Stopped, SynthesisError

W = TypeVar("W")
R = TypeVar("R")


class Ticket(Generic[W, R]):
    """One piece of work; `waited_s` is known when it has begun."""

    def __init__(self, work: W, job: Job) -> None:
        self.work = work
        self.job = job
        self.future: Future[R] = Future()
        self.submitted = time.monotonic()
        self.started: float | None = None

    @property
    def waited_s(self) -> float:
        return 0.0 if self.started is None else self.started - self.submitted


class Workers(Generic[W, R]):
    """Makes works in threads, in the scheduler's order.

    `make` returns the outcome of each work, in order: a result, or an exception.
    `size` says how much work a result was, None if that is of no use for estimates.
    """

    def __init__(
        self,
        limits: Limits,
        make: Callable[[Sequence[W]], Sequence[R | Exception]],
        size: Callable[[R], int | None],
    ) -> None:
        self._limits = limits
        self._make = make
        self._size = size
        self._scheduler = Scheduler(limits)
        self._tickets: dict[Job, Ticket[W, R]] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            # A thread that hangs must not keep the process from ending.
            threading.Thread(target=self._work, name=f"synthesis-{number}", daemon=True)
            for number in range(limits.workers)
        ]
        for thread in self._threads:
            thread.start()

    def batch_up_to(self, pieces: int) -> None:
        """Set how many works `make` may be given in one run."""
        with self._changed:
            self._scheduler.max_batch = pieces

    @contextmanager
    def expecting(self, job: Job) -> Iterator[None]:
        """Within the block, a work that is not submitted yet counts for what others must wait."""
        with self._changed:
            self._scheduler.expect(job)
        try:
            yield
        finally:
            with self._changed:
                self._scheduler.came(job)

    def submit(self, work: W, job: Job) -> Ticket[W, R]:
        """Queue a work; returns at once. `job`, which no other work has, decides its place in the
        queue. `result` waits for it, `cancel` takes it back."""
        ticket: Ticket[W, R] = Ticket(work, job)
        with self._changed:
            self._scheduler.add(job)
            self._tickets[job] = ticket
            self._changed.notify()
        return ticket

    def cancel(self, ticket: Ticket[W, R]) -> None:
        """Drop a waiting work: its result is `Stopped`, at once. One that runs goes on."""
        with self._changed:
            waits = self._scheduler.cancel(ticket.job)
            self._tickets.pop(ticket.job, None)
        if waits and ticket.future.set_running_or_notify_cancel():
            ticket.future.set_exception(Stopped())

    async def result(self, ticket: Ticket[W, R]) -> R:
        """The work's result, or raises the exception that it ended in. Raises SynthesisError
        `synthesis_stuck` if it hangs, or if it waits while all workers hang."""
        future = asyncio.wrap_future(ticket.future)
        try:
            while not (await asyncio.wait({future}, timeout=self._patience(ticket)))[0]:
                if self._overdue(ticket) or self.all_stuck:
                    raise self.stuck_error()
            return future.result()
        finally:
            self.cancel(ticket)  # nobody waits for it any more: if it has not begun, it never will
            future.cancel()

    def stuck_error(self) -> SynthesisError:
        message = f"the engine did not answer within {self._limits.hang_s:g} s; try elsewhere"
        return SynthesisError("synthesis_stuck", message, retryable=True)

    def retry_after_s(self, *, due: float, first: bool) -> float:
        """0 if a request may be admitted now, else after how many seconds to try again."""
        with self._changed:
            return self._scheduler.retry_after_s(time.monotonic(), due=due, first=first)

    def backlog_s(self) -> float:
        """Estimated seconds until all that waits or runs is made."""
        with self._changed:
            return self._scheduler.backlog_s(time.monotonic())

    @property
    def stuck(self) -> int:
        """How many workers hang now."""
        with self._changed:
            return self._scheduler.stuck(time.monotonic())

    @property
    def all_stuck(self) -> bool:
        """Whether every worker hangs."""
        return self.stuck == self._limits.workers

    @property
    def idle(self) -> bool:
        """Whether a work submitted now would begin at once."""
        with self._changed:
            return self._scheduler.idle

    @property
    def busy(self) -> bool:
        """Whether a worker works now."""
        with self._changed:
            return self._scheduler.running > 0

    def close(self) -> None:
        """Drop what waits; what runs goes on, and is not waited for."""
        with self._changed:
            self._closed = True
            waiting = list(self._tickets.values())
            self._changed.notify_all()
        for ticket in waiting:
            self.cancel(ticket)

    def _overdue(self, ticket: Ticket[W, R]) -> bool:
        started = ticket.started
        return started is not None and time.monotonic() - started >= self._limits.hang_s

    def _patience(self, ticket: Ticket[W, R]) -> float:
        if ticket.started is None:
            return self._limits.hang_s
        return max(0.0, ticket.started + self._limits.hang_s - time.monotonic())

    # ------------------------------------------------------------------ in the threads

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            run, tickets = taken
            outcomes = self._outcomes([ticket.work for ticket in tickets])
            sizes = [None if isinstance(o, Exception) else self._size(o) for o in outcomes]
            known = [size for size in sizes if size is not None]
            with self._changed:
                size = max(known) if len(known) == len(sizes) else None
                self._scheduler.ended(run, time.monotonic(), size)
            for ticket, outcome in zip(tickets, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    ticket.future.set_exception(outcome)
                else:
                    ticket.future.set_result(outcome)

    def _take(self) -> tuple[Run, list[Ticket[W, R]]] | None:
        """Wait for the next run; None once closed."""
        with self._changed:
            while not self._closed:
                run = self._scheduler.take(time.monotonic())
                if run is None:
                    self._changed.wait()
                    continue
                tickets = [self._tickets.pop(job) for job in run.jobs]
                for ticket in tickets:
                    ticket.started = run.started
                    ticket.future.set_running_or_notify_cancel()
                return run, tickets
            return None

    def _outcomes(self, works: Sequence[W]) -> Sequence[R | Exception]:
        try:
            return self._make(works)
        except Exception as error:
            return [error] * len(works)
