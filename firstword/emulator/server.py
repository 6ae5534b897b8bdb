"""The emulator: TLS and HTTP/2 on this machine, and for each stream the container's WebSocket."""

from __future__ import annotations

import asyncio
import ssl
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from firstword.emulator import certificates
from firstword.emulator.call import Call
from firstword.emulator.container import Address, Container, UpgradeRefused
from firstword.emulator.faults import Fault, Faults
from firstword.emulator.http2 import ClientGone, Connection, Stream
from firstword.emulator.invocation import Invocation, Refused, invocation
from firstword.emulator.settings import Settings
from firstword.emulator.signatures import EventChain, Request, SignatureRefused, verify_request
from firstword.errors import FirstwordError

Tell = Callable[[str], None]


def _silent(_line: str) -> None:
    pass


class Emulator:
    """`async with Emulator(Settings(container="ws://127.0.0.1:8080")) as emulator: ...`"""

    def __init__(
        self, settings: Settings, faults: Sequence[str] = (), tell: Tell = _silent
    ) -> None:
        """`tell` gets a line for every stream that opens, ends or is refused.

        Raises FirstwordError for a container's address or a fault that cannot be read.
        """
        self.settings = settings
        self.calls: set[Call] = set()
        """The invocations that are open."""
        self._faults = Faults(faults)
        self._container = _address(settings.container)
        self._tell = tell
        self._ca_pem = b""
        self._server: asyncio.Server | None = None
        self._connections: dict[Connection, asyncio.Task[None]] = {}

    @property
    def ca_pem(self) -> bytes:
        """The certificate that clients must trust."""
        return self._ca_pem

    @property
    def uri(self) -> str:
        """The endpoint for clients, while it runs."""
        assert self._server is not None, "not started"  # noqa: S101
        port = self._server.sockets[0].getsockname()[1]
        host = self.settings.host
        if host in ("127.0.0.1", "::1", "0.0.0.0", "::"):  # noqa: S104
            host = "localhost"
        return f"https://{host}:{port}"

    async def __aenter__(self) -> Self:
        self._ca_pem, context = await asyncio.to_thread(certificates.make, [self.settings.host])
        self._server = await asyncio.start_server(
            self._connected, self.settings.host, self.settings.port, ssl=context
        )
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Break every connection off and take no more. Twice does no harm."""
        assert self._server is not None, "not started"  # noqa: S101
        self._server.close()
        for connection in self._connections:
            connection.abort()
        await asyncio.gather(*self._connections.values(), return_exceptions=True)
        await self._server.wait_closed()

    def inject(self, fault: str) -> Fault:
        """Switch a fault on now; open streams meet it at once. Raises FaultError."""
        added = self._faults.add(fault)
        self._faults_changed()
        return added

    def heal(self) -> None:
        """Switch all faults off."""
        self._faults.clear()
        self._faults_changed()

    def _faults_changed(self) -> None:
        for call in list(self.calls):
            call.faults_changed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        if tls.selected_alpn_protocol() != "h2":
            self._tell("refused a client that does not offer HTTP/2 (ALPN h2)")
            writer.close()
            return
        connection = Connection(reader, writer, self._answer)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are in one
        self._connections[connection] = task
        try:
            await connection.serve()
        finally:
            del self._connections[connection]

    async def _answer(self, stream: Stream) -> None:
        """One request, from its headers to its end."""
        request_id = str(uuid.uuid4())
        faults = self._faults.opened()
        try:
            if faults.never_answers():
                self._tell(f"{request_id} left unanswered")
                await stream.lost()
                return
            await asyncio.sleep(faults.open_delay_s())
            try:
                chain, wanted = self._admit(stream)
                if (refusal := faults.refusal()) is not None:
                    raise Refused(*refusal)
                container = await self._upgrade(wanted, request_id)
            except Refused as refused:
                self._tell(f"{request_id} refused: {refused.status} {refused.message}")
                await _refuse(stream, refused, request_id)
                return
            try:
                call = Call(stream, chain, container, faults, self.settings)
                await self._carry(call, stream, wanted, request_id)
            finally:
                container.hang_up()
        except ClientGone:
            self._tell(f"{request_id} client gone")
        except asyncio.CancelledError:
            self._tell(f"{request_id} client's connection gone")
            raise

    async def _carry(self, call: Call, stream: Stream, wanted: Invocation, request_id: str) -> None:
        """An open stream until its end. Raises ClientGone."""
        self._tell(f"{request_id} open: {wanted.target}")
        self.calls.add(call)
        try:
            await stream.respond(
                200,
                [
                    ("content-type", "application/vnd.amazon.eventstream"),
                    ("x-amzn-invoked-production-variant", wanted.variant),
                    ("x-amzn-requestid", request_id),
                ],
            )
            self._tell(f"{request_id} {await call.run()}")
        finally:
            self.calls.remove(call)

    def _admit(self, stream: Stream) -> tuple[EventChain, Invocation]:
        """Who asks, and for what. Raises Refused."""
        request = _request(stream)
        keys = {self.settings.key.access_key_id: self.settings.key}
        try:
            chain = verify_request(request, keys, self.settings.region, _now())
        except SignatureRefused as error:
            raise Refused(403, error.code, error.message) from error
        return chain, invocation(request, self.settings.endpoints, self.settings.variant)

    async def _upgrade(self, wanted: Invocation, request_id: str) -> Container:
        """Raises Refused; what the container said against it is for our own log alone."""
        try:
            async with asyncio.timeout(self.settings.open_timeout_s):
                return await Container.open(self._container, wanted.target, request_id)
        except (UpgradeRefused, TimeoutError) as error:
            why = str(error) or "the container did not answer the upgrade"
            self._tell(f"{request_id} {wanted.target}: {why}")
            raise Refused(424, "ModelError", "Failed to establish WebSocket connection") from error


async def _refuse(stream: Stream, refused: Refused, request_id: str) -> None:
    headers = [
        ("content-type", "application/json"),
        ("x-amzn-errortype", refused.code),
        ("x-amzn-requestid", request_id),
    ]
    await stream.respond(refused.status, headers, refused.body())


def _request(stream: Stream) -> Request:
    """The request as it was signed: `:authority` is `host`."""
    pseudo = {name: value for name, value in stream.headers if name.startswith(":")}
    headers = [(name, value) for name, value in stream.headers if not name.startswith(":")]
    if ":authority" in pseudo and all(name != "host" for name, _ in headers):
        headers.append(("host", pseudo[":authority"]))
    path, _, query = pseudo.get(":path", "").partition("?")
    return Request(pseudo.get(":method", ""), path, query, headers)


def _address(url: str) -> Address:
    """Raises FirstwordError."""
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme != "ws" or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise FirstwordError(
            "bad_container",
            f"container {url!r}: must be like ws://127.0.0.1:8080; the path is the client's",
        )
    return Address(parts.hostname, port)


def _now() -> datetime:
    return datetime.now(UTC)
