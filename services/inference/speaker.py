"""From a request to frames of PCM: what the WebSocket and the HTTP side share."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, TypeAlias

from firstword import telemetry
from firstword.session_protocol import Synthesize, Words
from services.inference import voices
from services.inference.audio import FrameStream
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import (
    Audio,
    Prepared,
    Stop,
    Stopped,
    SynthesisError,
    Synthesizer,
    Utterance,
)
from services.inference.workers import Job, Workers

WARM_UP: Final = "Ready when you are."


@dataclass(frozen=True, slots=True)
class Started:
    """The plan is known; frames follow."""

    plan: str


@dataclass(frozen=True, slots=True)
class Finished:
    """All frames are out. `duration_s` of the whole segment, skipped samples included."""

    duration_s: float
    words: Words
    synthesis_ms: float
    queue_ms: float


Output: TypeAlias = Started | bytes | Finished


class Speaker:
    """One engine, its threads, and what is known of its health."""

    def __init__(self, load: Callable[[], Synthesizer], settings: InferenceSettings) -> None:
        self._load = load
        self._settings = settings
        self._engine: Synthesizer | None = None
        self._workers = Workers(settings.workers, settings.hang_s)
        # Pronunciation is quick, but must not wait for a synthesis, and runs one at a time.
        self._preparing = ThreadPoolExecutor(1, thread_name_prefix="prepare")
        self._active = 0

    async def start(self) -> None:
        """Load the engine and speak once. Raises what the engine raises."""
        loop = asyncio.get_running_loop()
        engine = await loop.run_in_executor(self._preparing, self._load)
        voice = voices.choose(None, None, self._settings.voice, engine.voices)
        utterance = Utterance(WARM_UP, voice, voices.language_of(voice))
        prepared = await loop.run_in_executor(self._preparing, engine.prepare, utterance)
        for index in range(len(prepared.pieces)):
            await self._workers.result(self._submit(engine, prepared, index, Stop()))
        self._engine = engine

    @property
    def name(self) -> str:
        """The engine's own name, or "" while it loads."""
        return "" if self._engine is None else self._engine.name

    def unwell(self) -> str | None:
        """Why no synthesis can be expected to succeed now; None when well."""
        if self._engine is None:
            return "the engine is loading"
        if self._workers.stuck():
            return f"a synthesis hangs for more than {self._settings.hang_s:g} s"
        return None

    @property
    def busy(self) -> bool:
        """Whether the engine works now."""
        return self._workers.busy

    def close(self) -> None:
        self._workers.close()
        self._preparing.shutdown(wait=False, cancel_futures=True)

    async def speak(self, request: Synthesize, stop: Stop) -> AsyncGenerator[Output, None]:
        """`Started`, frames, `Finished`. Closing the iterator early stops the synthesis.

        Raises SynthesisError, and Stopped after `stop` was set.
        """
        if self._engine is None:
            raise SynthesisError("loading", "the engine is loading; try again", retryable=True)
        if self._active >= self._settings.max_waiting:
            raise SynthesisError("busy", "too many requests wait; try again", retryable=True)
        self._active += 1
        try:
            async with aclosing(self._speak(self._engine, request, stop)) as outputs:
                async for output in outputs:
                    yield output
        finally:
            self._active -= 1
            stop.set()

    async def _speak(
        self, engine: Synthesizer, request: Synthesize, stop: Stop
    ) -> AsyncGenerator[Output, None]:
        prepared = await self._prepare(engine, request)
        count = len(prepared.pieces)
        following = self._submit(engine, prepared, 0, stop) if count else None
        if following is None:
            yield Started(prepared.plan)
        told = _Told(engine, request)
        while following is not None:
            job, audio = following, await self._workers.result(following)
            told.index += 1
            # The next piece is made while this one is sent.
            more = told.index < count
            following = self._submit(engine, prepared, told.index, stop) if more else None
            if told.index == 1:
                telemetry.synthesis_queue.observe(job.waited_s)
                yield Started(told.begin(prepared, audio, job))
            for frame in told.add(audio, job, last=not more):
                if stop.is_set:
                    raise Stopped
                yield frame
        finished = told.end()
        if count:
            telemetry.synthesis.observe(finished.synthesis_ms / 1000)
            telemetry.synthesis_audio.inc(finished.duration_s)
        yield finished

    async def _prepare(self, engine: Synthesizer, request: Synthesize) -> Prepared:
        voice = voices.choose(request.voice, request.lang, self._settings.voice, engine.voices)
        lang = voices.language_of(voice)
        utterance = Utterance(request.text, voice, lang, request.speed, request.seed)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._preparing, engine.prepare, utterance)

    def _submit(
        self, engine: Synthesizer, prepared: Prepared, index: int, stop: Stop
    ) -> Job[Audio]:
        def work() -> Audio:
            if stop.is_set:
                raise Stopped
            return engine.synthesize(prepared, index, stop)

        return self._workers.submit(work)


class _Told:
    """What one request has been given so far."""

    def __init__(self, engine: Synthesizer, request: Synthesize) -> None:
        self.index = 0
        self._native_rate = engine.sample_rate
        self._request = request
        self._frames = FrameStream(engine.sample_rate, request.sample_rate)
        self._native_samples = 0
        self._words: list[tuple[int, int, float, float]] = []
        self._synthesis_s = 0.0
        self._queue_s = 0.0

    def begin(self, prepared: Prepared, first: Audio, job: Job[Audio]) -> str:
        """The plan, and with it the decision whether samples may be skipped."""
        request = self._request
        self._queue_s = job.waited_s
        basis = f"{prepared.plan} {request.sample_rate} ".encode() + first.fingerprint
        plan = hashlib.sha256(basis).hexdigest()[:32]
        skip = request.skip_samples if request.plan == plan else 0
        self._frames = FrameStream(self._native_rate, request.sample_rate, skip)
        return plan

    def add(self, audio: Audio, job: Job[Audio], *, last: bool) -> list[bytes]:
        self._synthesis_s += job.worked_s
        at = self._native_samples / self._native_rate
        self._words += [
            (first, past, round(at + start, 3), round(at + end, 3))
            for first, past, start, end in audio.words
        ]
        self._native_samples += len(audio.samples)
        return list(self._frames.feed(audio.samples, last=last))

    def end(self) -> Finished:
        samples = self._frames.samples + self._frames.skipped
        duration_s = round(samples / self._request.sample_rate, 6)
        times = round(1000 * self._synthesis_s, 1), round(1000 * self._queue_s, 1)
        return Finished(duration_s, tuple(self._words), *times)
