"""The three experiments: how early the first sound is, for how many callers, in how many bytes."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from firstword.bench.caller import Caller, Heard, callers
from firstword.bench.passages import CLIPS, PASSAGE, WARM_UP
from firstword.bench.results import (
    BATCH,
    CLAUSE,
    ONE_LOCK,
    OURS,
    SENTENCE,
    STREAMED,
    Rung,
    Size,
    Times,
)
from firstword.encoding import Encoder, encode
from firstword.session_protocol import BYTES_PER_SAMPLE, DEFAULT_SAMPLE_RATE

FORMATS: Final = ("pcm", "wav", "flac", "mp3", "adts", "aac", "opus")
LATE_S: Final = 0.05
"""A gap in playing that is shorter than this is not counted: a player holds as much back."""

Tell = Callable[[str], None]


async def first_audio(url: str, voice: str | None, trials: int, tell: Tell) -> list[Times]:
    """The passage whole, its first sentence, and that as a turn's first; in turn, each time."""
    found: dict[str, list[float]] = {BATCH: [], STREAMED: [], SENTENCE: [], CLAUSE: []}
    async with callers(url, 1) as (caller,):
        await caller.say(WARM_UP, voice)
        for trial in range(trials):
            tell(f"first audio: trial {trial + 1} of {trials}")
            whole = await caller.say(" ".join(PASSAGE), voice)
            found[BATCH].append(whole.all_s)
            found[STREAMED].append(whole.first_s)
            found[SENTENCE].append((await caller.say(PASSAGE[0], voice)).first_s)
            found[CLAUSE].append((await caller.say(PASSAGE[0], voice, first=True)).first_s)
    return [Times(name, seconds) for name, seconds in found.items()]


async def ladder(
    url: str, voice: str | None, levels: Sequence[int], turns: int, tell: Tell
) -> AsyncIterator[Rung]:
    """Each level with all at once, then with one lock around every request, as in the published
    container: there, a request waits for all that came before it."""
    for number in levels:
        for order in (OURS, ONE_LOCK):
            tell(f"ladder: {number} callers, {order}")
            async with callers(url, number) as those:
                await those[0].say(WARM_UP, voice)
                yield await _rung(those, voice, order, turns)


async def _rung(those: Sequence[Caller], voice: str | None, order: str, turns: int) -> Rung:
    lock = asyncio.Lock() if order == ONE_LOCK else None

    async def converse(caller: Caller) -> list[_Turn]:
        return [await _turn(caller, voice, lock) for _ in range(turns)]

    began = time.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(converse(caller)) for caller in those]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    wall_s = time.monotonic() - began
    taken = [turn for task in tasks for turn in task.result()]
    return Rung(
        order,
        len(those),
        [turn.first_s for turn in taken],
        sum(turn.audio_s for turn in taken),
        wall_s,
        sum(turn.dry for turn in taken),
        sum(turn.refused for turn in taken),
    )


@dataclass(slots=True)
class _Turn:
    """What its listener heard. `played_until`: when what has come will be over."""

    began: float
    first_s: float = 0.0
    audio_s: float = 0.0
    played_until: float = 0.0
    dry: bool = False
    refused: int = 0

    def add(self, heard: Heard) -> None:
        for at, frame in zip(heard.arrived, heard.frames, strict=True):
            self.first_s = self.first_s or at - self.began
            if self.played_until and at > self.played_until + LATE_S:
                self.dry = True
            seconds = len(frame) / BYTES_PER_SAMPLE / DEFAULT_SAMPLE_RATE
            self.played_until = max(self.played_until, at) + seconds
        self.audio_s += heard.audio_s
        self.refused += heard.refused


async def _turn(caller: Caller, voice: str | None, lock: asyncio.Lock | None) -> _Turn:
    """The passage, sentence after sentence, as a gateway asks for it.

    With a lock the container has one request at a time, and need not be told who is in a hurry.
    """
    turn = _Turn(time.monotonic())
    for number, sentence in enumerate(PASSAGE):
        alone: AbstractAsyncContextManager[None] = lock or nullcontext()
        async with alone:
            if lock is not None:
                turn.add(await caller.say(sentence, voice))
                continue
            ahead_ms = max(0, round(1000 * (turn.played_until - time.monotonic())))
            turn.add(await caller.say(sentence, voice, first=number == 0, deadline_ms=ahead_ms))
    return turn


async def codecs(url: str, voice: str | None, clips: int, tell: Tell) -> list[Size]:
    """The clips spoken once, and made by the streaming encoders, each clip a file of its own."""
    spoken: list[bytes] = []
    async with callers(url, 1) as (caller,):
        for number, text in enumerate(CLIPS[:clips]):
            tell(f"codecs: clip {number + 1} of {clips}")
            spoken.append((await caller.say(text, voice)).pcm)
    return [await asyncio.to_thread(_size, format, spoken) for format in FORMATS]


def _size(format: str, spoken: Sequence[bytes]) -> Size:
    began = time.thread_time()
    files = [encode(pcm, Encoder(format, DEFAULT_SAMPLE_RATE)) for pcm in spoken]
    encode_s = time.thread_time() - began
    audio_s = sum(map(len, spoken)) / BYTES_PER_SAMPLE / DEFAULT_SAMPLE_RATE
    in_json = sum(len(base64.b64encode(file)) for file in files)
    return Size(format, audio_s, sum(map(len, files)), in_json, encode_s)
