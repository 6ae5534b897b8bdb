"""The gateway's shell: owns sessions and runs each one's speech."""

from __future__ import annotations

import asyncio

from aiohttp import web

from firstword import codec, keys, logs, telemetry
from firstword import messages as m
from firstword.dead import flood
from firstword.ids import START
from firstword.ownership import Ownership
from firstword.poison import Poison, where
from firstword.runtime import Health, HttpServer, add_routes, announce_ready
from firstword.server_look import check_server
from firstword.streams import Streams, pause
from firstword.task_protection import TaskProtection
from services.tts_gateway.runner import SessionRunner
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Upstream
from services.tts_gateway.watched import WatchedUpstream

STAGE = "gateway"
DRAIN_S = 100.0
MEASURE_S = 1.0
STUCK_S = 10.0
"""A session whose segment in hand gets no audio for this long counts as stuck."""


class GatewayService:
    """Runs until told to stop, then hands its sessions over between segments.

    `address` is host:port of its HTTP side while it serves.
    """

    def __init__(self, settings: GatewaySettings, upstream: Upstream) -> None:
        self.address = ""
        self._settings = settings
        self._upstream = WatchedUpstream(upstream)
        self._streams = Streams(settings.redis_url)
        self._runners: dict[str, SessionRunner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._untold: dict[str, int] = {}
        """Last known revisions of failed sessions: if the server has less, listeners are told."""
        self._poison = Poison()
        self._farewells: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._ownership = Ownership(
            self._streams,
            STAGE,
            acquired=self._start,
            lost=self._abandon,
            rung=self._ring,
            capacity=settings.max_sessions,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set. Raises FirstwordError if the server cannot do."""
        health = Health()
        health.add("redis", self._ownership.problem)
        health.add("upstream", self._upstream.problem)
        health.add("poison", lambda: flood(self._streams))
        app = web.Application()
        add_routes(app, health)
        http = HttpServer(app, self._settings.http_host, self._settings.http_port, word="GATEWAY")
        await http.start()
        self.address = http.address
        try:
            await check_server(self._streams, stop)
            await self._serve(stop)
        finally:
            await self._upstream.close()
            await http.stop()
            await self._streams.close()

    async def _serve(self, stop: asyncio.Event) -> None:
        owning = asyncio.create_task(self._ownership.run())
        looking = asyncio.create_task(self._upstream.look())
        measuring = asyncio.create_task(self._measure())
        tasks = [owning, looking, measuring]
        if self._settings.ecs_agent:
            protection = TaskProtection(self._settings.ecs_agent)
            tasks.append(asyncio.create_task(protection.run(self._has_sessions)))
        announce_ready(STAGE, http=self.address)
        await stop.wait()
        await self._drain()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _has_sessions(self) -> bool:
        return bool(self._runners)

    async def _measure(self) -> None:
        """Keep the gauges up to date."""
        while True:
            runners = list(self._runners.values())
            behind = [runner.behind_s for runner in runners]
            telemetry.unspoken.set(sum(runner.unspoken_s for runner in runners))
            telemetry.open_sessions.labels(STAGE).set(sum(runner.open for runner in runners))
            telemetry.lag.labels(STAGE).set(max(behind, default=0.0))
            telemetry.stuck_sessions.set(sum(each > STUCK_S for each in behind))
            await asyncio.sleep(MEASURE_S)

    # -- called by the ownership ------------------------------------------------------------------

    def _start(self, session: str) -> None:
        task = asyncio.create_task(self._work(session))
        self._tasks[session] = task
        task.add_done_callback(lambda task: self._ended(session, task))

    def _ended(self, session: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(session) is task:  # not given up and taken again meanwhile
            del self._tasks[session]

    def _abandon(self, session: str) -> None:
        """The session is not ours any more: another worker has it, or the server forgot us."""
        task = self._tasks.pop(session, None)
        runner = self._runners.pop(session, None)
        if task is not None:
            task.cancel()
        rev = max(self._untold.pop(session, 0), 0 if runner is None else runner.rev)
        if rev:
            farewell = asyncio.create_task(self._say_farewell(session, rev))
            self._farewells.add(farewell)
            farewell.add_done_callback(self._farewells.discard)

    def _ring(self, session: str) -> None:
        runner = self._runners.get(session)
        if runner is not None:
            runner.ring()

    # -- one session ------------------------------------------------------------------------------

    async def _work(self, session: str) -> None:
        """Keep a runner on the session until it is left, handed over or another worker's."""
        failures = 0
        position = START
        while True:
            logs.bind(session=session, turn=None, segment=None)
            runner = SessionRunner(
                session,
                self._streams,
                self._upstream,
                self._ownership.worker,
                self._settings,
                self._poison,
                self._upstream.reachability,
            )
            try:
                await self._tell_if_lost(session, self._untold.get(session, 0))
                self._untold.pop(session, None)
                if failures and not await self._is_ours(session):
                    await self._offer_rest(session, position)
                    return
                unfinished = await self._run(session, runner)
                await self._ownership.release(session, to_others=unfinished)
                await self._offer_rest(session, runner.position)
                return
            except Exception as error:  # whatever the client raises, the session goes on
                failures += 1
                self._untold[session] = max(self._untold.get(session, 0), runner.rev)
                position = runner.position
                name, at = type(error).__name__, where(error)
                telemetry.logger().warning("session_failed", error=name, where=at)
                await pause(failures)

    async def _is_ours(self, session: str) -> bool:
        """Whether the server names us as its owner, and this task is still the one for it."""
        owned = await self._ownership.owns(session)
        return owned and self._tasks.get(session) is asyncio.current_task()

    async def _run(self, session: str, runner: SessionRunner) -> bool:
        self._runners[session] = runner
        if self._stopping:
            runner.hand_over()
        try:
            return await runner.run()
        finally:
            if self._runners.get(session) is runner:
                del self._runners[session]

    async def _offer_rest(self, session: str, position: str) -> None:
        """Offer the session if work came while we left, when we still owned it."""
        if await self._streams.range(keys.segments(session), position, count=1):
            await self._ownership.offer([session])

    async def _say_farewell(self, session: str, rev: int) -> None:
        try:
            await self._tell_if_lost(session, rev)
        except Exception as error:  # the listeners' own check of their position remains
            name = type(error).__name__
            telemetry.logger().warning("farewell_failed", session=session, error=name)

    async def _tell_if_lost(self, session: str, rev: int) -> None:
        """Tell the listeners if the server has less of the session than revision `rev`."""
        raw = await self._streams.commands.hget(keys.speech_state(session), "rev")
        if int(raw or 0) >= rev:
            return
        event = m.STATE_LOST
        telemetry.count_error(event.code)
        telemetry.logger().warning("state_lost", session=session)
        await self._streams.move(keys.audio(session), {"m": codec.pack(event, session)})
        await self._ownership.offer([session])  # its next owner lets its keys expire

    async def _drain(self) -> None:
        """Hand every session over between two segments; give up on those that take too long."""
        self._stopping = True
        self._ownership.drain()
        for runner in self._runners.values():
            runner.hand_over()
        try:
            async with asyncio.timeout(DRAIN_S):
                while self._tasks:
                    await asyncio.wait(list(self._tasks.values()))
        except TimeoutError:
            telemetry.logger().warning("drain_incomplete", sessions=len(self._tasks))
        left = [*self._tasks.values(), *self._farewells]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
