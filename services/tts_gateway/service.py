"""The gateway's shell: owns sessions and runs each one's speech."""

from __future__ import annotations

import asyncio

from aiohttp import web

from firstword import codec, keys, telemetry
from firstword import messages as m
from firstword.errors import LeaseLost, StateLost
from firstword.ownership import Ownership
from firstword.runtime import Health, HttpServer, add_routes, announce_ready
from firstword.streams import Streams, pause
from services.tts_gateway.runner import SessionRunner
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Upstream

STAGE = "gateway"
DRAIN_S = 100.0


class GatewayService:
    """Runs until told to stop, then hands its sessions over between segments."""

    def __init__(self, settings: GatewaySettings, upstream: Upstream) -> None:
        self._settings = settings
        self._upstream = upstream
        self._streams = Streams(settings.redis_url)
        self._runners: dict[str, SessionRunner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
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
        """Serve until `stop` is set."""
        health = Health()
        health.add("redis", self._ownership.problem)
        app = web.Application()
        add_routes(app, health)
        http = HttpServer(app, self._settings.http_host, self._settings.http_port)
        await http.start()
        owning = asyncio.create_task(self._ownership.run())
        announce_ready(STAGE, http=http.address)
        await stop.wait()
        await self._drain()
        owning.cancel()
        await asyncio.gather(owning, return_exceptions=True)
        await self._upstream.close()
        await http.stop()
        await self._streams.close()

    # -- called by the ownership ------------------------------------------------------------------

    def _start(self, session: str) -> None:
        self._tasks[session] = asyncio.create_task(self._work(session))

    def _abandon(self, session: str) -> None:
        task = self._tasks.pop(session, None)
        if task is not None:
            task.cancel()

    def _ring(self, session: str) -> None:
        runner = self._runners.get(session)
        if runner is not None:
            runner.ring()

    # -- one session ------------------------------------------------------------------------------

    async def _work(self, session: str) -> None:
        """Keep a runner on the session until it is left, handed over or another's."""
        failures = 0
        try:
            while True:
                runner = SessionRunner(
                    session,
                    self._streams,
                    self._upstream,
                    self._ownership.worker,
                    self._settings,
                )
                self._runners[session] = runner
                if self._stopping:
                    runner.hand_over()
                try:
                    unfinished = await runner.run()
                    break
                except StateLost:
                    await self._tell_state_lost(session)
                    await pause(1)
                except LeaseLost:
                    if not await self._ownership.owns(session):
                        return
                except Exception as error:  # whatever the client raises, the session goes on
                    failures += 1
                    name = type(error).__name__
                    telemetry.logger().warning("session_failed", session=session, error=name)
                    await pause(failures)
        finally:
            self._runners.pop(session, None)
            self._tasks.pop(session, None)
        await self._release(session, runner.position, unfinished)

    async def _release(self, session: str, position: str, unfinished: bool) -> None:
        await self._ownership.release(session, to_others=unfinished)
        # Work that came while we left was offered in vain, as we still owned the session.
        if await self._streams.range(keys.segments(session), position, count=1):
            await self._ownership.offer([session])

    async def _tell_state_lost(self, session: str) -> None:
        event = m.ErrorEvent(
            code="state_lost",
            message="the server lost what was published: publish the open turn again",
            retryable=True,
        )
        await self._streams.append(keys.audio(session), {"m": codec.pack(event, session)})

    async def _drain(self) -> None:
        self._stopping = True
        self._ownership.drain()
        for runner in list(self._runners.values()):
            runner.hand_over()
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=DRAIN_S)
