"""`/invocations` in every format and both transports, over real sockets, speaking tones."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import numpy as np
import pytest
from structlog.testing import capture_logs

from firstword import encoding
from firstword.encoding import FORMATS, Encoder
from services.inference import sound
from services.inference.audio import to_pcm
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import Audio, Prepared, Stop
from tests.doubles.inference_client import Running, running
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer, expected_samples
from tests.support import eventually
from tests.unit.test_encoding import decoded

TEXT = "A sentence that is said in many formats. " * 4
LONG = "Two minutes of audio at fifty milliseconds. " * 55


@pytest.fixture
async def service() -> AsyncIterator[Running]:
    settings = replace(InferenceSettings(), max_wait_s=60.0)  # nobody is refused on a busy machine
    async with running(ToneSynthesizer, settings) as service:
        yield service


def asked(service: Running, text: str = TEXT, **fields: Any) -> Any:
    """The response to an invocation, as a context."""
    url = f"http://{service.address}/invocations"
    return service.http.post(url, json={"text": text, **fields})


async def events(response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
    """All server-sent events of an answer."""
    body = (await response.read()).decode()
    assert body.endswith("\n\n") and all(e.startswith("data: ") for e in body.split("\n\n")[:-1])
    return [json.loads(event.removeprefix("data: ")) for event in body.split("\n\n")[:-1]]


def audio_of(events: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(e["audio"]) for e in events if e["type"] == "audio")


# -- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [24_000, 16_000])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("format", FORMATS)
async def test_every_format_is_the_whole_speech(
    service: Running, format: str, stream: bool, rate: int
) -> None:
    async with asked(service, format=format, stream=stream, sample_rate=rate) as response:
        assert response.status == 200
        assert response.content_type == FORMATS[format].content_type
        assert (response.content_length is None) == stream
        body = await response.read()
    async with asked(service, format="pcm", sample_rate=rate) as response:
        pcm = await response.read()
    kind, found = FORMATS[format], decoded(format, body, rate)
    extra = len(found) / rate - len(pcm) / 2 / rate
    assert -1e-4 < extra <= kind.delay_s + kind.padding_s
    late = round(rate * 0.05)
    last = found[len(pcm) // 2 - late : len(pcm) // 2]
    assert np.abs(last).max() > 0.3, "the last 50 ms are there"


async def test_a_rate_that_a_format_lacks_is_the_next_higher(service: Running) -> None:
    async with asked(service, format="opus", sample_rate=22_050, transport="sse") as response:
        told = await events(response)
    assert told[0]["sample_rate"] == 24_000
    assert told[-1]["samples"] == len(expected_samples(TEXT))


@pytest.mark.parametrize("format", FORMATS)
async def test_nothing_to_say_is_an_answer_too(service: Running, format: str) -> None:
    for stream in (True, False):
        async with asked(service, "...", format=format, stream=stream) as response:
            assert response.status == 200
            await response.read()


async def test_a093_the_answer_has_one_header(service: Running) -> None:
    pieces = {"text": TEXT, "format": "wav"}
    async with asked(service, **pieces) as response:
        body = await response.read()
    assert body == encoding.wav_header(24_000, None) + to_pcm(expected_samples(TEXT))


async def test_without_codecs_pcm_and_wav_are_there_and_the_others_say_what_is_missing(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "find_spec", lambda _name: None)
    for format in ("pcm", "wav"):
        async with asked(service, format=format) as response:
            assert response.status == 200
    async with asked(service, format="mp3") as response:
        assert response.status == 501
        error = (await response.json())["error"]
    assert error["code"] == "missing_package" and not error["retryable"]
    assert "pip install 'firstword[audio]'" in error["message"]


# -- server-sent events ---------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["pcm", "wav", "opus"])
async def test_events_tell_start_audio_and_end(service: Running, format: str) -> None:
    async with asked(service, id="7", format=format, transport="sse") as response:
        assert response.content_type == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-cache"
        plan = response.headers["X-Firstword-Plan"]
        start, *audio, end = await events(response)
    assert (start["type"], start["id"], start["plan"]) == ("synthesis_start", "7", plan)
    assert start["content_type"].startswith(FORMATS[format].content_type)
    assert len(audio) > 1 and {event["type"] for event in audio} == {"audio"}
    assert (end["type"], end["id"]) == ("synthesis_complete", "7")
    assert end["samples"] == len(expected_samples(TEXT))
    assert [TEXT[w[0] : w[1]] for w in end["words"]][:5] == TEXT.split()[:5]
    if format == "pcm":
        assert audio_of(audio) == to_pcm(expected_samples(TEXT))
    else:
        assert len(decoded(format, audio_of(audio))) >= end["samples"]


async def test_events_of_what_is_wanted_whole_have_one_audio(service: Running) -> None:
    for text, count in ((TEXT, 1), ("...", 0)):
        async with asked(service, text, format="pcm", stream=False, transport="sse") as response:
            kinds = [event["type"] for event in await events(response)]
        assert kinds == ["synthesis_start", *["audio"] * count, "synthesis_complete"]


class FailsLate(ToneSynthesizer):
    """The second piece of a text fails, in a way that tells text if it is asked to."""

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        if index == 1:
            raise RuntimeError("a secret")
        return super().synthesize(prepared, index, stop)


@pytest.mark.parametrize("format", ["wav", "mp3"])
async def test_what_fails_midway_has_no_end_or_an_error_event(format: str) -> None:
    with capture_logs() as logs:
        async with running(FailsLate, InferenceSettings()) as service:
            async with asked(service, format=format) as response:
                assert response.status == 200
                with pytest.raises(aiohttp.ClientError):
                    await response.read()
            async with asked(service, id="7", format=format, transport="sse") as response:
                *audio, error = await events(response)
            assert audio_of(audio)
            assert (error["type"], error["id"], error["retryable"]) == ("error", "7", True)
            assert error["code"] == "engine_failed" and "secret" not in json.dumps(error)
            async with asked(service, format=format, stream=False) as response:
                assert response.status == 503
    told = [line for line in logs if "invocation" in line["event"]]
    assert len(told) == 3 and all(line["where"].startswith("test_inference") for line in told)
    assert "secret" not in json.dumps(logs)


async def test_a_drain_is_told_in_the_events() -> None:
    options = ToneOptions(latency_s=0.2, chars_per_piece=50)
    async with running(lambda: ToneSynthesizer(options), InferenceSettings()) as service:
        async with asked(service, "word " * 60, transport="sse") as response:
            first = await response.content.readuntil(b"\n\n")
            service.service._invocations.stop_now()
            rest = await events(response)
        assert b"synthesis_start" in first
        assert (rest[-1]["code"], rest[-1]["retryable"]) == ("draining", True)


@pytest.mark.parametrize("transport", ["binary", "sse"])
async def test_a_client_that_takes_nothing_is_dropped(transport: str) -> None:
    settings = replace(InferenceSettings(), send_timeout_s=0.2)
    options = ToneOptions(ms_per_char=2_000)
    async with running(lambda: ToneSynthesizer(options), settings) as service:
        async with asked(service, TEXT * 4, transport=transport) as response:
            response.connection.transport.pause_reading()
            await eventually(
                lambda: not service.service._invocations._stops, "it is given up", timeout=15
            )


# -- beside others --------------------------------------------------------------------------------


class HeldEncoder(Encoder):
    """Stays inside its first work until it is let go."""

    let_go = threading.Event()

    def feed(self, pcm: bytes) -> bytes:
        if not self.light:
            self.let_go.wait(30)
        return super().feed(pcm)


async def test_a120_others_are_answered_while_a_long_mp3_is_encoded(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound, "Encoder", HeldEncoder)
    HeldEncoder.let_go.clear()

    async def whole() -> bytes:
        async with asked(service, LONG, format="mp3", stream=False) as response:
            assert response.status == 200
            return bytes(await response.read())

    long = asyncio.create_task(whole())
    try:
        await eventually(lambda: service.service._invocations._stops, "the long one runs")
        for _ in range(20):
            async with service.http.get(f"http://{service.address}/ping") as response:
                assert response.status == 200
            async with asked(service, format="pcm") as response:
                assert await response.read() == to_pcm(expected_samples(TEXT))
        assert not long.done(), "all of them came before it"
    finally:
        HeldEncoder.let_go.set()
    assert len(decoded("mp3", await long)) >= 120 * 24_000


async def test_a092_32_callers_at_once_get_every_chunk_of_their_own(service: Running) -> None:
    async def call(number: int) -> None:
        text = f"Caller number {number} says a sentence of some length, and another one. " * 2
        transport = "sse" if number % 2 else "binary"
        async with asked(service, text, format="flac", transport=transport) as response:
            if number % 2:
                *audio, end = await events(response)
                body = audio_of(audio)
                assert end["samples"] == len(expected_samples(text))
            else:
                body = await response.read()
        pcm = np.rint(decoded("flac", body) * 32768).astype("<i2").tobytes()
        assert pcm == to_pcm(expected_samples(text)), number

    await asyncio.gather(*(call(number) for number in range(32)))


async def test_a094_a_stream_of_samples_holds_nothing_else(service: Running) -> None:
    """No trailer, no header, no tag: the last 5 ms are the tone's, like all others."""
    for text in ("One.", "Another sentence.", TEXT):
        async with asked(service, text, format="pcm") as response:
            pcm = await response.read()
        assert pcm == to_pcm(expected_samples(text))
        assert int(np.abs(np.diff(np.frombuffer(pcm[-240:], "<i2").astype(int))).max()) < 3_000
