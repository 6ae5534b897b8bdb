"""A client that speaks HTTP/2 to the emulator by hand: it can do wrong what no SDK does."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from urllib.parse import urlsplit

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes

from firstword.emulator.eventstream import Decoder, Message
from firstword.emulator.server import Emulator
from firstword.emulator.signatures import KeyPair, Request
from tests.doubles.emulator_signer import Signer, part
from tests.support import eventually


class RawStream:
    """One request, and what has come back."""

    def __init__(self, client: RawClient, number: int, signer: Signer) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        """DATA frames as they came."""
        self.messages: list[Message] = []
        self.ended = False
        self.reset: int | None = None
        self.reads = True
        """Whether window is given back for what comes."""
        self.signer = signer
        self._client = client
        self._number = number
        self._decoder = Decoder()
        self._owed = 0

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    async def opened(self) -> RawStream:
        await eventually(lambda: self.status, "the response begins")
        return self

    async def send(self, data: bytes, data_type: str | None = "UTF8") -> None:
        """One part, signed."""
        await self.send_bytes(self.signer.event(part(data, data_type)))

    async def send_bytes(self, data: bytes, *, end: bool = False) -> None:
        """What need not be an event at all; waits for window."""
        h2 = self._client.h2
        while data:
            window = min(h2.local_flow_control_window(self._number), h2.max_outbound_frame_size)
            h2.send_data(self._number, data[:window])
            data = data[window:]
            self._client.flush()
            if data:
                await eventually(
                    lambda: h2.local_flow_control_window(self._number) > 0, "window comes back"
                )
        if end:
            h2.end_stream(self._number)
            self._client.flush()

    def window(self) -> int:
        """How much may be sent now."""
        return self._client.h2.local_flow_control_window(self._number)

    def cancel(self) -> None:
        self._client.h2.reset_stream(self._number, error_code=8)
        self._client.flush()

    def read_on(self) -> None:
        """Give back what was held, and read as usual."""
        self.reads = True
        self._client.h2.acknowledge_received_data(self._owed, self._number)
        self._owed = 0
        self._client.flush()

    def take(self, event: DataReceived) -> None:
        self.pieces.append(event.data)
        if self.status == 200:
            self.messages += self._decoder.feed(event.data)
        self._owed += event.flow_controlled_length
        if self.reads:
            self.read_on()


class RawClient:
    """One connection."""

    def __init__(self, authority: str, key: KeyPair, writer: asyncio.StreamWriter) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.goaway: ConnectionTerminated | None = None
        self.lost = asyncio.Event()
        self.wire = b""
        """All that came: h2 takes nothing after a GOAWAY."""
        self.streams: dict[int, RawStream] = {}
        self.authority = authority
        self._key = key
        self._writer = writer

    async def open(self, signer: Signer | None = None, request: Request | None = None) -> RawStream:
        """Send a request, without waiting for an answer."""
        signer = signer or Signer(self._key)
        request = request or signer.request(host=self.authority)
        number = self.h2.get_next_available_stream_id()
        headers = [(name, value) for name, value in request.headers if name != "host"]
        path = request.path + "?" + request.query
        pseudo = [(":method", request.method), (":scheme", "https"), (":path", path)]
        self.h2.send_headers(
            number, [*pseudo, (":authority", request.header("host") or ""), *headers]
        )
        self.flush()
        stream = self.streams[number] = RawStream(self, number, signer)
        return stream

    def settings(self, values: dict[SettingCodes | int, int]) -> None:
        self.h2.update_settings(values)
        self.flush()

    def flush(self) -> None:
        self._writer.write(self.h2.data_to_send())

    def abort(self) -> None:
        self._writer.transport.abort()

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Take in what comes until the connection is lost."""
        try:
            while data := await reader.read(65_536):
                self.wire += data
                for event in self.h2.receive_data(data):
                    if isinstance(event, ConnectionTerminated):
                        self.goaway = event
                    elif not isinstance(event, RemoteSettingsChanged):
                        self._take(event)
                self.flush()
        except OSError:
            pass
        except ProtocolError:
            while self.goaway and (data := await reader.read(65_536)):
                self.wire += data
        finally:
            self.lost.set()

    def _take(self, event: object) -> None:
        stream = self.streams.get(getattr(event, "stream_id", 0) or 0)
        if stream is None:
            return
        if isinstance(event, ResponseReceived):
            headers = {str(name): str(value) for name, value in event.headers}
            stream.headers = headers
            stream.status = int(headers[":status"])
        elif isinstance(event, DataReceived):
            stream.take(event)
        elif isinstance(event, StreamEnded):
            stream.ended = True
        elif isinstance(event, StreamReset):
            stream.reset = int(event.error_code)


def trusting(emulator: Emulator, protocols: list[str]) -> ssl.SSLContext:
    """What a client needs that trusts the emulator's CA."""
    return _context(emulator.ca_pem.decode(), protocols)


def _context(ca_pem: str, protocols: list[str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_pem)
    context.set_alpn_protocols(protocols)
    return context


def raw_client(emulator: Emulator) -> AbstractAsyncContextManager[RawClient]:
    """A connection to an emulator of this process."""
    return connected(emulator.uri, emulator.ca_pem.decode(), emulator.settings.key)


@contextlib.asynccontextmanager
async def connected(uri: str, ca_pem: str, key: KeyPair) -> AsyncIterator[RawClient]:
    """A connection whose preface is sent."""
    parts = urlsplit(uri)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1",
        parts.port,
        ssl=_context(ca_pem, ["h2"]),
        server_hostname=parts.hostname,
    )
    client = RawClient(parts.netloc, key, writer)
    client.h2.initiate_connection()
    client.h2.increment_flow_control_window(1 << 24)  # a stream that is not read holds up no other
    client.flush()
    task = asyncio.create_task(client.read(reader))
    try:
        yield client
    finally:
        task.cancel()
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
