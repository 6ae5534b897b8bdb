"""The agent's shell: callers on one side, a Firstword session for each on the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources
from urllib.parse import urlsplit

from aiohttp import web

from firstword import assets, telemetry
from firstword.client import Firstword, Session
from firstword.errors import FirstwordError
from firstword.languages import why_silent
from firstword.runtime import Health, HttpServer, add_routes, announce_ready
from firstword.server_look import check_server
from services.agent.conversation import CallerGone, Conversation, Outlet
from services.agent.core import RequestError, check_label, error_event, parse_invocation
from services.agent.settings import AgentSettings
from services.agent.sse import HEADERS, SseOutlet, speak
from services.agent.talk import MakeSource
from services.agent.websocket import Call, WebSocketOutlet

NAME = "agent"
PAGE = {
    "": ("index.html", "text/html"),
    **{
        name: (name, "text/javascript")
        for name in ("app.js", "passages.js", "player.js", "player-worklet.js", "transcript.js")
    },
    "style.css": ("style.css", "text/css"),
}
PAGE_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'; connect-src 'self' ws: wss:; img-src data:",
    "X-Content-Type-Options": "nosniff",
}
MAX_REQUEST_BYTES = 1_048_576
PING_S = 2.0
FAREWELL_S = 8.0
RETRY_AFTER_S = "5"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AgentService:
    """Serves callers until told to stop. `make_source` makes the token source of a session.

    `address` is host:port while it serves.
    """

    def __init__(self, settings: AgentSettings, make_source: MakeSource) -> None:
        self.address = ""
        self._settings = settings
        self._talks = settings.talks(make_source)
        self._firstword = Firstword(settings.redis_url)
        self._farewells: set[asyncio.Task[None]] = set()
        self._redis_problem: str | None = "the server has not answered yet"
        self._page = _read_page()
        self._voices = _known_voices()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; callers who are left then are hung up on."""
        http = HttpServer(
            self.app(), self._settings.http_host, self._settings.http_port, cancel_when_gone=True
        )
        async with self._firstword:
            pinging = asyncio.create_task(self._ping())
            await http.start()
            self.address = http.address
            try:
                await check_server(self._firstword.streams, stop)
                announce_ready(NAME, http=http.address)
                await stop.wait()
            finally:
                await http.stop()
                pinging.cancel()
            if self._farewells:
                await asyncio.wait(self._farewells, timeout=FAREWELL_S)

    def app(self) -> web.Application:
        """Every route of the agent."""
        health = Health()
        health.add("redis", lambda: self._redis_problem)
        app = web.Application(client_max_size=MAX_REQUEST_BYTES, middlewares=[same_origin])
        add_routes(app, health)
        app.router.add_post("/invocations", self._invocations)
        app.router.add_get("/ping", self._healthy)
        app.router.add_get("/ws", self._ws)
        app.router.add_get("/v1/voices", self._list_voices)
        for path in PAGE:
            app.router.add_get(f"/{path}", self._serve_page)
        return app

    # -- speech -----------------------------------------------------------------------------------

    async def _invocations(self, request: web.Request) -> web.StreamResponse:
        try:
            say = parse_invocation(await request.read(), self._settings.limits())
        except web.HTTPRequestEntityTooLarge:
            limit = f"a request may have {MAX_REQUEST_BYTES} bytes: send it in parts"
            return _refusal(RequestError("too_large", limit))
        except RequestError as error:
            return _refusal(error)
        response = web.StreamResponse(headers=HEADERS)
        outlet = SseOutlet(response)
        try:
            async with self._conversation(say.session, outlet, "sse") as (session, conversation):
                await session.check_room()  # else the caller would wait for others without a word
                await response.prepare(request)
                await speak(session, conversation, outlet, say)
        except CallerGone:
            pass
        except FirstwordError as error:
            return _unavailable(error)
        return response

    async def _ws(self, request: web.Request) -> web.StreamResponse:
        try:
            session_name = request.query.get("session")
            if session_name is not None:
                check_label(session_name)
        except RequestError as error:
            return _refusal(error)
        socket = web.WebSocketResponse(heartbeat=20, max_msg_size=MAX_REQUEST_BYTES)
        outlet = WebSocketOutlet(socket)
        limits, max_turns = self._settings.limits(), self._settings.max_turns
        try:
            async with self._conversation(session_name, outlet, "ws") as (session, conversation):
                await socket.prepare(request)
                await Call(socket, outlet, session, conversation, limits, max_turns).run()
        except FirstwordError as error:
            return _unavailable(error)
        return socket

    @asynccontextmanager
    async def _conversation(
        self, name: str | None, outlet: Outlet, door: str
    ) -> AsyncIterator[tuple[Session, Conversation]]:
        """A caller's session for as long as it is on the line.

        What it had asked for and is not over is cancelled when it leaves; a session that was made
        for it alone is closed too. Raises FirstwordError if the server cannot be used.
        """
        session = self._firstword.session(name)
        listener = await session.listener()
        await session.open()
        conversation = Conversation(
            session, listener, self._talks.of(session.name), outlet, self._settings.patience_s
        )
        with telemetry.callers.labels(door).track_inprogress():
            try:
                yield session, conversation
            finally:
                if name is None:
                    self._talks.forget(session.name)
                # In a task of its own: the caller's may be cancelled.
                task = asyncio.create_task(_part(session, conversation, close=name is None))
                self._farewells.add(task)
                task.add_done_callback(self._farewells.discard)

    # -- the rest ---------------------------------------------------------------------------------

    async def _healthy(self, _request: web.Request) -> web.Response:
        healthy = self._redis_problem is None
        return web.json_response(
            {"status": "Healthy" if healthy else "Unhealthy"}, status=200 if healthy else 503
        )

    async def _list_voices(self, _request: web.Request) -> web.Response:
        return web.json_response({"voices": self._voices})

    async def _serve_page(self, request: web.Request) -> web.Response:
        body, content_type = self._page[request.path.removeprefix("/")]
        return web.Response(
            body=body, content_type=content_type, charset="utf-8", headers=PAGE_HEADERS
        )

    async def _ping(self) -> None:
        while True:
            try:
                await self._firstword.streams.commands.ping()
                self._redis_problem = None
            except Exception as error:  # redis-py raises more kinds than its own
                self._redis_problem = f"the server does not answer ({type(error).__name__})"
            await asyncio.sleep(PING_S)


@web.middleware
async def same_origin(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Pages of other sites may not speak with a visitor's agent on loopback."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.host:
        return _refusal(RequestError("bad_origin", "pages of other sites are not served"), 403)
    return await handler(request)


async def _part(session: Session, conversation: Conversation, *, close: bool) -> None:
    await conversation.leave()
    if close:
        with contextlib.suppress(FirstwordError):  # the gateway closes idle sessions too
            await session.close()


def _unavailable(error: FirstwordError) -> web.Response:
    """The server cannot be used now: it is away, or the session has enough to do."""
    if error.code != "busy":
        return web.json_response(error_event(error), status=503)
    telemetry.refused_requests.labels(error.code).inc()
    headers = {"Retry-After": RETRY_AFTER_S}
    return web.json_response(error_event(error), status=429, headers=headers)


def _refusal(error: RequestError, status: int = 400) -> web.Response:
    telemetry.refused_requests.labels(error.code).inc()
    return web.json_response(error_event(error), status=status)


def _read_page() -> dict[str, tuple[bytes, str]]:
    folder = resources.files("services.agent") / "page"
    return {path: ((folder / name).read_bytes(), kind) for path, (name, kind) in PAGE.items()}


def _known_voices() -> list[dict[str, str]]:
    """Voices whose files are on this machine, else (voices elsewhere) all that there are.

    Not those of a language that needs an extra which is not installed here.
    """
    every = [voice for voice in assets.voices(os.environ) if why_silent(voice.language) is None]
    here = [voice for voice in every if voice.installed]
    return [{"id": voice.name, "language": voice.language} for voice in here or every]
