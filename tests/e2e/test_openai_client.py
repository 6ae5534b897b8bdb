"""OpenAI's own client, unchanged: it makes speech here, in every format, streamed and not."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Literal

import aiohttp
import av
import openai
import pytest

from firstword import codec
from firstword import messages as m
from firstword.encoding import FORMATS as KINDS
from services.agent.speech_request import FORMATS
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import QUICK, Stack, tone_pcm
from tests.integration.test_agent import serving
from tests.support import eventually

SENTENCES = ["The first of several sentences.", "The second of them.", "And the last"]
TEXT = " ".join(SENTENCES)
SPOKEN = "The kettle is on the stove, and tea will be ready in a minute."
UNDERSTOOD: tuple[Literal["mp3", "opus", "wav"], ...] = ("mp3", "opus", "wav")
RATE = 24_000


@pytest.fixture
async def agent(stack: Stack) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(stack.redis_url) as caller:
        yield caller


@pytest.fixture
async def client(agent: aiohttp.ClientSession) -> AsyncIterator[openai.AsyncOpenAI]:
    url = f"{agent._base_url}/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as connected:
        yield connected


def seconds_of(format: str, data: bytes) -> float:
    """How long it lasts, as a decoder finds it."""
    if format == "pcm":
        return len(data) / 2 / RATE
    with av.open(io.BytesIO(data), mode="r") as container:
        return sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))


def spoken(voice: str = "af_heart") -> bytes:
    return b"".join(tone_pcm(text, voice) for text in SENTENCES)


@pytest.mark.parametrize("format", FORMATS)
async def test_every_format_lasts_as_long_as_the_speech(
    client: openai.AsyncOpenAI, format: str
) -> None:
    wanted = len(spoken()) / 2 / RATE
    kind = KINDS[FORMATS[format]]
    whole = await client.audio.speech.create(
        model="tts-1",
        input=TEXT,
        voice="af_heart",
        response_format=format,  # type: ignore[arg-type]
    )
    assert whole.response.headers["content-type"] == kind.content_type
    async with client.audio.speech.with_streaming_response.create(
        model="gpt-4o-mini-tts",
        input=TEXT,
        voice="af_heart",
        response_format=format,  # type: ignore[arg-type]
    ) as response:
        streamed = [part async for part in response.iter_bytes(4096)]
    for data in (whole.content, b"".join(streamed)):
        extra = seconds_of(format, data) - wanted
        assert -1e-3 < extra < kind.delay_s + kind.padding_s + 1e-3


async def test_the_samples_are_those_of_the_path(client: openai.AsyncOpenAI) -> None:
    made = await client.audio.speech.create(
        model="kokoro", input=TEXT, voice="af_heart", response_format="pcm"
    )
    assert made.content == spoken()
    wav = await client.audio.speech.create(
        model="kokoro", input=TEXT, voice="af_heart", response_format="wav"
    )
    assert wav.content[44:] == spoken() and wav.content.count(b"RIFF") == 1


async def test_voices_of_openais_are_ours(client: openai.AsyncOpenAI) -> None:
    made = await client.audio.speech.create(
        model="tts-1", input=TEXT, voice="marin", response_format="pcm", speed=2.0
    )
    assert len(made.content) == pytest.approx(len(spoken()) / 2, abs=100)
    assert [model.id async for model in client.models.list()] == ["kokoro-82m"]
    assert (await client.models.retrieve("kokoro-82m")).owned_by == "firstword"


async def test_a_language_without_a_voice_is_spoken_by_one_of_its_own(
    agent: aiohttp.ClientSession,
) -> None:
    body = {"input": TEXT, "lang": "en-gb", "response_format": "pcm"}
    async with agent.post("/v1/audio/speech", json=body) as response:
        assert await response.read() == spoken("bf_emma")
    async with agent.post("/invocations", json={"text": TEXT, "lang": "en-gb"}) as response:
        assert '"voice": "bf_emma"' in await response.text()


@pytest.mark.parametrize("format", ["mp3", "wav"])
async def test_a_text_without_a_sound_is_refused(agent: aiohttp.ClientSession, format: str) -> None:
    body = {"input": "...", "response_format": format}
    async with agent.post("/v1/audio/speech", json=body) as response:
        assert response.status == 400
        assert (await response.json())["error"]["code"] == "missing_text"


async def test_speech_comes_as_events_where_they_are_asked_for(
    agent: aiohttp.ClientSession,
) -> None:
    body = {"model": "gpt-4o-mini-tts", "input": TEXT, "voice": "af_heart"}
    how = {"response_format": "pcm", "stream_format": "sse"}
    async with agent.post("/v1/audio/speech", json={**body, **how}) as response:
        assert response.content_type == "text/event-stream"
        lines = [line async for line in response.content if line.startswith(b"data: ")]
    events = [json.loads(line.removeprefix(b"data: ")) for line in lines]
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(event["audio"]) for event in events[:-1]) == spoken()
    assert events[-1]["type"] == "speech.audio.done"
    assert events[-1]["usage"]["output_tokens"] == len(spoken()) // 2


async def test_it_starts_before_it_is_all_spoken(redis_url: str) -> None:
    slow = ToneOptions(ms_per_char=5, latency_s=0.5)
    async with (
        Stack(redis_url, lambda: ToneSynthesizer(slow)) as stack,
        serving(stack.redis_url) as agent,
    ):
        body = {"model": "tts-1", "input": TEXT, "voice": "af_heart", "response_format": "pcm"}
        async with agent.post("/v1/audio/speech", json=body) as response:
            first = await response.content.readany()
            assert 0 < len(first) < len(spoken())
            assert first + await response.content.read() == spoken()


async def test_what_cannot_be_is_an_error_of_the_client(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="response_format is one of") as raised:
        await client.audio.speech.create(
            model="tts-1",
            input="x",
            voice="af_heart",
            response_format="tape",  # type: ignore[arg-type]
        )
    assert raised.value.code == "unsupported_format"
    with pytest.raises(openai.BadRequestError, match="not installed") as raised:
        await client.audio.speech.create(model="tts-1", input="Hello.", voice="nobody")
    assert raised.value.code == "unknown_voice"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("other")


async def test_a_voice_that_breaks_in_the_middle_is_no_whole_file(redis_url: str) -> None:
    class Breaking(ToneSynthesizer):
        def synthesize(self, prepared, index, stop):  # type: ignore[no-untyped-def]
            if "last" in prepared.pieces[index].text:
                self._failures = 1
            return super().synthesize(prepared, index, stop)

    async with (
        Stack(redis_url, lambda: Breaking(QUICK)) as stack,
        serving(stack.redis_url) as agent,
    ):
        body = {"input": TEXT, "voice": "af_heart", "response_format": "pcm"}
        with pytest.raises(aiohttp.ClientPayloadError):
            async with agent.post("/v1/audio/speech", json=body) as response:
                assert response.status == 200
                await response.read()


async def test_who_hangs_up_stops_the_speech(redis_url: str) -> None:
    slow = ToneOptions(ms_per_char=50, latency_s=0.3)
    async with (
        Stack(redis_url, lambda: ToneSynthesizer(slow)) as stack,
        serving(stack.redis_url) as agent,
    ):
        body = {"input": TEXT * 20, "voice": "af_heart", "response_format": "mp3"}
        async with agent.post("/v1/audio/speech", json=body) as response:
            await response.content.readany()
        streams = stack.firstword.streams

        async def over() -> bool:
            names = [name async for name in streams.commands.scan_iter(match="fw:{speech-*}:audio")]
            entries = await streams.range(names[0].decode(), "0-0", 10_000)
            kinds = [codec.unpack(entry.fields[b"m"], codec.AUDIO) for entry in entries]
            ends = [type(kind) for kind in kinds if isinstance(kind, m.TurnCancelled | m.Closed)]
            return ends == [m.TurnCancelled, m.Closed]

        await eventually(over, "it is cancelled, and its session is closed", timeout=20)


def pcm_of(data: bytes) -> tuple[bytes, int]:
    """The file's samples as s16le mono, and their rate, as a decoder finds them."""
    with av.open(io.BytesIO(data), mode="r") as container:
        rate = container.streams.audio[0].rate
        resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
        frames = [r for frame in container.decode(audio=0) for r in resampler.resample(frame)]
    return b"".join(frame.to_ndarray().tobytes() for frame in frames), rate


@pytest.mark.model
async def test_the_real_voice_is_understood_in_files_of_openais_client(redis_url: str) -> None:
    # What these import takes seconds, which no event loop may wait for.
    engines, ears = await asyncio.to_thread(_real_ones)
    async with (
        Stack(redis_url, engines.kokoro) as stack,
        serving(stack.redis_url) as agent,
        openai.AsyncOpenAI(base_url=f"{agent._base_url}/v1", api_key="none") as client,
    ):
        files = {}
        for format in UNDERSTOOD:
            made = client.audio.speech.with_streaming_response.create(
                model="tts-1", input=SPOKEN, voice="coral", response_format=format
            )
            async with made as response:
                files[format] = b"".join([part async for part in response.iter_bytes(4096)])
    for format, data in files.items():
        pcm, rate = await asyncio.to_thread(pcm_of, data)
        assert 2 < len(pcm) / 2 / rate < 7, format
        share = await asyncio.to_thread(ears.share_recognised, SPOKEN, pcm, rate)
        assert share >= 0.8, f"{format}: {share:.0%} of the words are heard"


def _real_ones() -> tuple[ModuleType, ModuleType]:
    from tests.doubles import ears, engines

    return engines, ears
