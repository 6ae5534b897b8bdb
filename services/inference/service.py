"""The shell of the inference service: sockets, tasks and health around `core.py`.

Per connection one task reads (so that pings and cancels are answered while the engine works), one
writes, and at most one speaks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing

from aiohttp import WSCloseCode, WSMsgType, web

from firstword import logs, session_address, telemetry
from firstword.poison import where
from firstword.runtime import Health, add_routes
from services.inference.core import Action, Disconnect, Limits, Send, Session, Start
from services.inference.core import Stop as StopAction
from services.inference.http import Invocations
from services.inference.settings import InferenceSettings
from services.inference.speaker import Finished, Speaker, Started
from services.inference.synthesizer import Stop, Stopped, SynthesisError

MAX_MESSAGE_BYTES = 4 << 20
"""More than the largest frame the codec reads, so that a slightly larger one gets an answer."""

AUDIO_AHEAD = 16
"""Frames of audio that may wait for a slow client before its synthesis waits too."""

MAX_OUTBOX = 1024
"""Frames that may wait in all: a client that sends requests and never reads is disconnected."""

HEARTBEAT_S = 20.0
"""Between pings to a client: one that vanished or is frozen is dropped."""

GOODBYE_S = 2.0
"""How long a stopped connection may take for its last frames and the closing handshake."""


class InferenceService:
    """The application: `/ping`, `/invocations`, `/voices`, the session, health and metrics."""

    def __init__(self, speaker: Speaker, settings: InferenceSettings) -> None:
        self._speaker = speaker
        self._settings = settings
        self._connections: set[Connection] = set()
        self._draining = False
        self.health = Health()
        self.health.add("engine", self.unwell)
        self._invocations = Invocations(speaker, settings, lambda: self._draining)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_MESSAGE_BYTES)
        add_routes(app, self.health)
        app.router.add_get("/ping", self._ping)
        app.router.add_post("/ping", self._ping)
        app.router.add_get("/voices", self._voices)
        app.router.add_post("/invocations", self._invocations.handle)
        app.router.add_get(session_address.PATH, self._connect)
        return app

    def unwell(self) -> str | None:
        """Why no traffic should come here now; None if it may."""
        return "the service is draining" if self._draining else self._speaker.unwell()

    async def drain(self) -> None:
        """Finish what runs, send `closing`, close; stop what is not done in time."""
        self._draining = True
        for connection in list(self._connections):
            connection.drain()
        closed = [connection.closed.wait() for connection in list(self._connections)]
        try:
            async with asyncio.timeout(self._settings.drain_s):
                await asyncio.gather(self._invocations.idle(), *closed)
        except TimeoutError:
            for connection in list(self._connections):
                connection.stop_now()
            self._invocations.stop_now()
            left = [asyncio.create_task(c.closed.wait()) for c in self._connections]
            if left:
                await asyncio.wait(left, timeout=GOODBYE_S)

    async def _ping(self, _request: web.Request) -> web.Response:
        reason = self.unwell()
        if reason is None:
            return web.json_response({"status": "ok"})
        return web.json_response({"status": "unwell", "reason": reason}, status=503)

    async def _voices(self, _request: web.Request) -> web.Response:
        default = self._settings.voice
        return web.json_response({"voices": self._speaker.voices, "default": default})

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        if self._draining:
            raise web.HTTPServiceUnavailable(text="draining: connect elsewhere")
        # Text is decoded by our codec, which answers bad UTF-8 instead of dropping the session.
        ws = web.WebSocketResponse(
            timeout=GOODBYE_S,
            heartbeat=HEARTBEAT_S,
            max_msg_size=MAX_MESSAGE_BYTES,
            compress=False,
            decode_text=False,
        )
        await ws.prepare(request)
        limits = Limits(self._settings.max_text_chars, self._settings.max_queued)
        connection = Connection(ws, self._speaker, limits, self._settings.send_timeout_s)
        self._connections.add(connection)
        logs.bind(request_id=request.headers.get("X-Amzn-SageMaker-Request-Id"))
        telemetry.logger().info("connected")
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)
            telemetry.logger().info("disconnected", code=ws.close_code)
        return ws


class Connection:
    """One WebSocket: does what its `Session` decides."""

    def __init__(
        self, ws: web.WebSocketResponse, speaker: Speaker, limits: Limits, send_timeout_s: float
    ) -> None:
        self.closed = asyncio.Event()
        self._ws = ws
        self._speaker = speaker
        self._session = Session(limits)
        self._outbox = Outbox(ws, send_timeout_s)
        self._stop = Stop()
        self._forced = False
        self._speech: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Read and write until the peer or the session ends the connection."""
        reader = asyncio.create_task(self._read())
        writer = asyncio.create_task(self._outbox.run())
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._do(self._session.disconnected())
            if self._speech is not None:
                await self._speech
            self._outbox.abandon()
            # No task may read during the closing handshake: it reads the peer's answer itself.
            reader.cancel()
            await asyncio.wait({reader, writer})
            await self._ws.close(code=self._outbox.close_code, drain=False)
            self.closed.set()

    async def _read(self) -> None:
        async for message in self._ws:
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                self._do(self._session.receive(message.data))

    def drain(self) -> None:
        self._do(self._session.drain())

    def stop_now(self) -> None:
        """The time for draining is over."""
        self._forced = True
        self._stop.set()

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(frame, error):
                    if error is not None:
                        telemetry.count_synthesis_error(error)
                    self._outbox.put(frame)
                case Start():
                    self._stop = Stop()
                    self._speech = asyncio.create_task(self._speak(action, self._stop))
                case StopAction():
                    self._stop.set()
                case Disconnect(code):
                    self._outbox.close(code)

    async def _speak(self, start: Start, stop: Stop) -> None:
        session = self._session
        logs.bind(request=start.request.id or None)
        try:
            async with aclosing(self._speaker.speak(start.request, stop)) as outputs:
                async for output in outputs:
                    match output:
                        case Started(plan):
                            voice = self._speaker.chosen(start.request)
                            self._do(session.started(plan, voice))
                        case bytes():
                            self._do(session.audio(output))
                            await self._outbox.room()
                        case Finished():
                            finished = output
            actions = session.completed(
                duration_s=finished.duration_s,
                words=finished.words,
                synthesis_ms=finished.synthesis_ms,
                queue_ms=finished.queue_ms,
            )
        except Stopped:
            actions = self._when_stopped()
        except SynthesisError as error:
            actions = session.failed(
                error.code,
                error.message,
                retryable=error.retryable,
                retry_after_ms=error.retry_after_ms,
            )
        except Exception as error:
            # The message of an unknown error may hold text: only its type is logged.
            telemetry.logger().error(
                "synthesis_failed",
                request=start.request.id or None,
                error=type(error).__name__,
                where=where(error),
            )
            actions = session.failed("engine_failed", "the engine failed", retryable=True)
        self._do(actions)

    def _when_stopped(self) -> list[Action]:
        if self._forced:
            message = "this container is going; connect again elsewhere"
            return self._session.failed("draining", message, retryable=True)
        return self._session.stopped()


class Outbox:
    """Frames on their way out, in order. Only audio waits for a slow peer; answers never do."""

    def __init__(self, ws: web.WebSocketResponse, timeout_s: float) -> None:
        self.close_code: int = WSCloseCode.POLICY_VIOLATION
        """What the connection is to be closed with when `run` has ended."""
        self._ws = ws
        self._timeout_s = timeout_s
        self._frames: deque[str | bytes] = deque()
        self._last = False
        self._over = False
        self._news = asyncio.Event()
        self._sent = asyncio.Event()

    def put(self, frame: str | bytes) -> None:
        if len(self._frames) >= MAX_OUTBOX:
            self.abandon()
        if not self._over:
            self._frames.append(frame)
            self._news.set()

    def close(self, code: int) -> None:
        """Send what was put so far, then end `run`."""
        self.close_code = code
        self._last = True
        self._news.set()

    def abandon(self) -> None:
        """The connection is gone, or must be dropped: send nothing more."""
        self._over = True
        self._frames.clear()
        self._news.set()
        self._sent.set()

    async def room(self) -> None:
        """Wait until few enough frames wait to make more audio."""
        await asyncio.sleep(0)  # let the last frame go out before the next is made
        while len(self._frames) > AUDIO_AHEAD and not self._over:
            self._sent.clear()
            await self._sent.wait()

    async def run(self) -> None:
        """Send until told to stop; a peer that takes nothing for too long is dropped."""
        try:
            while not self._over:
                await self._send_all()
                if self._last and not self._frames:
                    return
                self._news.clear()
                await self._news.wait()
        except (ConnectionError, TimeoutError):
            self.close_code = WSCloseCode.POLICY_VIOLATION
            telemetry.logger().info("peer_takes_nothing", waiting=len(self._frames))
            self.abandon()

    async def _send_all(self) -> None:
        while self._frames:
            frame = self._frames.popleft()
            async with asyncio.timeout(self._timeout_s):
                if isinstance(frame, str):
                    await self._ws.send_str(frame)
                else:
                    await self._ws.send_bytes(frame)
            self._sent.set()
