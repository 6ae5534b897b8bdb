"""Why a container cannot be reached, in a few words and one line."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp
import pytest
from aiohttp import web

from firstword.errors import UpstreamError
from firstword.runtime import HttpServer
from firstword.session_address import PATH
from services.tts_gateway.reasons import reason
from services.tts_gateway.websocket import WebSocketUpstream
from tests.doubles.container import WebSocketBackend


async def refusal(url: str) -> str:
    upstream = WebSocketUpstream(url)
    try:
        with pytest.raises(UpstreamError) as raised:
            await upstream.connect()
    finally:
        await upstream.close()
    assert raised.value.code == "upstream_unreachable"
    return raised.value.message


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ws://127.0.0.1:1/x", "Connection refused"),
        ("ws://127.0.0.1:99999/x", "that is no URL"),
    ],
)
async def test_nobody_is_there(url: str, why: str) -> None:
    assert await refusal(url) == f"cannot reach the inference container at {url} ({why}): is it up?"


@pytest.mark.parametrize(
    ("answer", "scheme", "why"),
    [
        (b"-ERR unknown command\r\n", "ws", "(what answers does not speak HTTP)"),
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "ws",
            "has nothing at that path (HTTP status 404): /x is wrong",
        ),
        (b"-ERR unknown command\r\n", "wss", "[SSL: "),
    ],
)
async def test_somebody_else_is_there(answer: bytes, scheme: str, why: str) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        told = await refusal(f"{scheme}://127.0.0.1:{port}/x")
    assert why in told
    assert "\n" not in told


async def test_a_container_is_reached_without_its_path() -> None:
    async with WebSocketBackend() as backend:
        upstream = WebSocketUpstream(backend.url.removesuffix(PATH))
        link = await upstream.connect()
        await link.close()
        await upstream.close()
    assert len(backend.peers) == 1


async def test_a_wrong_path_is_told_apart_from_what_is_no_container() -> None:
    app = web.Application()
    http = HttpServer(app, "127.0.0.1", 0)
    await http.start()
    try:
        address = f"ws://{http.address}"
        assert "/speak is wrong" in await refusal(f"{address}/speak")
        told = await refusal(address)
        assert told.startswith(f"{address}{PATH} answers") and told.endswith("is it one?")
    finally:
        await http.stop()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TimeoutError(), "no answer in time"),
        (ConnectionResetError(104, "lost"), "Connection reset by peer"),
        (OSError(), "OSError"),
        (aiohttp.ClientError("a\n  b"), "a b"),
        (aiohttp.ServerDisconnectedError(), "Server disconnected"),
    ],
)
def test_each_error_has_a_line(error: Exception, why: str) -> None:
    assert reason(error) == why
