"""A listener that takes nothing: it asks, and then never reads."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


@asynccontextmanager
async def deaf(url: str, *, websocket: bool = False) -> AsyncIterator[socket.socket]:
    """A connection that has asked for `url` with as little room for the answer as can be had."""
    parts = urlsplit(url)
    key = base64.b64encode(os.urandom(16)).decode()
    upgrade = (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: {key}\r\n"
    )
    line = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(line, (parts.hostname or "127.0.0.1", parts.port or 80))
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        request = (
            f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{upgrade if websocket else ''}\r\n"
        )
        await loop.sock_sendall(line, request.encode())
        yield line


async def rest_of(line: socket.socket) -> bytes:
    """What comes once it reads after all, to the end of the connection."""
    loop = asyncio.get_running_loop()
    read = bytearray()
    try:
        while data := await loop.sock_recv(line, 65_536):
            read += data
    except ConnectionResetError:
        pass
    return bytes(read)
