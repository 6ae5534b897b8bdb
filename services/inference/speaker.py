"""From a request to frames of PCM: shared by the WebSocket and the HTTP side."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from asyncio import FIRST_COMPLETED
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from firstword import telemetry
from firstword.session_protocol import Synthesize, Words
from firstword.voice_languages import LANGUAGES
from services.inference import voices
from services.inference.audio import FrameStream
from services.inference.lexicon import Lexicon, LexiconError
from services.inference.lexicon import read as read_lexicon
from services.inference.making import Made, Outcome, Work, make
from services.inference.scheduler import LEAST_RETRY_S, Job, Limits, Listener
from services.inference.settings import InferenceSettings
from services.inference.spans import RequestSpans
from services.inference.synthesizer import (
    Audio,
    Prepared,
    Stop,
    Stopped,
    SynthesisError,
    Synthesizer,
    Utterance,
    max_batch,
)
from services.inference.word_times import joined
from services.inference.workers import Ticket, Workers

WARM_UP: Final = "Ready when you are."

AT_ONCE_CHARS: Final = 400
"""A text up to this length is prepared by the worker that speaks it, if one is free: that takes
some milliseconds, and saves handing it from thread to thread."""


@dataclass(frozen=True, slots=True)
class Started:
    """The plan is known; frames follow."""

    plan: str


@dataclass(frozen=True, slots=True)
class Finished:
    """All frames are out. `duration_s`: of the whole segment, including skipped samples."""

    duration_s: float
    words: Words
    synthesis_ms: float
    queue_ms: float


Output: TypeAlias = Started | bytes | Finished


class Speaker:
    """One engine, its threads and its health."""

    def __init__(self, load: Callable[[], Synthesizer], settings: InferenceSettings) -> None:
        self._load = load
        self._settings = settings
        self._loaded: Synthesizer | None = None
        self._engine: Synthesizer | None = None  # loaded, and has spoken
        limits = Limits(settings.workers, settings.max_wait_s, settings.hang_s)
        self._workers: Workers[Work, Made] = Workers(limits, self._make, _size)
        # Pronunciation is quick, but must not wait for a synthesis, and runs one at a time.
        self._preparing = ThreadPoolExecutor(1, thread_name_prefix="prepare")
        self._prepares_since: float | None = None
        self._active = 0
        self._typical_size = 1  # assumed for first pieces not prepared yet, of texts so long

    async def start(self) -> None:
        """Load the engine and speak once. Raises what the engine raises."""
        loop = asyncio.get_running_loop()
        self._loaded = loaded = await loop.run_in_executor(self._preparing, self._load)
        await loop.run_in_executor(self._preparing, self._read_every_language, loaded)
        self._workers.batch_up_to(min(max_batch(loaded), self._settings.max_batch))
        voice = voices.choose(None, None, self._settings.voice, loaded.voices)
        utterance = Utterance(WARM_UP, voice, voices.language_of(voice))
        now = time.monotonic()
        made = await self._workers.result(self._workers.submit(Work(utterance, Stop()), Job(now)))
        self._typical_size = made.prepared.size(0)
        self._engine = loaded

    def _read_every_language(self, engine: Synthesizer) -> None:
        """What reads a language may be loaded when it is first asked for, and Chinese takes
        seconds, in which nobody else would be read to: so all that is installed is loaded now."""
        for language in LANGUAGES.values():
            with contextlib.suppress(SynthesisError):  # why not is told to who asks for it
                voice = voices.choose(None, language, self._settings.voice, engine.voices)
                engine.prepare(Utterance(WARM_UP, voice, language))

    def _make(self, works: Sequence[Work]) -> list[Outcome]:
        if self._loaded is None:
            raise RuntimeError("nothing is submitted before the engine is loaded")
        return make(self._loaded, works)

    @property
    def name(self) -> str:
        """The engine's own name, or "" while it loads."""
        return "" if self._engine is None else self._engine.name

    @property
    def voices(self) -> list[dict[str, str]]:
        """As `voices.listed`; none while the engine loads."""
        return voices.listed(frozenset() if self._engine is None else self._engine.voices)

    def unwell(self) -> str | None:
        """Why no synthesis can be expected to succeed now; None when well."""
        if self._engine is None:
            return "the engine is loading"
        began = self._prepares_since
        hangs = began is not None and time.monotonic() - began >= self._settings.hang_s
        if self._workers.stuck or hangs:
            return f"a synthesis hangs for more than {self._settings.hang_s:g} s"
        return None

    @property
    def busy(self) -> bool:
        """Whether the engine works now."""
        return self._workers.busy

    def close(self) -> None:
        """Drop what waits; do not wait for a synthesis that runs (`busy` says if there is one)."""
        self._workers.close()
        self._preparing.shutdown(wait=False, cancel_futures=True)

    async def speak(self, request: Synthesize, stop: Stop) -> AsyncGenerator[Output, None]:
        """`Started`, frames, `Finished`. Closing the iterator early stops the synthesis.

        Raises SynthesisError, and Stopped after `stop` was set.
        """
        with RequestSpans(request) as spans:
            listener = Listener(time.monotonic(), request.deadline_ms)
            engine = self._admit(listener, first=_is_first(request))
            self._active += 1
            try:
                pieces = self._pieces(engine, request, listener, stop)
                telling = _tell(engine, request, pieces, spans)
                async with aclosing(pieces), aclosing(telling) as outputs:
                    async for output in outputs:
                        if stop.is_set:
                            raise Stopped
                        yield output
            finally:
                self._active -= 1
                stop.set()

    def _admit(self, listener: Listener, *, first: bool) -> Synthesizer:
        """The engine, if a request may begin now."""
        if self._engine is None:
            raise SynthesisError("loading", "the engine is loading; try again", retryable=True)
        if self._workers.all_stuck:
            raise self._workers.stuck_error()
        wait_s = self._workers.retry_after_s(due=listener.due, first=first)
        if self._active >= self._settings.max_waiting:
            wait_s = max(wait_s, self._workers.backlog_s(), LEAST_RETRY_S)
        _refuse(wait_s)
        return self._engine

    async def _pieces(
        self, engine: Synthesizer, request: Synthesize, listener: Listener, stop: Stop
    ) -> AsyncGenerator[_Piece, None]:
        """The pieces of a request, each as it is made; while one is sent, the next is made."""
        utterance = self._utterance(engine, request)
        # While it is prepared it already counts for what later requests must wait.
        chars = len(utterance.text)
        first = Job(listener.due, _is_first(request), min(self._typical_size, chars))
        with self._workers.expecting(first):
            prepared = await self._prepared(engine, utterance, stop)
        if prepared is not None and not prepared.pieces:
            yield _Piece(Made(prepared, None, 0.0), 0.0, last=True)
            return
        if prepared is not None:
            # How much work is before it was a guess until those of a burst were prepared.
            _refuse(self._workers.retry_after_s(due=first.due, first=first.first))
            first = replace(first, size=prepared.size(0))
        queued = _Queued(self._workers, stop)
        queued.submit(Work(utterance, stop, prepared), first)
        index, last = 0, False
        while not last:
            made, waited_s = await queued.result()
            if index == 0 and made.audio is not None and chars >= self._typical_size:
                self._typical_size = made.prepared.size(0)
            listener.given(time.monotonic(), made.seconds(engine.sample_rate))
            index += 1
            last = index >= len(made.prepared.pieces)
            if not last:
                work = Work(utterance, stop, made.prepared, index)
                queued.submit(work, Job(listener.due, size=made.prepared.size(index)))
            yield _Piece(made, waited_s, last)

    def chosen(self, request: Synthesize) -> str | None:
        """The voice chosen for a request that names none; None if it names one."""
        if request.voice or self._engine is None:
            return None
        return voices.choose(None, request.lang, self._settings.voice, self._engine.voices)

    def _utterance(self, engine: Synthesizer, request: Synthesize) -> Utterance:
        voice = voices.choose(request.voice, request.lang, self._settings.voice, engine.voices)
        lang = voices.language_of(voice)
        first_words = self._settings.first_chunk_words if request.first else 0
        return Utterance(
            request.text,
            voice,
            lang,
            request.speed,
            request.seed,
            first_words=first_words,
            lexicon=_lexicon(request),
        )

    async def _prepared(
        self, engine: Synthesizer, utterance: Utterance, stop: Stop
    ) -> Prepared | None:
        """The prepared utterance; None if a worker is idle, which then prepares it itself.

        Otherwise it is prepared while the workers are busy. Raises SynthesisError
        `synthesis_stuck` if that hangs, and Stopped at once when `stop` is set: the texts before
        it may take seconds.
        """
        if self._workers.idle and len(utterance.text) <= AT_ONCE_CHARS:
            return None
        loop = asyncio.get_running_loop()
        preparing = loop.run_in_executor(self._preparing, self._prepare, engine, utterance)
        stopped = loop.create_task(_is_set(stop))
        try:
            either: set[asyncio.Future[Any]] = {preparing, stopped}
            await asyncio.wait(either, timeout=self._settings.hang_s, return_when=FIRST_COMPLETED)
            if stop.is_set:
                raise Stopped
            if not preparing.done():
                raise self._workers.stuck_error()
            return preparing.result()
        finally:
            preparing.cancel()
            stopped.cancel()

    def _prepare(self, engine: Synthesizer, utterance: Utterance) -> Prepared:
        self._prepares_since = time.monotonic()
        try:
            return engine.prepare(utterance)
        finally:
            self._prepares_since = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece that was made, how long it had waited, and whether it is the request's last."""

    made: Made
    waited_s: float
    last: bool


class _Queued:
    """One request's piece in the queue or being made: one at a time, cancelled by `stop`."""

    def __init__(self, workers: Workers[Work, Made], stop: Stop) -> None:
        self._workers = workers
        self._stop = stop
        self._ticket: Ticket[Work, Made] | None = None
        stop.on_set(self._cancel)

    def submit(self, work: Work, job: Job) -> None:
        self._ticket = self._workers.submit(work, job)
        if self._stop.is_set:
            self._cancel()

    async def result(self) -> tuple[Made, float]:
        """What was made, and how many seconds it had waited."""
        ticket = self._ticket
        if ticket is None:
            raise RuntimeError("nothing was submitted")
        made = await self._workers.result(ticket)
        return made, ticket.waited_s

    def _cancel(self) -> None:
        if self._ticket is not None:
            self._workers.cancel(self._ticket)


async def _is_set(stop: Stop) -> None:
    """Wait until it is."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(event.set)

    stop.on_set(wake)
    await event.wait()


def _refuse(wait_s: float) -> None:
    """Raises SynthesisError `busy` if a request is to come back later."""
    if wait_s > 0:
        message = "too many requests wait; try again later, or elsewhere"
        raise SynthesisError("busy", message, retryable=True, retry_after_s=wait_s)


def _is_first(request: Synthesize) -> bool:
    """Whether its listener has heard nothing yet; assumed of clients that do not say."""
    return request.first or request.deadline_ms is None


def _size(made: Made) -> int | None:
    return None if made.audio is None else made.prepared.size(made.index)


async def _tell(
    engine: Synthesizer,
    request: Synthesize,
    pieces: AsyncGenerator[_Piece, None],
    spans: RequestSpans,
) -> AsyncGenerator[Output, None]:
    """The outputs for a request: `Started`, frames, `Finished`."""
    told = _Told(engine, request)
    async for piece in pieces:
        made = piece.made
        spans.piece(piece.waited_s, made.worked_s)
        if made.audio is None:
            yield Started(made.prepared.plan)
            continue
        if not told.begun:
            telemetry.synthesis_queue.observe(piece.waited_s)
            yield Started(told.begin(made.prepared, made.audio, piece.waited_s))
        for frame in told.add(made.audio, made.worked_s, last=piece.last):
            yield frame
    finished = told.end()
    if told.begun:
        telemetry.synthesis.observe(finished.synthesis_ms / 1000)
        telemetry.synthesis_audio.inc(finished.duration_s)
        if finished.duration_s:
            telemetry.rtf.observe(finished.synthesis_ms / 1000 / finished.duration_s)
    yield finished


def _lexicon(request: Synthesize) -> Lexicon | None:
    """The pronunciations that came with a request. Raises SynthesisError `bad_lexicon`."""
    if not request.lexicon:
        return None
    try:
        return read_lexicon(request.lexicon)
    except LexiconError as error:
        raise SynthesisError(error.code, error.message) from None


class _Told:
    """The outputs of one request so far."""

    def __init__(self, engine: Synthesizer, request: Synthesize) -> None:
        self.begun = False
        self._native_rate = engine.sample_rate
        self._request = request
        self._frames = FrameStream(engine.sample_rate, request.sample_rate)
        self._native_samples = 0
        self._words: list[tuple[int, int, float, float]] = []
        self._synthesis_s = 0.0
        self._queue_s = 0.0

    def begin(self, prepared: Prepared, first: Audio, waited_s: float) -> str:
        """The plan, which decides whether samples may be skipped."""
        request = self._request
        self.begun = True
        self._queue_s = waited_s
        basis = f"{prepared.plan} {request.sample_rate} ".encode() + first.fingerprint
        plan = hashlib.sha256(basis).hexdigest()[:32]
        skip = request.skip_samples if request.plan == plan else 0
        self._frames = FrameStream(self._native_rate, request.sample_rate, skip)
        return plan

    def add(self, audio: Audio, worked_s: float, *, last: bool) -> Iterator[bytes]:
        self._synthesis_s += worked_s
        at = self._native_samples / self._native_rate
        self._words += [
            (first, past, round(at + start, 3), round(at + end, 3))
            for first, past, start, end in audio.words
        ]
        self._native_samples += len(audio.samples)
        return self._frames.feed(audio.samples, last=last)

    def end(self) -> Finished:
        samples = self._frames.samples + self._frames.skipped
        duration_s = round(samples / self._request.sample_rate, 6)
        times = round(1000 * self._synthesis_s, 1), round(1000 * self._queue_s, 1)
        return Finished(duration_s, joined(self._words), *times)
