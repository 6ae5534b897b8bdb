"""The container's WebSocket as SageMaker's sidecar holds it: frame by frame, nothing merged."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from websockets.client import ClientProtocol
from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode as WireOpcode
from websockets.protocol import State
from websockets.uri import parse_uri

from firstword.emulator.bridge import Frame, Opcode

MAX_FRAME_BYTES = 16 * 1024 * 1024
_READ_BYTES = 64 * 1024
_GOING_AWAY = 1001
_OPCODES = {
    WireOpcode.CONT: Opcode.CONTINUATION,
    WireOpcode.TEXT: Opcode.TEXT,
    WireOpcode.BINARY: Opcode.BINARY,
}


class UpgradeRefused(Exception):
    """The container did not open its WebSocket; the words are for the emulator's own log."""


@dataclass(frozen=True)
class Closed:
    """The container's end of the stream: a code of RFC 6455, 1006 where none came."""

    code: int
    reason: str


class Address(NamedTuple):
    """Where the container listens."""

    host: str
    port: int


class Container:
    """One WebSocket. One task receives, another may send."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, protocol: ClientProtocol
    ) -> None:
        self.reading = False
        """Whether `receive` waits for the container right now."""
        self.unanswered = 0
        """Pings without a pong."""
        self._reader = reader
        self._writer = writer
        self._protocol = protocol
        self._frames: deque[Frame] = deque()

    @classmethod
    async def open(cls, address: Address, target: str, request_id: str) -> Container:
        """Connect and upgrade `target`, a path with a query. Raises UpgradeRefused."""
        uri = parse_uri(f"ws://{address.host}:{address.port}{target}")
        protocol = ClientProtocol(uri, max_size=(None, MAX_FRAME_BYTES))
        try:
            reader, writer = await asyncio.open_connection(*address)
        except OSError as error:
            raise UpgradeRefused(f"no connection to {address.host}:{address.port}") from error
        self = cls(reader, writer, protocol)
        request = protocol.connect()
        request.headers["X-Amzn-SageMaker-Request-Id"] = request_id
        protocol.send_request(request)
        try:
            await self._upgrade()
        except BaseException:
            self.hang_up()
            raise
        return self

    async def _upgrade(self) -> None:
        self._flush()
        while True:
            try:
                await self._read()
            except OSError as error:
                raise UpgradeRefused("the connection broke during the upgrade") from error
            if self._protocol.handshake_exc is not None:
                raise UpgradeRefused(str(self._protocol.handshake_exc))
            if self._protocol.state is not State.CONNECTING:
                return

    async def receive(self) -> Frame | Closed:
        """The next frame, or how it ended."""
        while not self._frames:
            if (end := self._end()) is not None:
                return end
            try:
                await self._read()
            except OSError:
                self._protocol.receive_eof()
        return self._frames.popleft()

    async def send(self, frame: Frame) -> None:
        """Returns when the container takes more. What comes after its end goes nowhere."""
        if self._protocol.state is not State.OPEN:
            return
        if frame.opcode is Opcode.CONTINUATION:
            self._protocol.send_continuation(frame.data, frame.fin)
        elif frame.opcode is Opcode.TEXT:
            self._protocol.send_text(frame.data, frame.fin)
        else:
            self._protocol.send_binary(frame.data, frame.fin)
        self._flush()
        with contextlib.suppress(OSError):  # the receiving task tells it
            await self._writer.drain()

    def ping(self) -> None:
        """Ask whether it is alive; `unanswered` tells."""
        if self._protocol.state is State.OPEN:
            self.unanswered += 1
            self._protocol.send_ping(b"")
            self._flush()

    def close(self, code: int) -> None:
        """Say that nothing more comes. Its own last frames can still be received."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code)
            self._flush()

    def hang_up(self) -> None:
        """Let go of the connection, with a word if none was said; what was sent still arrives."""
        self.close(_GOING_AWAY)
        self._writer.close()

    async def _read(self) -> None:
        """Take in what the container sends next. Raises OSError."""
        self.reading = True
        try:
            data = await self._reader.read(_READ_BYTES)
        finally:
            self.reading = False
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        self._flush()  # the pongs
        for event in self._protocol.events_received():
            if isinstance(event, WireFrame) and event.opcode is WireOpcode.PONG:
                self.unanswered = 0
            elif isinstance(event, WireFrame) and event.opcode in _OPCODES:
                data = bytes(event.data)
                self._frames.append(Frame(_OPCODES[event.opcode], data, event.fin))

    def _end(self) -> Closed | None:
        """How it ended, if it did."""
        received, sent = self._protocol.close_rcvd, self._protocol.close_sent
        if received is not None:
            return Closed(received.code, received.reason)
        if sent is not None and isinstance(
            self._protocol.parser_exc, ProtocolError | PayloadTooBig
        ):
            return Closed(sent.code, sent.reason)  # its frames were no WebSocket's
        return Closed(1006, "") if self._protocol.state is State.CLOSED else None

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data and not self._writer.is_closing():
                self._writer.write(data)
