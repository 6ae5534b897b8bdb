"""Listeners whose network is gone without a word: the system is told when to notice."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

import pytest

from services.agent.slow import Watched
from tests.support import eventually


async def nothing() -> None:
    """There is nothing to say."""


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="not on this system")
@pytest.mark.parametrize(("stall_s", "noticed_ms"), [(20.0, 40_000), (0.5, 10_000)])
async def test_a073_a_half_open_listener_is_noticed_within_twice_the_time_it_has(
    stall_s: float, noticed_ms: int
) -> None:
    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line: socket.socket = writer.transport.get_extra_info("socket")

        def limit() -> int:
            return line.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)

        transport = cast(asyncio.Transport, writer.transport)
        async with Watched().patient(transport, stall_s, "events", nothing):
            await eventually(lambda: limit() == noticed_ms, "the system knows")
        writer.write(b"ok")
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(host, port)
        assert await reader.read() == b"ok"
        writer.close()
