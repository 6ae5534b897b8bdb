"""An OpenAI-compatible speech server: `POST /v1/audio/speech`, `GET /v1/models`.

Under a test's hand (`peers`), as the contract suite of upstreams wants it, or speaking tones by
itself (`OpenAISpeech(speak)`) with the faults that a test asks for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from firstword.runtime import HttpServer
from tests.doubles.container import BackendPeer
from tests.doubles.served import Served


class SpeechPeer:
    """One request and its answer."""

    def __init__(self, request: web.Request, body: dict[str, Any]) -> None:
        self.request = request
        self.body = body
        self.received: list[str | bytes] = [json.dumps(body, ensure_ascii=False)]
        self.closed = asyncio.Event()
        self.over = asyncio.Event()
        self.status = 200
        self.headers = {"Content-Type": "audio/pcm"}
        self._response: web.StreamResponse | None = None

    async def send(self, frame: str | bytes) -> None:
        """A piece of the body; the first one sends the status and headers, too."""
        if self._response is None:
            self._response = web.StreamResponse(status=self.status, headers=self.headers)
            await self._response.prepare(self.request)
        await self._response.write(frame.encode() if isinstance(frame, str) else frame)

    async def finish(self) -> None:
        """End the body in order."""
        if self._response is None:
            await self.send(b"")
        assert self._response is not None
        await self._response.write_eof()
        self.over.set()

    def abort(self) -> None:
        if self.request.transport is not None:
            self.request.transport.abort()

    async def answer(self) -> web.StreamResponse:
        """What the handler returns once the test has ended the answer."""
        await self.over.wait()
        assert self._response is not None
        return self._response


Speak = Callable[[SpeechPeer], Awaitable[None]]


class OpenAISpeech(Served):
    """A real server on loopback; `url` is what the gateway is set to."""

    def __init__(self, speak: Speak | None = None) -> None:
        self.peers: list[BackendPeer] = []
        self.requests: list[SpeechPeer] = []
        self.models_status = 200
        self.logins: list[str] = []
        self._speak = speak
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/audio/speech", self._speech)
        self._http = HttpServer(app, "127.0.0.1", 0, cancel_when_gone=True)

    @property
    def url(self) -> str:
        return f"openai+http://{self._http.address}/v1"

    async def _models(self, request: web.Request) -> web.Response:
        self.logins.append(request.headers.get("Authorization", ""))
        return web.json_response({"object": "list", "data": []}, status=self.models_status)

    async def _speech(self, request: web.Request) -> web.StreamResponse:
        self.logins.append(request.headers.get("Authorization", ""))
        peer = SpeechPeer(request, await request.json())
        self.requests.append(peer)
        self.peers.append(peer)
        speaking = asyncio.ensure_future(self._speak(peer)) if self._speak else None
        try:
            return await peer.answer()
        finally:
            peer.closed.set()
            if speaking is not None:
                speaking.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                    await speaking
