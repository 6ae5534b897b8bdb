"""The threads: one hand-over, the scheduler's order, and what hangs, stops or breaks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from services.inference.scheduler import Job, Limits
from services.inference.synthesizer import Stopped, SynthesisError
from services.inference.workers import Workers
from tests.support import eventually

LIMITS = Limits(workers=1, max_wait_s=0.5, hang_s=60.0)


class Bench:
    """Something that makes strings, and can be held up while it does."""

    def __init__(self) -> None:
        self.runs: list[list[str]] = []
        self.free = threading.Event()
        self.free.set()

    def make(self, works: Sequence[str]) -> list[str | Exception]:
        self.runs.append(list(works))
        self.free.wait()
        if "break" in works:
            raise RuntimeError("all of it")
        return [ValueError(w) if w == "fail" else w.upper() for w in works]


@contextmanager
def workers(bench: Bench, limits: Limits = LIMITS) -> Iterator[Workers[str, str]]:
    made: Workers[str, str] = Workers(limits, bench.make, len)
    try:
        yield made
    finally:
        bench.free.set()
        made.close()


async def test_a_work_is_made() -> None:
    bench = Bench()
    with workers(bench) as made:
        assert made.idle and not made.busy
        ticket = made.submit("hello", Job(0.0))
        assert await made.result(ticket) == "HELLO"
        assert ticket.waited_s >= 0 and made.idle


async def test_the_urgent_are_made_first_and_the_cancelled_never() -> None:
    bench = Bench()
    with workers(bench) as made:
        bench.free.clear()
        running = made.submit("a", Job(0.0))
        await eventually(lambda: bench.runs == [["a"]], "the worker works")
        assert made.busy and not made.idle
        later, sooner = made.submit("later", Job(9.0)), made.submit("sooner", Job(8.0))
        gone = made.submit("gone", Job(7.0))
        assert gone.waited_s == 0
        made.cancel(gone)
        with pytest.raises(Stopped):
            await made.result(gone)
        bench.free.set()
        assert [await made.result(t) for t in (running, later, sooner)] == ["A", "LATER", "SOONER"]
        assert bench.runs == [["a"], ["sooner"], ["later"]]
        made.cancel(sooner)  # it is made already: nothing happens


async def test_several_are_made_together() -> None:
    bench = Bench()
    with workers(bench) as made:
        made.batch_up_to(2)
        bench.free.clear()
        words = ["a", "b", "fail", "d", "e"]
        tickets = [made.submit(w, Job(n, first=True)) for n, w in enumerate(words)]
        await eventually(lambda: bool(bench.runs), "the worker works")
        bench.free.set()
        results = await asyncio.gather(*map(made.result, tickets), return_exceptions=True)
        assert [str(result) for result in results] == ["A", "B", "fail", "D", "E"]
        assert max(map(len, bench.runs)) == 2


async def test_a_break_is_told_to_everyone_in_it_and_the_worker_lives() -> None:
    bench = Bench()
    with workers(bench) as made:
        with pytest.raises(RuntimeError, match="all of it"):
            await made.result(made.submit("break", Job(0.0)))
        assert await made.result(made.submit("on", Job(0.0))) == "ON"


async def test_nobody_waits_any_more_then_it_is_never_begun() -> None:
    bench = Bench()
    with workers(bench) as made:
        bench.free.clear()
        first = made.submit("first", Job(0.0))
        await eventually(lambda: bool(bench.runs), "the worker works")
        waiting = asyncio.create_task(made.result(made.submit("second", Job(1.0))))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        bench.free.set()
        await made.result(first)
        assert await made.result(made.submit("third", Job(0.0))) == "THIRD"
        assert bench.runs == [["first"], ["third"]]


async def test_a_hang_is_told_to_who_runs_and_who_waits() -> None:
    bench = Bench()
    with workers(bench, Limits(1, 0.5, hang_s=0.05)) as made:
        bench.free.clear()
        tickets = [made.submit(w, Job(0.0)) for w in ("hangs", "waits")]
        for ticket in tickets:
            with pytest.raises(SynthesisError, match="synthesis_stuck"):
                await made.result(ticket)
        assert made.stuck == 1 and made.all_stuck
        bench.free.set()
        await eventually(lambda: not made.stuck, "the hang is over")


async def test_one_worker_that_hangs_does_not_stop_the_other() -> None:
    bench = Bench()
    with workers(bench, Limits(2, 0.5, hang_s=0.05)) as made:
        bench.free.clear()
        with pytest.raises(SynthesisError, match="synthesis_stuck"):
            await made.result(made.submit("hangs", Job(0.0)))
        assert made.stuck == 1 and not made.all_stuck


async def test_what_waits_at_the_end_is_stopped() -> None:
    bench = Bench()
    with workers(bench) as made:
        bench.free.clear()
        made.submit("runs", Job(0.0))
        await eventually(lambda: bool(bench.runs), "the worker works")
        ticket = made.submit("waits", Job(1.0))
        made.close()
        with pytest.raises(Stopped):
            await made.result(ticket)


async def test_a_backlog_refuses_those_it_would_keep_waiting() -> None:
    bench = Bench()
    with workers(bench) as made:
        assert made.retry_after_s(due=0.0, first=True) == 0.0
        await made.result(made.submit("x", Job(0.0)))  # now it knows what a character takes
        bench.free.clear()
        for _ in range(2):
            made.submit("very long", Job(0.0, size=10**10))
        assert made.backlog_s() > 100
        assert made.retry_after_s(due=0.0, first=False) > 100
