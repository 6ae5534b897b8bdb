"""Whether a container answers WebSocket pings while it synthesises.

SageMaker sends some and closes a connection that leaves five unanswered; clients and balancers do
likewise. Libraries differ: some answer by themselves, others only while a handler is reading.
"""

from __future__ import annotations

import asyncio

import aiohttp

from firstword.server_check import Finding
from firstword.session_protocol import (
    MAX_SERVER_FRAME_BYTES,
    Error,
    FrameError,
    SynthesisComplete,
    Synthesize,
    decode_server,
    encode_client,
)

NAME = "websocket_pings"
PATIENCE_S = 30.0
GRACE_S = 0.05
"""A synthesis that is over so soon leaves no time for an answer before its end."""
REMEDY = (
    "read the connection in a task that is always in receive(), and synthesise elsewhere: "
    "SageMaker closes connections that leave pings unanswered"
)


async def pings_while_speaking(url: str, text: str, voice: str) -> Finding:
    """Ping during the synthesis of a long text: the answer must come before its end."""
    try:
        async with (
            asyncio.timeout(PATIENCE_S),
            aiohttp.ClientSession() as http,
            http.ws_connect(
                url,
                autoping=False,
                max_msg_size=MAX_SERVER_FRAME_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=1),
            ) as ws,
        ):
            return await _ping(ws, encode_client(Synthesize("doctor", text, voice=voice or None)))
    except TimeoutError:
        told = f"a ping was not answered within {PATIENCE_S:g} s of a synthesis"
        return Finding(NAME, "fatal", told, REMEDY)
    except (aiohttp.ClientError, OSError) as error:
        told = f"the connection broke while a ping waited for its answer ({type(error).__name__})"
        return Finding(NAME, "fatal", told, REMEDY)


async def _ping(ws: aiohttp.ClientWebSocketResponse, request: str) -> Finding:
    clock = asyncio.get_running_loop().time
    await ws.ping(b"idle")
    began = clock()
    while (await _receive(ws)).type is not aiohttp.WSMsgType.PONG:
        pass
    idle_s, began = clock() - began, clock()
    await ws.send_str(request)
    await ws.ping(b"busy")
    while (message := await _receive(ws)).type is not aiohttp.WSMsgType.PONG:
        if _is_end(message) and clock() - began - idle_s > GRACE_S:
            told = "a ping was not answered before the synthesis was over"
            return Finding(NAME, "fatal", told, REMEDY)
    return Finding(NAME, "ok", f"answered in {(clock() - began) * 1000:.0f} ms while it speaks")


async def _receive(ws: aiohttp.ClientWebSocketResponse) -> aiohttp.WSMessage:
    """The next frame. Raises ClientError if there is none."""
    message = await ws.receive()
    if message.type is aiohttp.WSMsgType.PING:
        await ws.pong(message.data)
    elif message.type not in (
        aiohttp.WSMsgType.PONG,
        aiohttp.WSMsgType.TEXT,
        aiohttp.WSMsgType.BINARY,
    ):
        raise aiohttp.ClientError(f"close code {ws.close_code}")
    return message


def _is_end(message: aiohttp.WSMessage) -> bool:
    if message.type is not aiohttp.WSMsgType.TEXT:
        return False
    try:
        return isinstance(decode_server(message.data, text=True), SynthesisComplete | Error)
    except FrameError:  # of another check
        return False
