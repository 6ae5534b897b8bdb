"""Containers behind the emulator: one as people write them, and one that shows every frame."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import WSMsgType, web
from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode as WireOpcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from firstword.emulator.bridge import Frame, Opcode
from firstword.runtime import HttpServer
from tests.doubles.served import Served

Handler = Callable[[web.WebSocketResponse], Awaitable[None]]


async def echo(socket: web.WebSocketResponse) -> None:
    """Give back whatever comes, until the client ends."""
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)


class AiohttpContainer(Served):
    """A real aiohttp server; `handler` is what it does with each WebSocket."""

    def __init__(self, handler: Handler = echo) -> None:
        self.handler = handler
        self.refuse: web.HTTPException | None = None
        self.upgrades: list[tuple[str, str]] = []
        """Path with query, and request id, of each."""
        self.close_codes: list[int | None] = []
        """Of each that is over, in the order of their ends."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._connect)
        self._http = HttpServer(app, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        return f"ws://{self._http.address}"

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        if self.refuse is not None:
            raise self.refuse
        request_id = request.headers.get("X-Amzn-SageMaker-Request-Id", "")
        self.upgrades.append((request.path_qs, request_id))
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        try:
            await self.handler(socket)
        finally:
            self.close_codes.append(socket.close_code)
        return socket


class FramePeer:
    """The far end of one WebSocket, frame by frame."""

    def __init__(self, writer: asyncio.StreamWriter, path: str, protocol: ServerProtocol) -> None:
        self.path = path
        self.frames: list[Frame] = []
        self.received_bytes = 0
        self.pings = 0
        self.close_code: int | None = None
        self.gone = asyncio.Event()
        self.hears = asyncio.Event()
        """Cleared: it reads nothing, and so answers nothing."""
        self.hears.set()
        self._writer = writer
        self._protocol = protocol

    @property
    def unsent_bytes(self) -> int:
        """What the operating system does not take, because nobody reads."""
        return self._writer.transport.get_write_buffer_size()

    async def send(self, *frames: Frame) -> None:
        """Send frames as they are, whatever they mean together."""
        for frame in frames:
            wire = WireFrame(WireOpcode(int(frame.opcode)), frame.data, frame.fin)
            self._writer.write(wire.serialize(mask=False, extensions=[]))
            await self._writer.drain()

    def send_raw(self, data: bytes) -> None:
        """Send what need not be a frame at all."""
        self._writer.write(data)

    def close(self, code: int, reason: str = "") -> None:
        """Begin the closing handshake."""
        self._protocol.send_close(code, reason)
        self.flush()

    def abort(self) -> None:
        """Die without a word."""
        self._writer.transport.abort()

    def flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._writer.write(data)

    def note(self, event: object) -> None:
        """Keep what came."""
        if not isinstance(event, WireFrame):
            return
        if event.opcode is WireOpcode.PING:
            self.pings += 1
        elif event.opcode in (WireOpcode.CONT, WireOpcode.TEXT, WireOpcode.BINARY):
            self.frames.append(Frame(Opcode(event.opcode.value), bytes(event.data), event.fin))
            self.received_bytes += len(event.data)
        elif event.opcode is WireOpcode.CLOSE and self._protocol.close_rcvd is not None:
            self.close_code = int(self._protocol.close_rcvd.code)


class FrameContainer:
    """A WebSocket server that keeps each frame as it came and sends what it is told."""

    def __init__(self) -> None:
        self.peers: list[FramePeer] = []
        self.answers = True
        """Whether an upgrade is answered."""
        self.hang_up = False
        """Whether a connection ends before its upgrade is answered."""
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        for peer in self.peers:
            peer.hears.set()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        protocol = ServerProtocol(max_size=None)
        peer = FramePeer(writer, "", protocol)
        try:
            with contextlib.suppress(OSError):
                while (data := await reader.read(65_536)) and not self.hang_up:
                    protocol.receive_data(data)
                    for event in protocol.events_received():
                        if isinstance(event, Request) and self.answers:
                            peer.path = event.path
                            protocol.send_response(protocol.accept(event))
                            self.peers.append(peer)
                        peer.note(event)
                    peer.flush()
                    if protocol.state is State.CLOSED or protocol.close_expected():
                        writer.close()
                    await peer.hears.wait()
        finally:
            peer.gone.set()
            self._writers.discard(writer)
            writer.close()
