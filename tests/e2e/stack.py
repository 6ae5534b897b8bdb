"""The whole path in one process: real services over a real server, any synthesizer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from firstword import messages as m
from firstword.client import Event, Firstword
from firstword.runtime import HttpServer
from services.inference.audio import to_pcm
from services.inference.service import InferenceService
from services.inference.settings import InferenceSettings
from services.inference.speaker import Speaker
from services.inference.synthesizer import Synthesizer
from services.segmenter.service import SegmenterService
from services.segmenter.settings import SegmenterSettings
from services.tts_gateway.service import GatewayService
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.websocket import WebSocketUpstream
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer, expected_samples

QUICK = ToneOptions(ms_per_char=5.0)
"""Little audio per character: nothing waits for playback."""


class Stack:
    """Segmenter, gateway and inference; `firstword` is a client of it.

    `segmenter` are settings of the segmenter.
    """

    def __init__(
        self, redis_url: str, engine: Callable[[], Synthesizer] | None = None, **segmenter: Any
    ) -> None:
        self.redis_url = redis_url
        self.firstword = Firstword(redis_url)
        self._segmenter = segmenter
        self._engine = engine or (lambda: ToneSynthesizer(QUICK))
        self._stop = asyncio.Event()
        self._services: list[asyncio.Task[None]] = []
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        settings = InferenceSettings(port=0)
        speaker = Speaker(self._engine, settings)
        self._resources.callback(speaker.close)
        self.inference = InferenceService(speaker, settings)
        http = HttpServer(self.inference.app(), "127.0.0.1", 0)
        await http.start()
        self._resources.push_async_callback(http.stop)
        await speaker.start()
        self.upstream_url = f"ws://{http.address}/invocations-bidirectional-stream"
        await self._resources.enter_async_context(self.firstword)
        await self.start_segmenter()
        await self.start_gateway()
        return self

    async def start_segmenter(self) -> None:
        settings = SegmenterSettings(redis_url=self.redis_url, http_port=0, **self._segmenter)
        service = SegmenterService(settings)
        self._services.append(asyncio.create_task(service.run(self._stop)))

    async def start_gateway(self) -> None:
        settings = GatewaySettings(redis_url=self.redis_url, http_port=0)
        service = GatewayService(settings, WebSocketUpstream(self.upstream_url))
        self._services.append(asyncio.create_task(service.run(self._stop)))

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        await asyncio.gather(*self._services)
        await self._resources.aclose()


def tone_pcm(text: str, voice: str = "af_heart", options: ToneOptions = QUICK) -> bytes:
    """What the tone double says for a segment's spoken text, as it must arrive: s16le."""
    return to_pcm(expected_samples(text, voice, options=options))


async def until_done(events: AsyncIterator[Event]) -> list[m.Audio]:
    """The events up to the end of a turn."""
    seen: list[m.Audio] = []
    async for event in events:
        seen.append(event.message)
        if isinstance(event.message, m.TurnDone | m.TurnCancelled):
            break
    return seen
