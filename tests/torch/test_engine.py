"""The torch engine as the service starts it, beside the one on ONNX Runtime."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from firstword.errors import FirstwordError
from services.inference.__main__ import load_engine
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import Stop, Utterance, max_batch
from tests.doubles.engines import NO_TORCH, kokoro, kokoro_torch, pronouncer
from tests.doubles.inference_client import running
from tests.torch.likeness import loudness

torch = pytest.importorskip("torch", reason=NO_TORCH)
# A busy machine may take minutes: the engine is loaded in the first test.
pytestmark = [pytest.mark.torch, pytest.mark.model, pytest.mark.timeout(600)]

TEXT = "The weather is lovely today."


@pytest.mark.parametrize(("voice", "lang"), [("af_heart", "en-us"), ("bm_george", "en-gb")])
def test_both_engines_say_the_same(voice: str, lang: str) -> None:
    made = []
    for engine in (kokoro(), kokoro_torch()):
        prepared = engine.prepare(Utterance(TEXT, voice, lang))
        made.append(engine.synthesize(prepared, 0, Stop()))
    onnx, ours = made
    assert [word[:2] for word in onnx.words] == [word[:2] for word in ours.words]
    # One computes in whole numbers, so a duration may be one frame off: 25 ms.
    for one, other in zip(onnx.words, ours.words, strict=True):
        assert one[2:] == pytest.approx(other[2:], abs=0.06)
    size = min(len(onnx.samples), len(ours.samples))
    assert np.corrcoef(loudness(onnx.samples[:size]), loudness(ours.samples[:size]))[0, 1] > 0.8


def test_the_engine_says_what_it_is_and_takes_one_piece_at_a_time_on_a_cpu() -> None:
    engine = kokoro_torch()
    assert f"torch {torch.__version__} cpu full" in engine.name
    assert engine.name != kokoro().name
    assert max_batch(engine) == 1


async def test_the_service_speaks_with_it() -> None:
    async with (
        running(kokoro_torch, InferenceSettings(max_wait_s=300)) as serving,
        serving.connect() as client,
    ):
        whole = await client.say("1", TEXT, seed=5)
        assert whole.start is not None and len(whole.pcm) > 48_000
        rest = await client.say("2", TEXT, seed=5, skip_samples=9_999, plan=whole.start.plan)
        assert rest.pcm == whole.pcm[2 * 9_999 :]


def test_the_setting_chooses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.inference.text.Pronouncer", pronouncer)
    settings = InferenceSettings(engine="torch", device="cpu", threads=2)
    engine = load_engine(settings)
    assert engine.name == kokoro_torch().name


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA here")
def test_where_there_is_no_cuda_it_says_so() -> None:
    with pytest.raises(FirstwordError, match="FIRSTWORD_INFERENCE_DEVICE=cpu") as caught:
        load_engine(InferenceSettings(engine="torch", device="cuda"))
    assert caught.value.code == "device_missing"


def test_half_precision_is_for_cuda() -> None:
    with pytest.raises(FirstwordError, match="FIRSTWORD_INFERENCE_PRECISION") as caught:
        load_engine(InferenceSettings(engine="torch", device="cpu", precision="half"))
    assert caught.value.code == "bad_settings"


async def test_sessions_at_once_are_heard_as_if_alone() -> None:
    texts = {"af_heart": "Apples are red.", "bf_emma": "The sea is blue."}
    async with running(kokoro_torch, InferenceSettings(workers=2, max_wait_s=300)) as serving:

        async def speak(voice: str) -> bytes:
            async with serving.connect() as client:
                return (await client.say(voice, texts[voice], voice=voice)).pcm

        together = await asyncio.gather(*map(speak, texts))
        for voice, pcm in zip(texts, together, strict=True):
            assert pcm == await speak(voice)
