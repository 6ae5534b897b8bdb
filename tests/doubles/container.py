"""A synthesis container under a test's hand: what the gateway's upstreams connect to.

It speaks no protocol of its own accord: it keeps what clients send, and sends what it is told.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from aiohttp import WSMsgType, web

from firstword.runtime import HttpServer
from tests.doubles.served import Served


class BackendPeer(Protocol):
    """The far end of one link."""

    received: list[str | bytes]
    """The frames that came, each of its kind."""
    closed: asyncio.Event
    """Set when the client's side of the connection is gone."""

    async def send(self, frame: str | bytes) -> None:
        """Send one frame; control is str, audio is bytes."""

    async def finish(self) -> None:
        """End the connection in order."""

    def abort(self) -> None:
        """Break the connection without a word."""


class BackendDouble(Protocol):
    """What the contract suite of upstreams needs of a far end, whatever the transport."""

    peers: list[BackendPeer]
    """Oldest first."""


class WebSocketPeer:
    """One WebSocket of the double."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self.received: list[str | bytes] = []
        self.closed = asyncio.Event()
        self._socket = socket
        self._request = request

    async def send(self, frame: str | bytes) -> None:
        if isinstance(frame, str):
            await self._socket.send_str(frame)
        else:
            await self._socket.send_bytes(frame)

    async def finish(self) -> None:
        await self._socket.close(code=1012)

    def abort(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()


class WebSocketBackend(Served):
    """A real server on loopback; `url` is what clients connect to."""

    def __init__(self) -> None:
        self.peers: list[BackendPeer] = []
        self.refuse = False
        """Answer 503 instead of taking connections."""
        app = web.Application()
        app.router.add_get("/invocations-bidirectional-stream", self._connect)
        self._http = HttpServer(app, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        return f"ws://{self._http.address}/invocations-bidirectional-stream"

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        if self.refuse:
            raise web.HTTPServiceUnavailable(text="draining: connect elsewhere")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        peer = WebSocketPeer(socket, request)
        self.peers.append(peer)
        try:
            async for message in socket:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    peer.received.append(message.data)
        finally:
            peer.closed.set()
        return socket
