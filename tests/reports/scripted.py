"""A container that does what users saw containers do: it goes, falls silent, or says too much.

It speaks the session frames by itself and correctly; a test replaces the part that went wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import WSMsgType, web

from firstword.runtime import HttpServer
from tests.doubles.gateway_rig import PATH, RATE, spoken
from tests.doubles.served import Served

Request = dict[str, Any]
PLAN = "scripted"
FRAME_SAMPLES = 2_400


class Peer:
    """One connection, as the container sees it."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self.requests: list[Request] = []
        self.cancels: list[Request] = []
        self.pings = 0
        self._socket = socket
        self._transport = transport

    async def control(self, kind: str, **fields: Any) -> None:
        """Send a control frame."""
        await self._socket.send_str(json.dumps({"type": kind, **fields}))

    async def start(self, request: Request) -> None:
        await self.control("synthesis_start", id=request["id"], sample_rate=RATE, plan=PLAN)

    async def audio(self, pcm: bytes) -> None:
        """Send these samples, in frames of a tenth of a second."""
        size = FRAME_SAMPLES * 2
        for at in range(0, len(pcm), size):
            await self._socket.send_bytes(pcm[at : at + size])

    async def complete(self, request: Request, samples: int, **fields: Any) -> None:
        await self.control("synthesis_complete", id=request["id"], samples=samples, **fields)

    async def speak(self, request: Request, part: float = 1.0) -> None:
        """The right answer to a request, or this part of it without an end."""
        pcm = spoken(request["text"])
        skipped = request["skip_samples"] if request.get("plan") == PLAN else 0
        end = round(len(pcm) // 2 * part)
        await self.start(request)
        await self.audio(pcm[skipped * 2 : end * 2])
        if part == 1.0:
            await self.complete(request, end - skipped)

    async def finish(self, code: int = 1000) -> None:
        """Close in order."""
        await self._socket.close(code=code)

    def abort(self) -> None:
        """Break the connection without a word."""
        if self._transport is not None:
            self._transport.abort()

    async def serve(self, answer: Answer) -> None:
        """Read until the connection ends; each request is answered beside the reading."""
        answers: set[asyncio.Task[None]] = set()
        try:
            async for message in self._socket:
                if message.type is WSMsgType.PING:
                    self.pings += 1
                    await self._socket.pong(message.data)
                elif message.type is WSMsgType.TEXT:
                    self._take(json.loads(message.data), answer, answers)
        finally:
            for task in answers:
                task.cancel()
            await asyncio.gather(*answers, return_exceptions=True)

    def _take(self, frame: Request, answer: Answer, answers: set[asyncio.Task[None]]) -> None:
        if frame["type"] == "synthesize":
            self.requests.append(frame)
            answers.add(asyncio.create_task(_in_peace(answer(self, frame))))
        elif frame["type"] == "cancel":
            self.cancels.append(frame)


Answer = Callable[[Peer, Request], Awaitable[None]]


async def speak(peer: Peer, request: Request) -> None:
    """What a healthy container does."""
    await peer.speak(request)


async def welcome(_peer: Peer) -> None:
    """A healthy container waits to be asked."""


class ScriptedContainer(Served):
    """A server on loopback; `answer` is done for each request, `welcome` for each connection."""

    def __init__(
        self,
        answer: Answer = speak,
        welcome: Callable[[Peer], Awaitable[None]] = welcome,
        capacity: int = 1_000_000,
        port: int = 0,
    ) -> None:
        self.peers: list[Peer] = []
        """Every connection that was ever taken, oldest first."""
        self.open: list[Peer] = []
        self.handshakes = 0
        """How often a connection was asked for, taken or not."""
        self.gate = asyncio.Event()
        """Handshakes wait while it is clear."""
        self.gate.set()
        self._answer = answer
        self._welcome = welcome
        self._capacity = capacity
        app = web.Application()
        app.router.add_get(PATH, self._connect)
        self._http = HttpServer(app, "127.0.0.1", port)

    @property
    def url(self) -> str:
        return f"ws://{self._http.address}{PATH}"

    @property
    def requests(self) -> list[Request]:
        """Of all connections."""
        return [request for peer in self.peers for request in peer.requests]

    async def __aexit__(self, *error: Any) -> None:
        self.gate.set()
        await super().__aexit__(*error)

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        self.handshakes += 1
        await self.gate.wait()
        if len(self.open) >= self._capacity:
            raise web.HTTPServiceUnavailable(text="no room")
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        peer = Peer(socket, request.transport)
        self.peers.append(peer)
        self.open.append(peer)
        try:
            await _in_peace(self._welcome(peer))
            await peer.serve(self._answer)
        finally:
            self.open.remove(peer)
        return socket


async def _in_peace(work: Awaitable[None]) -> None:
    """The client may go at any moment: a container does not mind."""
    with contextlib.suppress(ConnectionError):
        await work
