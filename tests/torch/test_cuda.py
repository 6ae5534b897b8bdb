"""The torch engine on a GPU: what it makes there is what a CPU makes, alone and in batches."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from firstword import assets
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import Audio, Prepared, Stop, Utterance, max_batch
from tests.doubles.engines import NO_TORCH, kokoro_torch, pronouncer
from tests.doubles.inference_client import Running, running
from tests.torch.likeness import Samples, decibels, loudness

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytestmark = [
    pytest.mark.torch,
    pytest.mark.model,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU with CUDA"),
]

if TYPE_CHECKING:
    from services.inference.torch import TorchSynthesizer

TEXTS = (
    "Yes.",
    "Are you sure?",
    "The kettle is on the stove, and the tea is in the cupboard.",
    "I would like two coffees and a sandwich.",
    "It is raining again today, so take an umbrella with you when you go.",
    "We can start in a minute.",
    "Please take a seat over there.",
    "The shop closes at seven, and the market at nine.",
)


@cache
def on_gpu(precision: str = "full", *, everything: bool = False) -> TorchSynthesizer:
    from services.inference.torch import TorchOptions, TorchSynthesizer

    kokoro_torch()  # makes the checkpoint where there is none
    options = TorchOptions("cuda", precision, everything=everything)
    return TorchSynthesizer(assets.locate(os.environ), pronouncer(), options)


@cache
def prepared() -> list[tuple[Prepared, int]]:
    utterances = [Utterance(text, "af_heart", "en-us", seed=3) for text in TEXTS]
    return [(on_gpu().prepare(utterance), 0) for utterance in utterances]


def alone(engine: TorchSynthesizer) -> list[Samples]:
    return [engine.synthesize(each, index, Stop()).samples for each, index in prepared()]


def together(engine: TorchSynthesizer) -> list[Samples]:
    made = engine.synthesize_batch(prepared(), [Stop() for _ in TEXTS])
    return [audio.samples for audio in made if isinstance(audio, Audio)]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("precision", ["full", "half"])
def test_a_batch_is_what_its_pieces_are_alone(precision: str, everything: bool) -> None:
    engine = on_gpu(precision, everything=everything)
    assert max_batch(engine) == len(TEXTS)
    pairs = list(zip(together(engine), alone(engine), strict=True))
    worst = max(float(np.abs(one - other).max()) for one, other in pairs)
    if precision == "full":
        assert worst < 1e-3
    assert min(decibels(one, other) for one, other in pairs) > 35


@pytest.mark.parametrize("precision", ["full", "half"])
def test_a_seed_repeats_itself_to_the_bit(precision: str) -> None:
    engine = on_gpu(precision)
    for make in (alone, together):
        for one, other in zip(make(engine), make(engine), strict=True):
            assert np.array_equal(one, other)


def test_half_precision_is_the_same_speech() -> None:
    ratios = [decibels(*pair) for pair in zip(alone(on_gpu("half")), alone(on_gpu()), strict=True)]
    assert min(ratios) > 25


def test_a_gpu_says_what_a_cpu_says() -> None:
    for (each, index), ours in zip(prepared()[:4], alone(on_gpu())[:4], strict=True):
        expected = kokoro_torch().synthesize(each, index, Stop()).samples
        # A last bit of a duration may round the other way: a frame is 25 ms.
        assert abs(len(ours) - len(expected)) <= 1200
        size = min(len(ours), len(expected))
        assert np.corrcoef(loudness(ours[:size]), loudness(expected[:size]))[0, 1] > 0.95


async def test_32_sessions_at_once_hear_their_own_texts() -> None:
    settings = InferenceSettings(max_wait_s=300)
    async with running(on_gpu, settings) as serving:

        async def whole(session: int) -> bytes:
            return await said(serving, TEXTS[session % len(TEXTS)])

        expected = [await whole(session) for session in range(len(TEXTS))]
        assert len({len(pcm) for pcm in expected}) > len(TEXTS) // 2
        for session, pcm in enumerate(await asyncio.gather(*map(whole, range(32)))):
            one, other = (np.frombuffer(each, "<i2") for each in (pcm, expected[session % 8]))
            assert one.shape == other.shape
            assert np.abs(one.astype(int) - other.astype(int)).max() <= 33  # 1e-3 of full scale


async def said(serving: Running, text: str) -> bytes:
    async with serving.connect() as client:
        spoken = await client.say("1", text, seed=3)
        assert spoken.start is not None
        return spoken.pcm
