"""A client of the inference service for tests, and the service itself inside the test's loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import aiohttp

from firstword.runtime import HttpServer
from firstword.session_protocol import (
    Cancelled,
    Error,
    ServerMessage,
    SynthesisComplete,
    SynthesisStart,
    decode_server,
)
from services.inference.service import InferenceService
from services.inference.settings import InferenceSettings
from services.inference.speaker import Speaker
from services.inference.synthesizer import Synthesizer
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer

PATH = "/invocations-bidirectional-stream"
SILENCE_S = 100.0
"""The last of many who ask the real voice at once waits for all the others."""


@dataclass
class Running:
    """A service that serves."""

    service: InferenceService
    speaker: Speaker
    address: str
    http: aiohttp.ClientSession

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Client]:
        url = f"http://{self.address}{PATH}"
        patience = aiohttp.ClientWSTimeout(ws_close=1)
        async with self.http.ws_connect(url, compress=0, max_msg_size=0, timeout=patience) as ws:
            yield Client(ws)


@asynccontextmanager
async def running(
    load: Callable[[], Synthesizer], settings: InferenceSettings
) -> AsyncIterator[Running]:
    """The real service on a free port, its engine loaded."""
    speaker = Speaker(load, settings)
    service = InferenceService(speaker, settings)
    server = HttpServer(service.app(), "127.0.0.1", 0)
    await server.start()
    await speaker.start()
    try:
        async with aiohttp.ClientSession() as http:
            yield Running(service, speaker, server.address, http)
    finally:
        await server.stop()
        speaker.close()


Make: TypeAlias = Callable[..., Awaitable[tuple[Running, ToneSynthesizer]]]


@asynccontextmanager
async def tone_services() -> AsyncIterator[Make]:
    """Starts services whose engine is the tone: `make(ToneOptions(…), drain_s=…)`."""
    async with AsyncExitStack() as stack:

        async def build(
            options: ToneOptions | None = None, **settings: Any
        ) -> tuple[Running, ToneSynthesizer]:
            engine = ToneSynthesizer(options)
            stack.callback(engine.release)
            chosen = replace(InferenceSettings(), **settings)
            return await stack.enter_async_context(running(lambda: engine, chosen)), engine

        yield build


@dataclass
class Spoken:
    """One synthesis as it arrived."""

    end: ServerMessage
    start: SynthesisStart | None = None
    frames: list[bytes] = field(default_factory=list)

    @property
    def pcm(self) -> bytes:
        return b"".join(self.frames)


class Client:
    """Sends what a test wants, however wrong, and reads until a synthesis ends."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def ask(self, id: str, text: str, **fields: Any) -> None:
        await self.ws.send_str(json.dumps({"type": "synthesize", "id": id, "text": text, **fields}))

    async def say(self, id: str, text: str, **fields: Any) -> Spoken:
        await self.ask(id, text, **fields)
        return await self.spoken()

    async def message(self) -> ServerMessage | bytes:
        """The next frame, as the transport marks it."""
        frame = await self.ws.receive(timeout=SILENCE_S)
        assert frame.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), frame
        return decode_server(frame.data, text=frame.type is aiohttp.WSMsgType.TEXT)

    async def control(self) -> ServerMessage:
        message = await self.message()
        assert not isinstance(message, bytes)
        return message

    async def spoken(self) -> Spoken:
        """Everything up to the end of one synthesis."""
        start: SynthesisStart | None = None
        frames: list[bytes] = []
        while True:
            message = await self.message()
            match message:
                case bytes():
                    assert start is not None, "audio before its start"
                    frames.append(message)
                case SynthesisStart():
                    start = message
                case SynthesisComplete() | Cancelled() | Error():
                    return Spoken(message, start, frames)
                case _:
                    raise AssertionError(f"unexpected {message}")

    async def closed(self) -> int | None:
        """Read until the connection is closed; its code."""
        async with asyncio.timeout(20):
            async for _ in self.ws:
                pass
        return self.ws.close_code
