"""Who works on what, on a real server: fair shares, take-over, hand-over, amnesty."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from prometheus_client import REGISTRY

from firstword import keys
from firstword.ownership import Lease, Ownership, offer
from firstword.streams import Streams
from tests.support import eventually

pytestmark = pytest.mark.streams

STAGE = "test"
LEASE = Lease(lease_s=0.6, beat_s=0.05)


@dataclass
class Worker:
    """An ownership with a shell that only remembers."""

    streams: Streams
    capacity: int = 1_000_000
    rebalances: bool = False
    units: set[str] = field(default_factory=set)
    rung: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ownership = Ownership(
            self.streams,
            STAGE,
            acquired=self.units.add,
            lost=self._lose,
            rung=self.rung.append,
            excess=self._hand_over if self.rebalances else None,
            capacity=self.capacity,
            lease=LEASE,
        )
        self._handing: dict[str, asyncio.Task[None]] = {}
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.ownership.run())

    async def die(self) -> None:
        """Stop without a word, as a killed process does."""
        if self.task is not None:
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task

    def _lose(self, unit: str) -> None:
        self.units.discard(unit)
        self.lost.append(unit)

    def _hand_over(self, unit: str) -> None:
        if unit not in self._handing:
            self._handing[unit] = asyncio.create_task(self._release(unit))

    async def _release(self, unit: str) -> None:
        self.units.discard(unit)
        await self.ownership.release(unit, to_others=True)
        del self._handing[unit]


@pytest.fixture
async def workers(streams: Streams) -> AsyncIterator[list[Worker]]:
    made: list[Worker] = []
    yield made
    for worker in made:
        await worker.die()


def names(count: int) -> list[str]:
    return [f"unit-{i}" for i in range(count)]


async def test_one_worker_takes_all_that_is_offered(
    streams: Streams, workers: list[Worker]
) -> None:
    workers.append(Worker(streams))
    workers[0].start()
    await offer(streams, STAGE, names(20))
    await eventually(lambda: workers[0].units == set(names(20)), "all units are claimed")
    assert await workers[0].ownership.owns("unit-3")
    assert workers[0].ownership.problem() is None


async def test_offering_again_moves_nothing(streams: Streams, workers: list[Worker]) -> None:
    workers.append(Worker(streams))
    workers[0].start()
    await offer(streams, STAGE, names(5))
    await eventually(lambda: len(workers[0].units) == 5, "the units are claimed")
    await offer(streams, STAGE, names(5))
    assert await streams.commands.zcard(keys.free(STAGE)) == 0


async def test_workers_share_fairly_and_never_twice(
    streams: Streams, workers: list[Worker]
) -> None:
    workers += [Worker(streams) for _ in range(3)]
    for worker in workers:
        worker.start()
    await eventually(
        lambda: all(w.ownership.problem() is None for w in workers), "all workers beat"
    )
    await offer(streams, STAGE, names(60))
    await eventually(lambda: sum(len(w.units) for w in workers) == 60, "all units are claimed")
    assert sorted(len(w.units) for w in workers) == [20, 20, 20]
    assert set.union(*(w.units for w in workers)) == set(names(60))


async def test_capacity_is_a_limit(streams: Streams, workers: list[Worker]) -> None:
    workers.append(Worker(streams, capacity=3))
    workers[0].start()
    await offer(streams, STAGE, names(5))
    await eventually(lambda: len(workers[0].units) == 3, "it takes three")
    assert await streams.commands.zcard(keys.free(STAGE)) == 2


async def test_units_of_a_dead_worker_move(streams: Streams, workers: list[Worker]) -> None:
    workers += [Worker(streams), Worker(streams)]
    for worker in workers:
        worker.start()
    await eventually(
        lambda: all(w.ownership.problem() is None for w in workers), "both workers beat"
    )
    await offer(streams, STAGE, names(10))
    await eventually(lambda: len(workers[0].units) == 5, "half of them")
    before = taken()
    await workers[0].die()
    await eventually(lambda: len(workers[1].units) == 10, "the other has them all")
    assert taken() == before + 5


def taken() -> float:
    """Units taken from workers that had not let them go, as it is told."""
    return REGISTRY.get_sample_value("firstword_takeovers_total", {"stage": STAGE}) or 0.0


async def test_a_worker_that_was_away_drops_what_it_held(
    streams: Streams, workers: list[Worker]
) -> None:
    workers += [Worker(streams), Worker(streams)]
    workers[0].start()
    await offer(streams, STAGE, names(4))
    await eventually(lambda: len(workers[0].units) == 4, "the first has them")
    await workers[0].die()  # as if stopped by the kernel: it still believes in its units
    workers[1].start()
    await eventually(lambda: len(workers[1].units) == 4, "the second took over")
    workers[0].start()
    await eventually(lambda: sorted(workers[0].lost) == names(4), "the first let go of all")
    assert workers[0].units == set()


async def test_a_newcomer_gets_its_share_of_partitions(
    streams: Streams, workers: list[Worker]
) -> None:
    workers += [Worker(streams, rebalances=True), Worker(streams, rebalances=True)]
    workers[0].start()
    await workers[0].ownership.offer_always(names(16))
    await eventually(lambda: len(workers[0].units) == 16, "the first has them all")
    workers[1].start()
    await eventually(lambda: len(workers[1].units) == 8, "the newcomer has half")
    assert workers[0].units | workers[1].units == set(names(16))


async def test_a_draining_worker_takes_nothing(streams: Streams, workers: list[Worker]) -> None:
    workers += [Worker(streams), Worker(streams)]
    for worker in workers:
        worker.start()
    await eventually(
        lambda: all(w.ownership.problem() is None for w in workers), "both workers beat"
    )
    workers[0].ownership.drain()
    await eventually(
        lambda: streams.commands.scard(keys.draining(STAGE)), "the server knows it drains"
    )
    await offer(streams, STAGE, names(6))
    await eventually(lambda: len(workers[1].units) == 6, "the other takes everything")
    assert workers[0].units == set()


async def test_released_units_go_on_elsewhere(streams: Streams, workers: list[Worker]) -> None:
    workers += [Worker(streams), Worker(streams)]
    workers[0].start()
    await offer(streams, STAGE, ["one"])
    await eventually(lambda: workers[0].units == {"one"}, "the first has it")
    workers[0].ownership.drain()
    workers[1].start()
    await eventually(lambda: workers[1].ownership.problem() is None, "the second beats")
    await workers[0].ownership.release("one", to_others=True)
    await eventually(lambda: workers[1].units == {"one"}, "the second goes on with it")
    assert not await workers[0].ownership.owns("one")


async def test_a_server_that_forgot_everything_gets_the_partitions_again(
    streams: Streams, workers: list[Worker]
) -> None:
    workers.append(Worker(streams))
    workers[0].start()
    await workers[0].ownership.offer_always(names(3))
    await eventually(lambda: len(workers[0].units) == 3, "it has them")
    await streams.commands.flushall()
    await eventually(lambda: sorted(workers[0].lost) == names(3), "it let go of all")
    await eventually(lambda: len(workers[0].units) == 3, "and took them again")


async def test_the_bell_reaches_the_owner(streams: Streams, workers: list[Worker]) -> None:
    workers.append(Worker(streams))
    workers[0].start()
    await eventually(lambda: workers[0].ownership.problem() is None, "it beats")
    await streams.ring(STAGE, workers[0].ownership.worker, "one")
    await eventually(lambda: workers[0].rung == ["one"], "the bell was heard")
