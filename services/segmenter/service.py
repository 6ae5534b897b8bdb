"""The segmenter's shell: owns ingress partitions and runs a reader for each."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from aiohttp import web

from firstword import keys, telemetry
from firstword.dead import flood
from firstword.errors import FirstwordError, LeaseLost
from firstword.ownership import Ownership
from firstword.poison import Poison, where
from firstword.runtime import Health, HttpServer, add_routes, announce_ready
from firstword.server_look import check_server, when_it_answers
from firstword.streams import Streams, pause
from services.segmenter.admission import Memory
from services.segmenter.reader import CursorKeeper, DoorReader, PartitionReader
from services.segmenter.settings import SegmenterSettings

STAGE = "segmenter"
DOOR = "door"
DRAIN_S = 20.0
WATCH_S = 2.0
"""How often the server is asked for its memory use, for the age of what waits, and whether the
deployment's settings are still recorded."""


@dataclass(slots=True, eq=False)
class _Running:
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    reader: PartitionReader | None = None
    cursor: CursorKeeper | None = None
    poison: Poison = field(default_factory=Poison)


class SegmenterService:
    """Runs until told to stop, then hands its partitions over.

    `address` is host:port of its HTTP side while it serves.
    """

    def __init__(self, settings: SegmenterSettings) -> None:
        self.address = ""
        self._settings = settings
        self._streams = Streams(settings.redis_url)
        self._running: dict[str, _Running] = {}
        self._farewells: set[asyncio.Task[None]] = set()
        self._memory = Memory(settings.memory_limit_share)
        self._apart: str | None = None
        self._look_now = asyncio.Event()
        self._ownership = Ownership(
            self._streams, STAGE, acquired=self._start, lost=self._abandon, excess=self._hand_over
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set. Raises FirstwordError if server or deployment will not do."""
        health = Health()
        health.add("redis", self._ownership.problem)
        health.add("memory", self._no_room)
        health.add("partitions", lambda: self._apart)
        health.add("poison", lambda: flood(self._streams))
        app = web.Application()
        add_routes(app, health)
        http = HttpServer(app, self._settings.http_host, self._settings.http_port, word="SEGMENTER")
        await http.start()
        self.address = http.address
        try:
            await check_server(self._streams, stop)
            await when_it_answers(self._join, stop)
            if not stop.is_set():
                await self._serve(stop)
        finally:
            await http.stop()
            await self._streams.close()

    async def _join(self) -> None:
        """Become part of the deployment."""
        await self._streams.agree_on_partitions(self._settings.partitions)
        await self._streams.limit_queues(self._settings.max_queued)
        units = [DOOR, *map(str, range(self._settings.partitions))]
        await self._ownership.offer_always(units)

    async def _serve(self, stop: asyncio.Event) -> None:
        owning = asyncio.create_task(self._ownership.run())
        watching = asyncio.create_task(self._watch())
        announce_ready(STAGE, http=self.address)
        await stop.wait()
        await self._drain()
        owning.cancel()
        watching.cancel()
        await asyncio.gather(owning, watching, return_exceptions=True)

    # -- called by the ownership ------------------------------------------------------------------

    def _start(self, unit: str) -> None:
        running = _Running()
        running.task = asyncio.create_task(self._work(unit, running))
        self._running[unit] = running

    def _abandon(self, unit: str) -> None:
        self._look_now.set()  # the server may have lost all that it had, and what is recorded too
        running = self._running.pop(unit, None)
        if running is None or running.task is None:
            return
        running.task.cancel()
        if running.reader is not None:
            farewell = asyncio.create_task(self._say_farewell(unit, running.reader))
            self._farewells.add(farewell)
            farewell.add_done_callback(self._farewells.discard)

    async def _say_farewell(self, unit: str, reader: PartitionReader) -> None:
        try:
            await reader.farewell()
        except Exception as error:  # the clients' own looking remains
            name = type(error).__name__
            telemetry.logger().warning("farewell_failed", unit=unit, error=name)

    def _hand_over(self, unit: str) -> None:
        running = self._running.get(unit)
        if running is not None:
            running.stop.set()

    # -- one unit ---------------------------------------------------------------------------------

    async def _work(self, unit: str, running: _Running) -> None:
        """Keep a reader on the unit until it is handed over or another's."""
        failures = 0
        while not running.stop.is_set():
            try:
                if running.reader is not None:  # the last one failed: did the server lose its work?
                    await running.reader.farewell()
                await self._reader(unit, running).run(running.stop)
            except Exception as error:  # whatever the client raises, the unit goes on
                failures = 1 if isinstance(error, LeaseLost) else failures + 1
                name = type(error).__name__
                at = where(error)
                telemetry.logger().warning("reader_failed", unit=unit, error=name, where=at)
                if self._running.get(unit) is not running:
                    return  # abandoned; the cancel was lost in the error of a task group
                await pause(failures)
        if self._running.get(unit) is running:
            del self._running[unit]
            await self._release(unit)

    def _reader(self, unit: str, running: _Running) -> DoorReader | PartitionReader:
        worker = self._ownership.worker
        if unit == DOOR:
            door = DoorReader(self._streams, worker, self._settings, running.poison)
            running.cursor = door.cursor
            return door
        running.reader = PartitionReader(
            self._streams, unit, worker, self._settings, self._memory, running.poison
        )
        running.cursor = running.reader.cursor
        return running.reader

    async def _release(self, unit: str) -> None:
        """Give the unit back; insist, since nobody would work on a unit that stayed ours."""
        failures = 0
        while True:
            try:
                await self._ownership.release(unit, to_others=True)
                return
            except Exception as error:
                failures += 1
                telemetry.logger().warning("release_failed", unit=unit, error=type(error).__name__)
                await pause(failures)

    async def _watch(self) -> None:
        """Keep `Memory`, the gauges and the record true, as far as the server answers."""
        while True:
            try:
                await self._look_at_server()
                await self._look_at_record()
                await self._look_at_lag()
            except Exception as error:
                telemetry.logger().warning("server_unknown", error=type(error).__name__)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WATCH_S):
                    await self._look_now.wait()
            self._look_now.clear()

    async def _look_at_server(self) -> None:
        was_short = self._memory.short
        self._memory.share = await self._streams.memory_share()
        telemetry.server_memory.set(self._memory.share)
        if self._memory.short != was_short:
            event = "server_full" if self._memory.short else "server_has_room"
            telemetry.logger().warning(event, share=round(self._memory.share, 3))
        telemetry.server_evicted.set(await self._streams.evicted_keys())

    def _no_room(self) -> str | None:
        if not self._memory.short:
            return None
        return (
            f"the server has used {self._memory.share:.0%} of its memory: new sessions are refused"
        )

    async def _look_at_record(self) -> None:
        """Record again what the server has lost, so that nobody starts beside us with another
        number; somebody may have done so before."""
        ours, before = self._settings.partitions, self._apart
        recorded = None
        try:
            recorded = await self._streams.record(ours, max_queued=self._settings.max_queued)
            self._apart = None if recorded == ours else _divided(ours, recorded)
        except FirstwordError as error:
            self._apart = error.message
        if self._apart != before:
            event = "partitions_differ" if self._apart else "partitions_agree"
            telemetry.logger().warning(event, recorded=recorded, ours=ours)

    async def _look_at_lag(self) -> None:
        """By what is read, not by what is stored: a sentence that stays open is no lag."""
        ours = list(self._running.values())
        readers = [running.reader for running in ours if running.reader is not None]
        telemetry.open_sessions.labels(STAGE).set(sum(each.open_sessions for each in readers))
        cursors = [running.cursor for running in ours if running.cursor is not None]
        looks = [self._streams.waiting_s(each.stream, each.read) for each in cursors]
        telemetry.lag.labels(STAGE).set(max(await asyncio.gather(*looks), default=0.0))

    async def _drain(self) -> None:
        self._ownership.drain()
        tasks = [r.task for r in self._running.values() if r.task is not None]
        for running in list(self._running.values()):
            running.stop.set()
        if tasks:
            await asyncio.wait(tasks, timeout=DRAIN_S)
        if self._farewells:
            await asyncio.wait(self._farewells, timeout=DRAIN_S)


def _divided(ours: int, recorded: int) -> str:
    return (
        f"this deployment is recorded with {recorded} ingress partitions, and this segmenter has "
        f"{ours}: the text of one session may go two ways. If {recorded} is right, start this one "
        f"again with FIRSTWORD_PARTITIONS={recorded}; if {ours} is right, stop the segmenters that "
        f"have {recorded}, then `firstword redis HSET {keys.CONFIG} partitions {ours}`"
    )
