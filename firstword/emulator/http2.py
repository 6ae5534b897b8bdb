"""HTTP/2 as a server over one TLS connection: h2 decides, this moves the bytes.

What a client may send is bounded by the window it was given, and that is given back only for what
was used; what goes to it waits for its window and its socket. So nothing piles up in between.
asyncio sets TCP_NODELAY on every TCP socket: nothing of ours waits for an acknowledgement.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import Callable, Coroutine, Sequence

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame

MAX_STREAMS = 128
_WINDOW_BYTES = 65_535  # of a stream; the protocol's default
_READ_BYTES = 64 * 1024
_NO_LINGER = struct.pack("ii", 1, 0)

Headers = Sequence[tuple[str, str]]


class ClientGone(Exception):
    """The client has reset the stream, or its connection is lost."""


class Stream:
    """One request and its response."""

    def __init__(self, connection: Connection, number: int, headers: Headers) -> None:
        self.connection = connection
        self.headers = headers
        self._number = number
        self._chunks: deque[tuple[bytes, int]] = deque()
        self._ended = False
        self._lost = asyncio.Event()
        self._news = asyncio.Event()

    @property
    def window(self) -> int:
        """Bytes that the client may send now."""
        return self.connection.h2.remote_flow_control_window(self._number)

    async def receive(self) -> tuple[bytes, int] | None:
        """A piece of the body and the window it took; None at its end. Raises ClientGone."""
        self._check()
        while not self._chunks:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
            self._check()
        return self._chunks.popleft()

    def acknowledge(self, size: int) -> None:
        """Give window back: that much may come again."""
        self.connection.acknowledge(self._number, size)

    async def respond(self, status: int, headers: Headers, body: bytes | None = None) -> None:
        """Begin the response; a body is all of it and ends it. Raises ClientGone."""
        self._check()
        self.connection.h2.send_headers(self._number, [(":status", str(status)), *headers])
        if body is not None:
            await self.send(body, end=True)
        await self.connection.flush()

    async def send(self, data: bytes, *, end: bool = False, piece: int | None = None) -> None:
        """Send all of it, in DATA frames of `piece` bytes if given. Raises ClientGone."""
        rest = memoryview(data)
        while rest:
            self._check()
            window = self.connection.h2.local_flow_control_window(self._number)
            size = min(window, self.connection.h2.max_outbound_frame_size, piece or len(rest))
            if size <= 0:
                await self.connection.window_opened()
                continue
            self.connection.h2.send_data(self._number, bytes(rest[:size]))
            rest = rest[size:]
            await self.connection.flush()
        if end:
            self._check()
            self.connection.h2.end_stream(self._number)
            await self.connection.flush()

    def reset(self, code: int = ErrorCodes.INTERNAL_ERROR) -> None:
        """Break this stream off, and no other."""
        if not self._lost.is_set():
            self.connection.h2.reset_stream(self._number, error_code=code)
            self.connection.write()
            self.lose()

    async def lost(self) -> None:
        """Returns when the client is gone."""
        await self._lost.wait()

    def left(self) -> list[int]:
        """The windows of the pieces that nobody has received."""
        return [size for _, size in self._chunks]

    # -- what the connection tells --

    def feed(self, data: bytes, size: int) -> None:
        """A piece of the body has come, which took `size` of the window."""
        self._chunks.append((data, size))
        self._news.set()

    def end(self) -> None:
        """The body is complete."""
        self._ended = True
        self._news.set()

    def lose(self) -> None:
        """Nothing more can be received or sent."""
        self._lost.set()
        self._news.set()
        self.connection.wake()

    def _check(self) -> None:
        if self._lost.is_set():
            raise ClientGone


class Connection:
    """One client's connection. `serve` runs until it ends."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answer: Callable[[Stream], Coroutine[None, None, None]],
    ) -> None:
        self.h2 = H2Connection(
            H2Configuration(client_side=False, header_encoding="utf-8", logger=None)
        )
        self.going_away = False
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._streams: dict[int, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._opened = asyncio.Event()
        self._latest = 0

    async def serve(self) -> None:
        """Answer every request until the connection is over; answers still open are cancelled."""
        self.h2.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = MAX_STREAMS
        self.h2.initiate_connection()
        # One stream that is not read must not hold up the others: the connection's window has room
        # for the windows of all.
        self.h2.increment_flow_control_window(MAX_STREAMS * _WINDOW_BYTES)
        try:
            await self.flush()
            while data := await self._reader.read(_READ_BYTES):
                over = self._take(data)
                await self.flush()
                if over:
                    break
        except (OSError, ClientGone):
            pass
        finally:
            for stream in self._streams.values():
                stream.lose()
            with contextlib.suppress(OSError):
                self._writer.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def abort(self) -> None:
        """Break the TCP connection off: the peer sees a reset, not an end."""
        with contextlib.suppress(OSError, AttributeError):  # it may be gone already
            self._writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER
            )
        self._writer.transport.abort()
        for stream in self._streams.values():
            stream.lose()

    def go_away(self) -> None:
        """Let open streams go on and take no new ones.

        The frame is made by hand: h2 itself sends nothing more after its own.
        """
        if not self.going_away:
            self.going_away = True
            self.write()
            self._writer.write(GoAwayFrame(0, last_stream_id=self._latest).serialize())

    # -- for its streams --

    def acknowledge(self, number: int, size: int) -> None:
        """Give back the window that `size` bytes of a stream took."""
        if size:
            self.h2.acknowledge_received_data(size, number)
            self.write()

    async def window_opened(self) -> None:
        """Wait until the client allows more, of this stream or another, or a stream is lost."""
        self._opened.clear()
        await self._opened.wait()

    def wake(self) -> None:
        """Let those who wait for a window look again."""
        self._opened.set()

    def write(self) -> None:
        """Hand what h2 has to say to the socket."""
        if (data := self.h2.data_to_send()) and not self._writer.is_closing():
            self._writer.write(data)

    async def flush(self) -> None:
        """The same, and wait until the socket takes more. Raises ClientGone."""
        self.write()
        try:
            await self._writer.drain()
        except OSError as error:
            raise ClientGone from error

    # -- reading --

    def _take(self, data: bytes) -> bool:
        """Handle what came; True when the client has ended or broken the protocol."""
        try:
            events = self.h2.receive_data(data)
        except H2Error:
            return True
        self.wake()  # the windows may have changed
        for event in events:
            self._handle(event)
        return any(isinstance(event, ConnectionTerminated) for event in events)

    def _handle(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self._begin(event)
        elif isinstance(event, DataReceived):
            stream = self._streams.get(event.stream_id)
            if stream is None:  # answered and done with: what still comes is dropped
                self.acknowledge(event.stream_id, event.flow_controlled_length)
            else:
                stream.feed(event.data, event.flow_controlled_length)
        elif isinstance(event, StreamEnded) and event.stream_id in self._streams:
            self._streams[event.stream_id].end()
        elif isinstance(event, StreamReset) and event.stream_id in self._streams:
            self._streams[event.stream_id].lose()

    def _begin(self, event: RequestReceived) -> None:
        number = event.stream_id
        if self.going_away:
            self.h2.reset_stream(number, error_code=ErrorCodes.REFUSED_STREAM)
            return
        self._latest = number
        headers = [(str(name), str(value)) for name, value in event.headers]
        stream = self._streams[number] = Stream(self, number, headers)
        task = asyncio.create_task(self._answer(stream))
        self._tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            del self._streams[number]
            if not task.cancelled() and (error := task.exception()) is not None:
                stream.reset()
                context = {"message": "an answer failed", "exception": error, "task": task}
                asyncio.get_running_loop().call_exception_handler(context)
            for size in stream.left():
                self.acknowledge(number, size)

        task.add_done_callback(done)
