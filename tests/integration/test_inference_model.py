"""The inference service with the real Kokoro-82M: it speaks, and what it says is right."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest

from firstword import assets
from firstword.session_protocol import Cancelled, SynthesisComplete
from services.inference.audio import to_pcm
from services.inference.onnx import OnnxSynthesizer
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import Stop, SynthesisError, Utterance
from tests.doubles.ears import share_recognised
from tests.doubles.engines import kokoro, pronouncer
from tests.doubles.inference_client import Running, running
from tests.support import eventually

pytestmark = pytest.mark.model

RATE = 24_000


@pytest.fixture
async def service() -> AsyncIterator[Running]:
    settings = InferenceSettings(max_wait_s=120)  # nobody is refused on a busy machine
    async with running(kokoro, settings) as serving:
        yield serving


def alone(text: str, voice: str = "af_heart") -> bytes:
    """What the engine says when nobody else speaks."""
    engine = kokoro()
    prepared = engine.prepare(Utterance(text, voice, "en-gb" if voice[0] == "b" else "en-us"))
    return b"".join(
        to_pcm(engine.synthesize(prepared, index, Stop()).samples)
        for index in range(len(prepared.pieces))
    )


def decibels(pcm: bytes) -> float:
    samples = np.frombuffer(pcm, "<i2").astype(np.float64) / 32768
    return float(10 * np.log10(np.square(samples).mean() + 1e-12))


@pytest.mark.parametrize("voice", ["af_heart", "bm_george"])
async def test_what_is_said_is_understood(service: Running, voice: str) -> None:
    text = "The weather is lovely today, and we should all go for a walk in the park."
    async with service.connect() as client:
        spoken = await client.say("1", text, voice=voice)
    assert share_recognised(text, spoken.pcm) >= 0.8
    assert -35 < decibels(spoken.pcm) < -15
    assert np.abs(np.frombuffer(spoken.pcm, "<i2")).max() < 32767
    assert isinstance(spoken.end, SynthesisComplete)
    assert [text[w[0] : w[1]] for w in spoken.end.words] == text.replace(",", "").rstrip(
        "."
    ).split()


async def test_a_long_text_is_whole_across_its_pieces_and_without_gaps(service: Running) -> None:
    text = (
        "Our train leaves the station at noon, so please be there with your tickets in hand. "
        "The journey takes about three hours, and lunch is served in the second carriage. "
        "From the window you will see the old castle, the river, and the harbour. "
        "When we arrive, a bus will bring everybody to the hotel near the market."
    )
    prepared = await asyncio.to_thread(kokoro().prepare, Utterance(text, "af_heart", "en-us"))
    assert len(prepared.pieces) == 4
    async with service.connect() as client:
        spoken = await client.say("1", text)
    assert share_recognised(text, spoken.pcm) >= 0.8
    window = RATE // 10 * 2
    loud = [decibels(spoken.pcm[i : i + window]) > -50 for i in range(0, len(spoken.pcm), window)]
    assert "0" * 10 not in "".join(str(int(one)) for one in loud), "a second of silence"


async def test_the_first_sound_comes_early_and_the_end_is_quiet(service: Running) -> None:
    async with service.connect() as client:
        spoken = await client.say("1", "Please say it now.")
    first_100_ms, last_50_ms = spoken.pcm[: 2 * RATE // 10], spoken.pcm[-2 * RATE // 20 :]
    assert decibels(first_100_ms) > -50
    assert decibels(last_50_ms) < -45
    assert spoken.pcm[:2] == b"\x00\x00"


async def test_two_at_once_are_heard_as_if_alone(service: Running) -> None:
    texts = {"af_heart": "Apples are red.", "bf_emma": "The sea is blue."}

    async def speak(voice: str, text: str) -> bytes:
        async with service.connect() as client:
            return (await client.say(voice, text, voice=voice)).pcm

    heard = await asyncio.gather(*(speak(voice, text) for voice, text in texts.items()))
    for (voice, text), pcm in zip(texts.items(), heard, strict=True):
        assert pcm == await asyncio.to_thread(alone, text, voice)


async def test_odd_texts_are_silent_or_spoken_and_never_noise(service: Running) -> None:
    async with service.connect() as client:
        for text in ("...", "!", "😀", "\x00"):
            spoken = await client.say("1", text)
            assert isinstance(spoken.end, SynthesisComplete) and spoken.end.samples == 0
        spoken = await client.say("2", "No\x00w\u200b we speak 😀!")
        assert isinstance(spoken.end, SynthesisComplete) and len(spoken.pcm) > RATE


async def test_a_cancel_stops_the_engine_and_the_next_sentence_speaks(service: Running) -> None:
    async with service.connect() as client:
        await client.ask("1", "This is a long sentence that nobody will ever hear to its end. " * 4)
        await eventually(lambda: service.speaker.busy, "the engine works")
        await client.ws.send_str('{"type": "cancel", "id": "1"}')
        assert (await client.spoken()).end == Cancelled("1", 0)
        text = "This one is heard."
        assert (await client.say("2", text)).pcm == await asyncio.to_thread(alone, text)


async def test_an_interrupted_segment_is_resumed_to_the_sample(service: Running) -> None:
    text = "Going on where it broke off."
    async with service.connect() as client:
        whole = await client.say("1", text)
    async with service.connect() as client:
        assert whole.start is not None
        rest = await client.say("1", text, skip_samples=9_999, plan=whole.start.plan)
        assert rest.pcm == whole.pcm[2 * 9_999 :]


def test_a_damaged_voice_is_told_and_never_spoken(tmp_path: Path) -> None:
    healthy = assets.locate(os.environ)
    (tmp_path / "voices").mkdir()
    (tmp_path / healthy.model.name).symlink_to(healthy.model)
    (tmp_path / "voices" / "af_heart.bin").write_bytes(bytes(522_240))
    engine = OnnxSynthesizer(assets.Assets(tmp_path, healthy.manifest), pronouncer(), 1)
    with pytest.raises(SynthesisError, match="voice_damaged") as caught:
        engine.prepare(Utterance("Hello.", "af_heart", "en-us"))
    assert str(tmp_path) not in caught.value.message


async def test_the_process_serves_a_wav() -> None:
    environ = {**os.environ, "FIRSTWORD_INFERENCE_PORT": "0"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.inference", "serve"),
        env=environ,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        event: dict[str, Any] = {"event": ""}
        while event["event"] != "listening":
            event = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
        base = f"http://{event['address']}"
        async with aiohttp.ClientSession() as http:
            async with http.get(f"{base}/ping") as response:
                assert response.status == 503, "red while the engine loads"

            async def well() -> bool:
                async with http.get(f"{base}/ping") as response:
                    return response.status == 200

            await eventually(well, "the service is ready", timeout=100)
            body = {"text": "Good evening.", "stream": False}
            async with http.post(f"{base}/invocations", json=body) as response:
                wav = await response.read()
        assert wav[44:] == await asyncio.to_thread(alone, "Good evening.")
    finally:
        process.terminate()
        rest = await asyncio.wait_for(process.stdout.read(), 30)
        assert await process.wait() == 0
    assert b"evening" not in rest
