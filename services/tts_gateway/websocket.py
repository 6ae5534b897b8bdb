"""The WebSocket upstream: straight to an inference container, `ws://host:port/path`."""

from __future__ import annotations

import asyncio
import contextlib
from http import HTTPStatus
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from firstword.errors import UpstreamError
from firstword.session_address import PATH, whole
from firstword.session_protocol import (
    MAX_SERVER_FRAME_BYTES,
    Close,
    Frame,
    encode_client,
)
from services.tts_gateway.reasons import reason
from services.tts_gateway.upstream import Link

CONNECT_S = 5.0
PING = "/ping"
"""Where containers tell how they are; SageMaker asks the same."""
LONGEST_REASON = 200
GOODBYE_S = 1.0
HEARTBEAT_S = 20.0


class WebSocketUpstream:
    """Opens one WebSocket per session; they share a client session and nothing else.

    A `url` without a path has the usual one.
    """

    def __init__(self, url: str) -> None:
        self._url = whole(url)
        self._http: aiohttp.ClientSession | None = None

    async def connect(self) -> Link:
        """Raises UpstreamError if the container does not accept within five seconds."""
        try:
            async with asyncio.timeout(CONNECT_S):
                socket = await self._client().ws_connect(
                    self._url, heartbeat=HEARTBEAT_S, max_msg_size=MAX_SERVER_FRAME_BYTES
                )
        except aiohttp.WSServerHandshakeError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise self._misled() from error
            raise self._unreachable(reason(error)) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(reason(error)) from error
        return WebSocketLink(socket)

    async def look(self) -> None:
        """Ask its `/ping`; one that has none but answers is there."""
        url = urlsplit(self._url)
        scheme = {"ws": "http", "wss": "https"}.get(url.scheme, url.scheme)
        ping = urlunsplit((scheme, url.netloc, PING, "", ""))
        try:
            async with asyncio.timeout(CONNECT_S), self._client().get(ping) as response:
                status, said = response.status, await response.content.read(LONGEST_REASON)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(reason(error)) from error
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            told = said.decode("utf-8", "replace")
            raise self._unreachable(f"{PING} answers with HTTP status {status}: {told}")

    def _client(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self._http

    def _unreachable(self, why: str) -> UpstreamError:
        told = f"cannot reach the inference container at {self._url} ({why}): is it up?"
        return UpstreamError("upstream_unreachable", told, retryable=True)

    def _misled(self) -> UpstreamError:
        path = urlsplit(self._url).path
        told = f"{self._url} answers, but has nothing at that path (HTTP status 404)"
        if path == PATH:
            told += ", where an inference container takes sessions: is it one?"
        else:
            told += f": {path} is wrong, or it is no inference container, whose path is {PATH}"
        return UpstreamError("upstream_unreachable", told, retryable=True)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()


class WebSocketLink:
    """One WebSocket; aiohttp answers pings and notices a dead peer while `receive` waits."""

    max_age_s: float | None = None

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, frame: Frame) -> None:
        try:
            if isinstance(frame, str):
                await self._socket.send_str(frame)
            else:
                await self._socket.send_bytes(frame)
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            raise _lost(type(error).__name__) from error

    async def receive(self) -> tuple[Frame, bool | None]:
        message = await self._socket.receive()
        match message.type:
            case aiohttp.WSMsgType.TEXT:
                return str(message.data), True
            case aiohttp.WSMsgType.BINARY:
                return bytes(message.data), False
            case _:
                raise _lost(f"close code {self._socket.close_code}")

    async def close(self) -> None:
        # Each step on its own: a peer that reads nothing must not keep the socket open.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(GOODBYE_S):
                await self._socket.send_str(encode_client(Close()))
        with contextlib.suppress(Exception):
            async with asyncio.timeout(GOODBYE_S):
                await self._socket.close()


def _lost(reason: str) -> UpstreamError:
    told = f"the connection to the inference container was lost ({reason})"
    return UpstreamError("upstream_lost", told, retryable=True)
