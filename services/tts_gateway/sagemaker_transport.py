"""The SDK's HTTP/2 transport, changed to report broken streams and not to delay requests.

Written against the exact version that pyproject.toml pins. Each deviation says what it is for;
`tests/integration/test_sagemaker_upstream.py` tests each.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from typing import Any, TypeVar

from awscrt import io as crt_io
from awscrt.aio.http import AIOHttp2ClientConnection, AIOHttp2ClientStream
from awscrt.exceptions import AwsCrtError
from awscrt.http import HttpVersion
from smithy_core.interfaces import URI
from smithy_http.aio.crt import (
    AWSCRTHTTPClient,
    AWSCRTHTTPClientConfig,
    AWSCRTHTTPResponse,
    _AWSCRTEventLoop,
)

T = TypeVar("T")

WINDOW_BYTES = 4 << 20
"""What may come before it is taken: more than a minute of speech."""
LARGEST_WINDOW_BYTES = (1 << 31) - 1
FIRST_WINDOW_BYTES = 65_535
"""The window that HTTP/2 gives a connection at its start."""


class Shared:
    """What the streams of one upstream have in common: one thread, one TLS context."""

    def __init__(self, ca_pem: bytes | None = None) -> None:
        """`ca_pem`: certificates to trust instead of the system's."""
        self.loop = _AWSCRTEventLoop()
        options = crt_io.TlsContextOptions()
        if ca_pem is not None:
            options.override_default_trust_store(ca_pem)
        self.tls = crt_io.ClientTlsContext(options)  # 50 ms
        self.sockets = crt_io.SocketOptions()
        self.sockets.connect_timeout_ms = 5000
        # A firewall forgets a flow that is idle for 350 s; a peer that is gone is known in 90 s.
        # What the SDK calls the interval is the idle time before the first probe, and what it calls
        # the timeout is the time between probes.
        self.sockets.keep_alive = True
        self.sockets.keep_alive_interval_secs = 60
        self.sockets.keep_alive_timeout_secs = 10
        self.sockets.keep_alive_max_probes = 3


class Transport(AWSCRTHTTPClient):
    """One connection with one stream on it."""

    def __init__(self, shared: Shared) -> None:
        # Not the base's own: it would make a TLS context for every connection.
        self._shared = shared
        self._config = AWSCRTHTTPClientConfig(force_http_2=True)
        self._eventloop = shared.loop
        self._client_bootstrap = shared.loop.bootstrap
        self._tls_ctx = shared.tls
        self._socket_options = shared.sockets
        self._connections = {}
        self._closed = False
        self._writer: asyncio.Task[None] | None = None

    def __deepcopy__(self, memo: Any) -> Transport:
        """The client copies its configuration; the base would copy itself without our options."""
        return self

    async def written(self) -> None:
        """Return when all of the request is on the wire, or never will be."""
        if self._writer is not None:
            await asyncio.wait([self._writer])

    async def close(self) -> None:
        """Close the connection, and end the writer: it would wait for more to write for ever."""
        try:
            await super().close()
        finally:
            if self._writer is not None:
                self._writer.cancel()
        await self.written()

    async def _build_new_connection(self, url: URI) -> AIOHttp2ClientConnection:
        tls = self._tls_ctx.new_connection_options()
        tls.set_server_name(url.host)
        tls.set_alpn_list(["h2"])
        port = url.port or self._HTTPS_PORT
        future = AIOHttp2ClientConnection._generic_new(
            url.host,
            port,
            self._client_bootstrap,
            self._socket_options,
            tls,
            expected_version=HttpVersion.Http2,
            asyncio_connection=True,
            # By itself it gives window back after every piece of audio: a small packet that is
            # answered late, and holds up the next request meanwhile. And it would take in without
            # bounds. We give back what was taken, and it goes out in large steps.
            manual_window_management=True,
            initial_window_size=WINDOW_BYTES,
            conn_manual_window_management=True,
            conn_window_size_threshold=LARGEST_WINDOW_BYTES // 2,
        )
        connection: AIOHttp2ClientConnection = await _uncancelled(future)
        connection.update_window(LARGEST_WINDOW_BYTES - FIRST_WINDOW_BYTES)
        await asyncio.to_thread(send_at_once, port)
        return connection

    async def _await_response(self, stream: AIOHttp2ClientStream) -> AWSCRTHTTPResponse:
        self._writer = stream._writer
        self._writer.add_done_callback(_retrieve)
        stream._completion_future.add_done_callback(lambda end: _fail_response(stream, end))
        await _uncancelled(stream._response_headers_future)
        response = await super()._await_response(stream)
        return Response(response, stream)


class Response(AWSCRTHTTPResponse):
    """Gives window back as it is read, and tells a broken stream from one that has ended."""

    def __init__(self, response: AWSCRTHTTPResponse, stream: AIOHttp2ClientStream) -> None:
        super().__init__(status=response.status, fields=response.fields, stream=stream)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body. Raises OSError if it breaks off."""
        stream: Any = self._stream
        while True:
            chunk = await stream.get_next_response_chunk()
            if chunk:
                with contextlib.suppress(AwsCrtError):  # it has ended; what came is still read
                    stream.update_window(len(chunk))
                    stream.connection.update_window(len(chunk))
                yield chunk
            elif stream._remote_completion_future.done():
                return
            elif stream._completion_future.done():
                raise _broken(stream._completion_future)


async def _uncancelled(future: Future[T]) -> T:
    """Its result. A caller that stops waiting does not cancel it: the library sets it later.

    A connection that comes too late is closed once nothing refers to it.
    """
    return await asyncio.shield(asyncio.wrap_future(future))


def _fail_response(stream: Any, end: Future[int]) -> None:
    """A stream that ends before its response: the SDK would wait for ever."""
    for future in (stream._response_status_future, stream._response_headers_future):
        if not future.done():
            future.set_exception(_broken(end))


def _broken(end: Future[int]) -> OSError:
    error = end.exception()
    return OSError(getattr(error, "name", None) or "the stream ended too early")


def _retrieve(task: asyncio.Task[None]) -> None:
    """The writer always fails when a stream ends from the other side: that is told elsewhere."""
    if not task.cancelled():
        task.exception()


def send_at_once(port: int) -> None:
    """Switch Nagle's algorithm off on the sockets of this process that lead to `port`.

    A request would wait up to 40 ms for the acknowledgement of what went before. The SDK has no
    switch for it and does not tell its socket; where its descriptors cannot be listed, it stays.
    """
    folder = next(filter(os.path.isdir, ("/proc/self/fd", "/dev/fd")), None)
    for name in os.listdir(folder) if folder else ():
        with contextlib.suppress(OSError):  # it was closed meanwhile, or is no such socket
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as sock:
                if sock.family in (socket.AF_INET, socket.AF_INET6):
                    if sock.getpeername()[1] == port:
                        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
