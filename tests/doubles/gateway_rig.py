"""What stands around a gateway in its tests: a segmenter's hand before it, a container behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from firstword import codec, keys
from firstword import messages as m
from firstword.ownership import offer
from firstword.runtime import HttpServer
from firstword.streams import Streams
from services.inference.audio import to_pcm
from services.inference.service import InferenceService
from services.inference.settings import InferenceSettings
from services.inference.speaker import Speaker
from services.inference.synthesizer import Audio, Prepared, Stop
from services.tts_gateway.__main__ import upstream_for
from services.tts_gateway.service import STAGE, GatewayService
from services.tts_gateway.settings import GatewaySettings
from tests.doubles.ear import Ear
from tests.doubles.proxy import Proxy
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer, expected_samples

RATE = 24_000
OPTIONS = ToneOptions(ms_per_char=10, chars_per_piece=20)
PATH = "/invocations-bidirectional-stream"


def spoken(text: str) -> bytes:
    """What must be heard of a text, s16le."""
    return to_pcm(expected_samples(text, options=OPTIONS))


class HeldTone(ToneSynthesizer):
    """Speaks the first piece of a request, and the rest once `go` is set; obeys a stop at once."""

    def __init__(self, options: ToneOptions = OPTIONS) -> None:
        super().__init__(options)
        self.go = threading.Event()
        self.stopped = threading.Event()
        """Set when a request was stopped while its rest was held."""

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        woken = threading.Event()
        stop.on_set(woken.set)
        while index and not self.go.is_set() and not woken.wait(0.01):
            pass
        if stop.is_set:
            self.stopped.set()
        return super().synthesize(prepared, index, stop)


class Container:
    """The real inference service around a tone, in this process; its wires can be cut."""

    def __init__(self, tone: ToneSynthesizer | None = None) -> None:
        self.tone = tone or ToneSynthesizer(OPTIONS)
        settings = InferenceSettings(workers=4)
        self._speaker = Speaker(lambda: self.tone, settings)
        self.service = InferenceService(self._speaker, settings)
        self.connections = 0
        """How many a session, or the like, ever had."""
        app = self.service.app()
        app.middlewares.append(self._count)
        self._http = HttpServer(app, "127.0.0.1", 0)
        self._proxy: Proxy | None = None

    async def __aenter__(self) -> Self:
        await self._speaker.start()
        await self._http.start()
        self._proxy = await Proxy(f"http://{self._http.address}").__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.tone.release()
        await self.proxy.__aexit__(kind, error, trace)
        await self._http.stop()
        self._speaker.close()

    @property
    def proxy(self) -> Proxy:
        assert self._proxy is not None
        return self._proxy

    @property
    def url(self) -> str:
        return self.proxy.url.replace("redis://", "ws://") + PATH

    @property
    def open_connections(self) -> int:
        return len(self.service._connections)

    @web.middleware
    async def _count(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.connections += request.path == PATH
        return await handler(request)


@asynccontextmanager
async def gateway(
    redis_url: str, upstream_url: str, **options: Any
) -> AsyncIterator[Callable[[], Coroutine[Any, Any, None]]]:
    """A gateway that serves within the block, or until what it gives is called."""
    settings = GatewaySettings(redis_url, upstream_url, http_port=0, **options)
    upstream = await asyncio.to_thread(upstream_for, settings)  # it may read files
    service = GatewayService(settings, upstream)
    stop = asyncio.Event()
    task = asyncio.create_task(service.run(stop))

    async def leave() -> None:
        stop.set()
        await task

    try:
        yield leave
    finally:
        await leave()


class SessionHand:
    """Writes one session's segments as a segmenter does, and hears its audio from the start."""

    def __init__(self, streams: Streams, name: str = "s") -> None:
        self.streams = streams
        self.name = name
        self._n = 0
        self._written: dict[str, int] = {}  # characters of each turn
        self._opened = False

    async def put(self, *messages: m.Segments) -> str:
        """Append entries; returns the last one's id."""
        packed = [codec.pack(message, self.name) for message in messages]
        return await self.put_raw(*packed)

    async def put_raw(self, *payloads: bytes) -> str:
        """Append entries with these bytes; offer the session and ring its gateway."""
        last = ""
        for payload in payloads:
            last = await self.streams.append(keys.segments(self.name), {"m": payload})
        await self.ring()
        return last

    async def ring(self) -> None:
        worker = await self.streams.commands.hget(keys.speech_state(self.name), "worker")
        if worker is None:
            await offer(self.streams, STAGE, [self.name])
        else:
            await self.streams.ring(STAGE, worker.decode(), self.name)

    def open(self, **settings: Any) -> m.SessionOpen:
        """The entry that opens the session, or changes its settings."""
        self._opened = True
        defaults: dict[str, Any] = {
            "voice": "af_heart",
            "speed": 1.0,
            "lang": "auto",
            "sample_rate": RATE,
            "pace": "none",
        }
        return m.SessionOpen(**{**defaults, **settings})

    async def say(self, turn: str, *texts: str) -> list[int]:
        """Append the segments of a turn and its end; returns their numbers.

        The first turn opens the session, unless the test did.
        """
        messages: list[m.Segments] = [] if self._opened else [self.open()]
        numbers = []
        for i, text in enumerate(texts):
            self._n += 1
            numbers.append(self._n)
            messages.append(self.segment(turn, self._n, text, first=i == 0))
        messages.append(m.TurnEnd(turn=turn, segments=len(texts)))
        await self.put(*messages)
        return numbers

    def segment(self, turn: str, n: int, text: str, *, first: bool) -> m.Segment:
        start = self._written.get(turn, 0)
        self._written[turn] = start + len(text)
        return m.Segment(
            turn=turn,
            n=n,
            text=text,
            spoken=text,
            start=start,
            end=start + len(text),
            voice="af_heart",
            speed=1.0,
            lang="auto",
            first=first,
            last=False,
            opened_at="1-0",
        )

    async def cancel(self, turn: str) -> None:
        """What a segmenter's commit does for a cancel of a turn that is being spoken."""
        receipt = m.TurnCancelled(turn=turn, sent={}, already_done=False)
        # The mark first: from then on nothing can come between the last audio and the receipt.
        await self.streams.commands.hset(keys.speech_state(self.name), f"cancelled:{turn}", 1)
        packed = codec.pack(receipt, self.name)
        await self.streams.append(keys.audio(self.name), {"m": packed})
        await self.ring()

    async def events(self) -> list[m.Audio]:
        """All events that are on the audio stream."""
        entries = await self.streams.range(keys.audio(self.name), "0-0", count=10_000)
        unpacked = [codec.unpack(entry.fields[b"m"], codec.AUDIO) for entry in entries]
        return [message for message in unpacked if message is not None]

    async def hear(self) -> Ear:
        """What a listener has heard so far; fails on a broken promise."""
        return Ear(await self.events())

    async def state(self) -> dict[str, bytes]:
        return await self.streams.state(keys.speech_state(self.name))
