"""The agent's HTTP server: every route, the page, health. What each route does is in its module."""

from __future__ import annotations

import asyncio
import os
from importlib import resources
from pathlib import PurePath

from aiohttp import web

from firstword import assets
from firstword.client import Firstword
from firstword.languages import why_silent
from firstword.runtime import Health, HttpServer, add_routes, announce_ready
from firstword.server_look import check_server
from services.agent.access import Quota, check_exposure, read_origins, read_tokens
from services.agent.calls import Calls
from services.agent.doors import MAX_REQUEST_BYTES, Doors
from services.agent.server_watch import ServerWatch
from services.agent.sessions import Sessions
from services.agent.settings import AgentSettings
from services.agent.speech import SpeechDoor
from services.agent.talk import MakeSource

NAME = "agent"
SCRIPTED = "scripted"
PAGE_KINDS = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
PAGE_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
OPEN_PATHS = ("/ping", "/livez", "/readyz", "/metrics")
"""Paths without a token: what orchestrators ask. The page's files are added to them."""


class AgentService:
    """Serves callers until told to stop. `make_source` makes the token source of a session.

    `address` is host:port while it serves. Raises FirstwordError if it would be open to other
    machines without tokens, or if a setting about access is wrong.
    """

    def __init__(self, settings: AgentSettings, make_source: MakeSource) -> None:
        self.address = ""
        self._settings = settings
        tokens = read_tokens(settings.api_tokens)
        check_exposure(settings.http_host, tokens)
        origins = read_origins(settings.cors_origins)
        quota = Quota(settings.max_sessions, settings.max_chars_per_minute)
        self._firstword = Firstword(settings.redis_url)
        self._server = ServerWatch(self._firstword)
        self._page = _read_page()
        self._voices = _known_voices()
        open_paths = frozenset((*OPEN_PATHS, *(f"/{path}" for path in self._page)))
        self._doors = Doors(tokens, origins, quota, open_paths)
        self._calls = Calls(self._firstword, settings.talks(make_source), settings, self._doors)
        self._sessions = Sessions(self._firstword, settings, self._doors)
        self._speech = SpeechDoor(
            self._firstword,
            settings,
            self._doors,
            frozenset(voice["id"] for voice in self._voices),
            assets.DEFAULT_VOICE,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; then hang up on the callers who are left."""
        http = HttpServer(
            self.app(),
            self._settings.http_host,
            self._settings.http_port,
            cancel_when_gone=True,
            word="AGENT",
        )
        async with self._firstword:
            watching = asyncio.create_task(self._server.run())
            await http.start()
            self.address = http.address
            try:
                await check_server(self._firstword.streams, stop)
                announce_ready(NAME, http=http.address)
                await stop.wait()
            finally:
                await http.stop()
                watching.cancel()
            self._sessions.stop()
            await self._calls.stop()
            await self._speech.stop()

    def app(self) -> web.Application:
        """Every route of the agent."""
        health = Health()
        health.add("redis", lambda: self._server.problem)
        health.add("memory", lambda: self._server.full)
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        self._doors.mount(app)
        app.middlewares.append(self._server.middleware())  # behind the doors: they refuse in words
        add_routes(app, health)
        app.router.add_post("/invocations", self._calls.invocations)
        app.router.add_get("/ws", self._calls.ws)
        self._sessions.add_routes(app.router)
        self._speech.add_routes(app.router)
        app.router.add_get("/v1/voices", self._list_voices)
        app.router.add_get("/v1/agent", self._describe)
        app.router.add_get("/ping", self._healthy)
        for path in self._page:
            app.router.add_get(f"/{path}", self._serve_page)
        return app

    # -- the rest ---------------------------------------------------------------------------------

    async def _healthy(self, _request: web.Request) -> web.Response:
        healthy = self._server.problem is None
        return web.json_response(
            {"status": "Healthy" if healthy else "Unhealthy"}, status=200 if healthy else 503
        )

    async def _list_voices(self, _request: web.Request) -> web.Response:
        return web.json_response({"voices": self._voices})

    async def _describe(self, _request: web.Request) -> web.Response:
        """Which source answers prompts, and whether with more than the prompt itself."""
        settings = self._settings
        answers = settings.source != SCRIPTED or bool(settings.script)
        return web.json_response({"source": settings.source, "answers": answers})

    async def _serve_page(self, request: web.Request) -> web.Response:
        body, content_type = self._page[request.path.removeprefix("/")]
        return web.Response(
            body=body, content_type=content_type, charset="utf-8", headers=PAGE_HEADERS
        )


def _read_page() -> dict[str, tuple[bytes, str]]:
    """Every file of the page by its path, with its type; the path of the page itself is empty."""
    folder = resources.files("services.agent") / "page"
    return {
        "" if file.name == "index.html" else file.name: (file.read_bytes(), PAGE_KINDS[kind])
        for file in folder.iterdir()
        if (kind := PurePath(file.name).suffix) in PAGE_KINDS
    }


def _known_voices() -> list[dict[str, str]]:
    """The voices installed on this machine, without those whose language needs a missing extra.

    If none is installed here, inference runs elsewhere: then all voices that exist.
    """
    every = assets.voices(os.environ)
    here = [voice for voice in every if voice.installed and why_silent(voice.language) is None]
    return [{"id": voice.name, "language": voice.language} for voice in here or every]
