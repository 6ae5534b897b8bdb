"""The real voice under our cuts and our order: what is heard is what was written, by everyone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

from benchmarks.first_audio import SENTENCES
from firstword.session_protocol import SynthesisComplete, SynthesisStart
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import Stop, Utterance
from tests.doubles.ears import share_recognised, spoken_words
from tests.doubles.engines import kokoro
from tests.doubles.inference_client import Running, running
from tests.support import eventually

pytestmark = pytest.mark.model

RATE = 24_000
LONG_FIRSTS = SENTENCES[:2] + SENTENCES[4:5]
"""Enough words that one of them is less than two points."""

SETTINGS = replace(InferenceSettings(), max_wait_s=120.0)


async def test_as_many_words_are_recognised_in_audio_that_was_cut_at_a_clause() -> None:
    heard = {"whole": 0.0, "cut": 0.0}
    async with running(kokoro, SETTINGS) as service, service.connect() as client:
        for text, how in product(LONG_FIRSTS, heard):
            spoken = await client.say(how, text, first=how == "cut", deadline_ms=0)
            assert isinstance(spoken.end, SynthesisComplete)
            assert len(spoken.end.words) == len(text.split())
            assert no_click(spoken.pcm)
            share = await asyncio.to_thread(share_recognised, text, spoken.pcm)
            heard[how] += share * len(spoken_words(text))
    assert heard["cut"] >= heard["whole"] * 0.98
    for text in LONG_FIRSTS:
        utterance = Utterance(text, "af_heart", "en-us", first_words=SETTINGS.first_chunk_words)
        first, rest = kokoro().prepare(utterance).sizes
        assert first < 0.7 * (first + rest), "it was cut, and early"


def no_click(pcm: bytes) -> bool:
    """Whether no two samples in a quiet place are far apart, as they are where audio is cut."""
    samples = np.frombuffer(pcm, "<i2").astype(np.float64) / 32768
    steps = np.abs(np.diff(samples))
    # 5 ms around each step: a click stands alone in what is otherwise quiet.
    around = np.convolve(np.abs(samples), np.ones(241) / 241, "same")[1:]
    return bool((steps[around < 0.002] < 0.02).all())


def waits(service: Running, count: int) -> bool:
    return service.speaker._workers._scheduler.waiting >= count


async def test_new_turns_are_heard_first_and_nobody_starves() -> None:
    order: list[str] = []

    async def speak(service: Running, id: str, text: str, ahead_ms: int) -> None:
        async with service.connect() as client:
            await client.ask(id, text, deadline_ms=ahead_ms, first=ahead_ms == 0)
            assert isinstance(await client.control(), SynthesisStart)
            order.append(id)
            while not isinstance(message := await client.message(), SynthesisComplete):
                assert isinstance(message, bytes)

    async with running(kokoro, SETTINGS) as service, asyncio.TaskGroup() as tasks:
        begun = "This one has begun to speak, and goes on for long enough that all others come."
        tasks.create_task(speak(service, "begun", begun, 29_000))
        await eventually(lambda: service.speaker.busy, "the engine works")
        waiting = {"rich": 29_000, "poor": 20_000, "new": 0, "newer": 0}
        for count, (id, ahead_ms) in enumerate(waiting.items(), 1):
            tasks.create_task(speak(service, id, f"And this is {id}.", ahead_ms))
            await eventually(partial(waits, service, count), f"{id} waits")
    assert sorted(order) == sorted(["begun", *waiting]), "everybody is heard"
    of_those_that_waited = [id for id in order if id != "begun"]
    assert of_those_that_waited == ["new", "newer", "poor", "rich"]


async def test_32_sessions_of_the_real_voice_hear_their_own_texts() -> None:
    texts = [f"Caller {number}, {1000 + 37 * number}." for number in range(32)]

    def alone(text: str) -> list[bytes]:
        prepared = kokoro().prepare(Utterance(text, "af_heart", "en-us"))
        return [p.piece.phonemes.encode() for p in prepared.pieces]

    expected = [alone(text) for text in texts]
    together = await asyncio.gather(*(asyncio.to_thread(alone, text) for text in texts))
    assert together == expected

    async def speak(service: Running, text: str) -> bytes:
        async with service.connect() as client:
            return (await client.say("1", text, deadline_ms=0)).pcm

    short = [f"{word}." for word in "One Two Three Four Five Six Seven Eight".split()] * 4
    async with running(kokoro, replace(SETTINGS, workers=2)) as service:
        heard = await asyncio.gather(*(speak(service, text) for text in short))
    engine = kokoro()
    for text, pcm in zip(short[:3], heard[:3], strict=True):
        prepared = engine.prepare(Utterance(text, "af_heart", "en-us"))
        audio = engine.synthesize(prepared, 0, Stop())
        assert len(audio.samples) * 2 == len(pcm)
    for text in set(short):
        assert len({pcm for said, pcm in zip(short, heard, strict=True) if said == text}) == 1
    assert len(set(heard)) == 8
