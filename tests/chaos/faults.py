"""What is done to the services while sessions talk. Each waits for the moment it is meant for."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import cycle, islice

from firstword import keys
from firstword.embedded import EmbeddedServer
from tests.chaos.deployment import Worker
from tests.chaos.play import Faults, Play
from tests.support import eventually

SEGMENT_BYTES = 32_000
"""Less than the shortest sentence takes on the wire."""
MOVED_S = 20.0
LATE_S = 0.5
"""So much of what was written last is lost."""


async def nothing(_play: Play) -> None:
    """Calm: what the others are held against."""


def at(*shares: float, what: Callable[[Play], Awaitable[None]]) -> Faults:
    """Do it when these shares of all turns have ended."""

    async def faults(play: Play) -> None:
        for share in shares:
            await play.reached(share)
            await what(play)

    return faults


def kill(*stages: str) -> Faults:
    """kill -9 the busiest worker of each stage at once; others are started in their place."""

    async def fault(play: Play) -> None:
        victims = [await play.busiest(stage) for stage in stages]
        await play.struck(*victims)
        await play.deployment.kill(*victims)
        await play.deployment.complete()

    return fault


async def kill_all_inference(play: Play) -> None:
    """No backend is left for as long as one takes to start."""
    await play.busiest("gateway")
    await play.deployment.kill(*play.deployment.of("inference"))
    await play.deployment.complete()


def drain(stage: str) -> Faults:
    """SIGTERM: the worker hands over and ends by itself, with status 0."""

    async def fault(play: Play) -> None:
        victim = await play.busiest(stage)
        await play.struck(victim)
        status = await play.deployment.terminate(victim)
        if status:
            play.problems.append(f"a {stage} that was drained ended with {status}")
        await play.deployment.complete()

    return fault


def freeze(*stages: str) -> Faults:
    """SIGSTOP until others have taken all they had, then SIGCONT in the middle of their work."""

    async def fault(play: Play) -> None:
        victims = [await play.busiest(stage) for stage in stages]
        await play.struck(*victims)
        for victim in victims:
            victim.signal(signal.SIGSTOP)
        try:
            for victim in victims:
                await eventually(
                    partial(_has_nothing, play, victim),
                    f"others took what a frozen {victim.stage} had",
                    MOVED_S,
                )
        finally:
            for victim in victims:
                victim.signal(signal.SIGCONT)

    return fault


async def _has_nothing(play: Play, worker: Worker) -> bool:
    return not await play.deployment.units(worker)


def starve(stage: str) -> Faults:
    """Its heartbeats come to nothing while it works on: its lease ends under its hands."""

    async def fault(play: Play) -> None:
        victim = await play.busiest(stage)
        name = await play.deployment.name_of(victim)
        had = await play.deployment.units(victim)
        await play.struck(victim)

        async def moved() -> bool:
            commands = play.deployment.streams.commands
            await commands.zadd(keys.workers(stage), {name: 0}, xx=True)
            return had.isdisjoint(await play.deployment.units(victim))

        await eventually(moved, f"others took what a starved {stage} had", MOVED_S)

    return fault


async def cut_at_every_decile(play: Play) -> None:
    """The connection to inference breaks when a tenth, two tenths, … of a segment have passed."""
    wire = play.deployment.wire
    wire.cut_within_segments([SEGMENT_BYTES * decile // 10 for decile in range(1, 10)])
    await eventually(lambda: not wire.cuts_left, "all cuts are made", MOVED_S)


async def cut_all(play: Play) -> None:
    """Every connection to inference breaks at once."""
    await play.busiest("gateway")
    play.deployment.wire.cut()


async def another_engine(play: Play) -> None:
    """All inference goes, and what takes its place makes other samples: segments begin anew."""
    deployment = play.deployment
    before = deployment.of("inference")
    other = await deployment.start("inference", FIRSTWORD_STAMP_NAME="stamp 2")
    await play.busiest("gateway")
    await deployment.kill(*before)
    await deployment.complete()
    await play.reached(0.7)
    await deployment.kill(other)
    await deployment.complete()


def restart_server(fsync: str) -> Faults:
    """kill -9 of the server, which has written down all it answered for, and a new start."""

    async def fault(play: Play) -> None:
        deployment = play.deployment
        await deployment.streams.commands.config_set("appendfsync", fsync)
        await play.busiest("gateway")
        await asyncio.to_thread(deployment.server.restart, append_only=True)

    return fault


async def forget(play: Play) -> None:
    """FLUSHALL."""
    await play.busiest("gateway")
    await play.deployment.streams.commands.flushall()


async def lose_server(play: Play) -> None:
    """kill -9 of a server that keeps nothing."""
    await play.busiest("gateway")
    await asyncio.to_thread(play.deployment.server.restart, append_only=False)


async def rewind(play: Play) -> None:
    """The server goes back by half a second, as after a failover to a late replica."""
    await play.busiest("gateway")
    await play.deployment.streams.commands.save()
    await asyncio.sleep(LATE_S)
    await asyncio.to_thread(play.deployment.server.restart, append_only=False)


async def kill_a_master(play: Play) -> None:
    """kill -9 of the master that says who the gateways are; its replica takes over."""
    await play.busiest("gateway")
    cluster = play.deployment.cluster
    await _fail_over(play, await asyncio.to_thread(cluster.primary_of, keys.workers("gateway")))


def kill_every_master(*, late: bool = False) -> Faults:
    """kill -9 of each master in its turn; its replica takes over, and it comes back as a replica.

    With `late` the replica has not got the last half second.
    """

    async def faults(play: Play) -> None:
        cluster = play.deployment.cluster
        for number, master in enumerate(await asyncio.to_thread(cluster.primaries)):
            await play.reached((1 + 3 * number) / 10)
            await play.busiest("gateway")
            if late:
                await asyncio.to_thread(cluster.cut_off_replica, master)
                await asyncio.sleep(LATE_S)
            await _fail_over(play, master)

    return faults


async def _fail_over(play: Play, master: EmbeddedServer) -> None:
    cluster = play.deployment.cluster
    names = [talk.name for talk in play.talks]
    play.mark("gateway", await asyncio.to_thread(cluster.sessions_on, master, names))
    await asyncio.to_thread(cluster.fail_over, master)
    await asyncio.to_thread(cluster.restore)


POISON: tuple[dict[str, bytes], ...] = (
    {"m": b"\xc1\xc1\xc1"},
    {"m": b"\x81\xa1v"},
    {"session": b"not a name", "text": b"x"},
    {"session": b"chaos-1", "seq": b"many", "text": b"x"},
)


async def poison(play: Play) -> None:
    """What nobody can read, on the door, every partition and the segments of some sessions."""
    deployment = play.deployment
    count = await deployment.streams.partitions() or keys.DEFAULT_PARTITIONS
    names = [talk.name for talk in play.talks if talk.speaking][:10]
    targets = [keys.DOOR, *map(keys.ingress, range(count)), *map(keys.segments, names)]
    before = await deployment.streams.commands.xlen(keys.DEAD)

    for target, fields in zip(targets, islice(cycle(POISON), len(targets)), strict=True):
        await deployment.streams.append(target, fields)

    async def buried() -> bool:
        now = await deployment.streams.commands.xlen(keys.DEAD)
        return bool(now >= before + len(targets))

    await eventually(buried, "every poison is among the dead letters", MOVED_S)


def many(seed: int, count: int) -> Faults:
    """Faults of all kinds, one upon the other, in an order that the seed tells."""
    kinds: tuple[Faults, ...] = (
        kill("gateway"),
        kill("segmenter"),
        kill("gateway", "segmenter"),
        kill("inference"),
        freeze("gateway"),
        freeze("segmenter"),
        starve("gateway"),
        starve("segmenter"),
        cut_all,
        poison,
    )

    async def faults(play: Play) -> None:
        chosen = random.Random(seed).sample(kinds, count)
        for number, fault in enumerate(chosen):
            await play.reached((number + 1) / (count + 3))
            await fault(play)

    return faults
