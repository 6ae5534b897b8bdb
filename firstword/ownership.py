"""Who works on what: partitions for segmenters, sessions for gateways, through one mechanism.

Each worker sends one heartbeat, on the server's clock, however many units it has. A worker that
misses it loses all its units at once; the others claim up to a fair share of what is free.
Ownership says who should act; the fencing token in the unit's own state, compared in every commit,
says who may. So a mistake here costs a little time and never a wrong word.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from redis.exceptions import ResponseError

from firstword import keys, telemetry
from firstword.ids import START
from firstword.streams import Streams, pause

Notify = Callable[[str], None]

COMPARE_BEATS = 16
REFUSAL_CHARS = 100
"""After this many heartbeats a worker compares the names of its units, not only their number."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Timing of ownership, seconds. A dead worker's units move within `lease_s` + `beat_s`."""

    lease_s: float = 1.0
    beat_s: float = 0.2


def worker_name() -> str:
    """A name no other process has."""
    return f"{os.getpid():x}-{secrets.token_hex(4)}"


def new_token() -> str:
    """A fencing token: random, so that it stays right when the server's state goes back."""
    return secrets.token_hex(8)


class Ownership:
    """One worker's part in the ownership of a stage's units.

    The shell gives callbacks that return at once: `acquired(unit)`, `lost(unit)` (stop, it is
    another's), `rung(unit)` (it has something new), `excess(unit)` (hand it over when convenient).
    It calls `release()` when it is done with a unit.
    """

    def __init__(
        self,
        streams: Streams,
        stage: str,
        *,
        acquired: Notify,
        lost: Notify,
        rung: Notify | None = None,
        excess: Notify | None = None,
        capacity: int = 1_000_000,
        lease: Lease = Lease(),
        worker: str | None = None,
    ) -> None:
        self.worker = worker or worker_name()
        self.held: set[str] = set()
        self._streams = streams
        self._stage = stage
        self._acquired, self._lost = acquired, lost
        self._rung, self._excess = rung, excess
        self._capacity = capacity
        self._lease = lease
        self._static: list[str] = []
        self._leaving: set[str] = set()
        self._releases = 0
        self._beats = 0
        self._poke = asyncio.Event()
        self._draining = False
        self._beat_at: float | None = None
        self._failures = 0
        self._refused = ""
        self._pinned = False

    async def run(self) -> None:
        """Beat and listen until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._beat())
            tasks.create_task(self._listen())

    async def offer(self, units: Iterable[str]) -> None:
        """Ask the workers of this stage to take these units, unless they are taken."""
        await offer(self._streams, self._stage, units)

    async def offer_always(self, units: Iterable[str]) -> None:
        """Offer units that always exist, now and whenever the server has forgotten them."""
        self._static = list(units)
        await self.offer(self._static)

    async def release(self, unit: str, *, to_others: bool) -> None:
        """Give up a unit of ours; `to_others` asks the other workers to continue it.

        If this raises, the unit is still ours, as far as we know.
        """
        key_list = [
            keys.free(self._stage),
            keys.owned(self._stage),
            keys.owners(self._stage),
            keys.arrivals(self._stage),
        ]
        self._leaving.add(unit)
        self._forget(unit)  # before: it may be claimed anew, even by us, while we wait for a reply
        try:
            await self._streams.script("release", key_list, [self.worker, unit, int(to_others)])
        except BaseException:
            self.held.add(unit)
            raise
        finally:
            self._releases += 1
            self._leaving.discard(unit)

    async def owns(self, unit: str) -> bool:
        """Whether the server still names this worker as the unit's owner."""
        owner = await self._streams.commands.hget(keys.owners(self._stage), unit)
        return owner is not None and owner.decode() == self.worker

    def drain(self) -> None:
        """Take nothing new from now on; held units stay ours until they are released."""
        self._draining = True
        self._poke.set()

    def problem(self) -> str | None:
        """Why this worker cannot work now, for `/readyz`; None when well."""
        if self._beat_at is None:
            return f"no heartbeat has reached the server yet{self._refused}"
        silent = asyncio.get_running_loop().time() - self._beat_at
        if silent > 3 * self._lease.lease_s:
            return f"no heartbeat has reached the server for {silent:.1f} s{self._refused}"
        return None

    # -- the heartbeat ----------------------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            try:
                await self._beat_once()
                self._failures, self._refused = 0, ""
            except Exception as error:  # redis-py raises more kinds than its own (docs/REDIS.md)
                self._failures += 1
                refused = isinstance(error, ResponseError)
                self._refused = f", which answers: {str(error)[:REFUSAL_CHARS]}" if refused else ""
                telemetry.logger().warning("heartbeat_failed", error=type(error).__name__)
                await pause(self._failures)
            with contextlib.suppress(TimeoutError):
                # Not wait_for: before Python 3.12 it can swallow the cancel that ends us.
                async with asyncio.timeout(self._lease.beat_s):
                    await self._poke.wait()
            self._poke.clear()

    async def _beat_once(self) -> None:
        key_list = [
            keys.workers(self._stage),
            keys.draining(self._stage),
            keys.free(self._stage),
            keys.owned(self._stage),
            keys.owners(self._stage),
        ]
        lease_ms = int(self._lease.lease_s * 1000)
        reply = await self._streams.script(
            "heart", key_list, [self.worker, lease_ms, self._capacity, int(self._draining)]
        )
        known, share, held, left, taken, *claimed = reply
        telemetry.takeovers.labels(self._stage).inc(taken)
        telemetry.unowned_units.labels(self._stage).set(left)
        if not known:
            await self._start_over()
        self._beat_at = asyncio.get_running_loop().time()
        for unit in (name.decode() for name in claimed):
            if unit not in self.held:  # if it is, the server had forgotten that it is ours
                self._take(unit)
        self._beats += 1
        if held != len(self.held) or self._beats % COMPARE_BEATS == 0:
            await self._compare()
        if self._excess is not None and not self._draining:
            for unit in sorted(self.held)[: max(0, held - share)]:
                self._excess(unit)

    async def _compare(self) -> None:
        """Agree with the server again: a lost reply told of claims, or it forgot some of ours."""
        before = self._releases
        start, end = f"[{self.worker} ", f"({self.worker}!"
        pairs = await self._streams.commands.zrangebylex(keys.owned(self._stage), start, end)
        if self._releases != before or self._leaving:
            return  # its answer may be out of date; the next heartbeat looks again
        named = {pair.decode().removeprefix(f"{self.worker} ") for pair in pairs}
        forgotten = self.held - named
        for unit in sorted(named - self.held):
            if self._draining:
                await self.release(unit, to_others=True)
            else:
                self._take(unit)
        for unit in sorted(forgotten):
            self._forget(unit)
            self._lost(unit)
        if forgotten:
            await self.offer(forgotten)  # nobody else knows of them

    def _take(self, unit: str) -> None:
        self.held.add(unit)
        telemetry.acquisitions.labels(self._stage).inc()
        telemetry.owned_units.labels(self._stage).set(len(self.held))
        self._acquired(unit)

    async def _start_over(self) -> None:
        """The server does not know us: our units are another worker's, or forgotten."""
        self._pinned = False
        held = list(self.held)
        for unit in held:
            self._forget(unit)
            self._lost(unit)
        if self._static or held:
            await self.offer([*self._static, *held])  # those of others stay theirs
            self._poke.set()

    def _forget(self, unit: str) -> None:
        self.held.discard(unit)
        telemetry.owned_units.labels(self._stage).set(len(self.held))

    # -- the doorbell -----------------------------------------------------------------------------

    async def _listen(self) -> None:
        arrivals = keys.arrivals(self._stage)
        bell = keys.bell(self._stage, self.worker)
        cursors: dict[str, str] = {}
        failures = 0
        while True:
            try:
                if not self._pinned:  # two reads from `$` would miss what lies between them
                    cursors = {arrivals: await self._streams.last_id(arrivals), bell: START}
                    self._pinned = True
                    self._poke.set()
                found = await self._streams.wait(cursors)
                failures = 0
            except Exception as error:
                failures += 1
                telemetry.logger().warning("doorbell_failed", error=type(error).__name__)
                self._pinned = False
                await pause(failures)
                continue
            for stream, entries in found.items():
                cursors[stream] = entries[-1].id
            if found.get(arrivals):
                self._poke.set()
            if self._rung is not None:
                for unit in {entry.fields[b"u"].decode() for entry in found.get(bell, [])}:
                    self._rung(unit)


async def offer(streams: Streams, stage: str, units: Iterable[str]) -> None:
    """Ask the workers of a stage to take these units; those that have an owner keep it."""
    key_list = [keys.free(stage), keys.owners(stage), keys.arrivals(stage)]
    await streams.script("offer", key_list, list(units))
