"""What a worker holds and what the server says it holds come together again, whatever got lost."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable
from importlib.resources import files

import pytest
from redis.exceptions import RedisError

from firstword import keys
from firstword.ownership import Lease, Ownership, offer
from firstword.streams import Streams
from tests.doubles.proxy import Proxy
from tests.support import eventually

STAGE = "test"
LEASE = Lease(lease_s=0.6, beat_s=0.05)


class Worker:
    """An ownership behind a wire that can be cut, and a shell that only remembers."""

    def __init__(self, url: str) -> None:
        self.units: list[str] = []
        self.lost: list[str] = []
        self.streams = Streams(url)
        self.ownership = Ownership(
            self.streams, STAGE, acquired=self.units.append, lost=self._lose, lease=LEASE
        )
        self._running = asyncio.ensure_future(self.ownership.run())

    def _lose(self, unit: str) -> None:
        self.units.remove(unit)
        self.lost.append(unit)

    async def stop(self) -> None:
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running
        await self.streams.close()

    async def beats(self) -> None:
        await eventually(lambda: self.ownership.problem() is None, "its heartbeat is heard")


@pytest.fixture
async def proxy(redis_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(redis_url) as wire:
        yield wire


@pytest.fixture
async def worker(proxy: Proxy) -> AsyncIterator[Worker]:
    made = Worker(proxy.url)
    yield made
    await made.stop()


def running(script: str) -> Callable[[bytes], bool]:
    """Whether a request runs this script."""
    text = (files("firstword") / "lua" / f"{script}.lua").read_bytes()
    name = hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()
    return lambda request: name in request


async def test_a_claim_whose_reply_was_lost_is_found(
    streams: Streams, proxy: Proxy, worker: Worker
) -> None:
    await worker.beats()
    key_list = [keys.free(STAGE), keys.owners(STAGE), keys.arrivals(STAGE)]
    proxy.lose_reply_to(running("heart"))
    await streams.commands.zadd(key_list[0], {"one": 1, "two": 2})
    await eventually(lambda: proxy.lost == 1, "a reply is lost")
    await eventually(lambda: sorted(worker.units) == ["one", "two"], "it works on what it claimed")


async def test_a_release_that_failed_leaves_the_unit_where_it_is(
    streams: Streams, proxy: Proxy, worker: Worker
) -> None:
    await worker.beats()
    await offer(streams, STAGE, ["one"])
    await eventually(lambda: worker.units == ["one"], "it has it")
    await proxy.stop()
    with pytest.raises((RedisError, OSError)):
        await worker.ownership.release("one", to_others=True)
    assert worker.ownership.held == {"one"}
    assert await streams.commands.hget(keys.owners(STAGE), "one")


async def test_a_unit_that_the_server_forgot_is_offered_again(
    streams: Streams, worker: Worker
) -> None:
    await worker.beats()
    await offer(streams, STAGE, ["one", "two"])
    await eventually(lambda: sorted(worker.units) == ["one", "two"], "it has them")
    name = worker.ownership.worker
    await streams.commands.zrem(keys.owned(STAGE), f"{name} one")
    await streams.commands.hdel(keys.owners(STAGE), "one")
    await eventually(lambda: worker.lost == ["one"], "it let go of what is not its")
    await eventually(lambda: worker.units == ["two", "one"], "and took it again, as anybody might")


EXCHANGE = """
redis.call('ZREM', KEYS[1], ARGV[1] .. ' one')
redis.call('ZADD', KEYS[1], 0, ARGV[1] .. ' two')
redis.call('HDEL', KEYS[2], 'one')
redis.call('HSET', KEYS[2], 'two', ARGV[1])
"""


async def test_as_many_units_but_others_are_noticed_too(streams: Streams, worker: Worker) -> None:
    await worker.beats()
    await offer(streams, STAGE, ["one"])
    await eventually(lambda: worker.units == ["one"], "it has it")
    name = worker.ownership.worker
    await streams.commands.eval(EXCHANGE, 2, keys.owned(STAGE), keys.owners(STAGE), name)
    await eventually(lambda: sorted(worker.units) == ["one", "two"], "it works on both")
    assert worker.lost == ["one"]


async def test_a_draining_worker_hands_on_what_it_finds(
    streams: Streams, proxy: Proxy, worker: Worker
) -> None:
    await worker.beats()
    name = worker.ownership.worker
    worker.ownership.drain()
    await eventually(lambda: streams.commands.scard(keys.draining(STAGE)), "it drains")
    await streams.commands.zadd(keys.owned(STAGE), {f"{name} one": 0})
    await streams.commands.hset(keys.owners(STAGE), "one", name)
    await eventually(lambda: streams.commands.zcard(keys.free(STAGE)), "others are asked")
    assert worker.units == []


# -- a server that evicts what it was told to keep ------------------------------------------------

EVICTED = {
    "by worker": [keys.owned(STAGE)],
    "by unit": [keys.owners(STAGE)],
    "both": [keys.owned(STAGE), keys.owners(STAGE)],
    "and who works": [keys.owned(STAGE), keys.owners(STAGE), keys.workers(STAGE)],
}


@pytest.mark.parametrize("what", EVICTED)
async def test_a103_what_is_held_is_worked_on_whatever_of_it_was_evicted(
    streams: Streams, worker: Worker, what: str
) -> None:
    await worker.beats()
    await offer(streams, STAGE, ["one", "two"])
    await eventually(lambda: sorted(worker.units) == ["one", "two"], "it has them")
    name = worker.ownership.worker
    await streams.commands.delete(*EVICTED[what])

    async def named() -> bool:
        owned: list[bytes] = await streams.commands.zrange(keys.owned(STAGE), 0, -1)
        owners: dict[bytes, bytes] = await streams.commands.hgetall(keys.owners(STAGE))
        by_unit = dict.fromkeys((b"one", b"two"), name.encode())
        return owners == by_unit and owned == [f"{name} {u}".encode() for u in ("one", "two")]

    await eventually(named, "the server knows whose they are")
    await eventually(lambda: sorted(worker.units) == ["one", "two"], "and they are worked on, once")


async def test_a103_units_of_a_worker_that_died_are_free_although_what_it_held_was_evicted(
    streams: Streams, worker: Worker
) -> None:
    await worker.beats()
    await streams.commands.hset(keys.owners(STAGE), "one", "dead-worker")
    await eventually(lambda: worker.units == ["one"], "the one that lives took it")


async def test_a_unit_with_two_holders_is_left_to_one(streams: Streams, worker: Worker) -> None:
    await worker.beats()
    await offer(streams, STAGE, ["one"])
    await eventually(lambda: worker.units == ["one"], "it has it")
    name = worker.ownership.worker
    await streams.commands.zadd(keys.owned(STAGE), {"zz-other one": 0})

    async def alone() -> bool:
        owned: list[bytes] = await streams.commands.zrange(keys.owned(STAGE), 0, -1)
        return owned == [f"{name} one".encode()]

    await eventually(alone, "the other pair is gone")
    assert worker.units == ["one"]
