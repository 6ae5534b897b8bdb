"""The inference service over real sockets, speaking tones."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
import wave
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from firstword.session_protocol import (
    Cancelled,
    Closing,
    Error,
    Pong,
    SynthesisComplete,
    SynthesisStart,
)
from services.inference.audio import to_pcm
from services.inference.settings import InferenceSettings
from services.inference.synthesizer import Prepared, Utterance
from tests.doubles.inference_client import PATH, Client, Make, Running, running, tone_services
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer, expected_samples
from tests.support import eventually

LONG = "A long text of several pieces, " * 20


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Starts a service: `make(ToneOptions(…), drain_s=…)`."""
    async with tone_services() as build:
        yield build


@pytest.fixture
async def service(make: Make) -> Running:
    return (await make())[0]


def tone_pcm(text: str, **fields: Any) -> bytes:
    return to_pcm(expected_samples(text, **fields))


async def speaks(client: Client, text: str = "And the next sentence speaks.") -> None:
    spoken = await client.say("next", text)
    assert spoken.start is not None and spoken.start.id == "next"
    assert spoken.pcm == tone_pcm(text)
    assert isinstance(spoken.end, SynthesisComplete)
    assert spoken.end.samples == len(spoken.pcm) // 2


async def test_its_voices_are_listed(service: Running) -> None:
    async with service.http.get(f"http://{service.address}/voices") as answer:
        listed = await answer.json()
    assert listed["default"] in [voice["id"] for voice in listed["voices"]]
    assert {"id": "af_heart", "language": "en-us"} in listed["voices"]


async def test_start_audio_complete(service: Running) -> None:
    async with service.connect() as client:
        spoken = await client.say("1", LONG)
        assert spoken.pcm == tone_pcm(LONG)
        assert len(spoken.frames[0]) <= 4_800
        assert max(map(len, spoken.frames)) <= 15_360
        end = spoken.end
        assert isinstance(end, SynthesisComplete)
        assert end.duration_s == pytest.approx(len(spoken.pcm) / 48_000)
        assert [LONG[w[0] : w[1]] for w in end.words][:3] == ["A", "long", "text"]
        await speaks(client)


async def test_text_and_binary_frames_are_both_read(service: Running) -> None:
    async with service.connect() as client:
        await client.ws.send_bytes(json.dumps({"text": "As bytes."}).encode())
        assert (await client.spoken()).pcm == tone_pcm("As bytes.")
        await client.ws.send_str('{"text": "As text.", "request_id": "r"}')
        spoken = await client.spoken()
        assert spoken.pcm == tone_pcm("As text.")
        assert isinstance(spoken.end, SynthesisComplete) and spoken.end.id == "r"


@pytest.mark.parametrize(
    ("asked", "told"),
    [({"lang": "en-gb"}, "bf_emma"), ({}, "af_heart"), ({"voice": "am_adam"}, None)],
)
async def test_who_speaks_is_told_where_nobody_was_named(
    service: Running, asked: dict[str, str], told: str | None
) -> None:
    async with service.connect() as client:
        await client.ws.send_str(json.dumps({"text": "Hello.", **asked}))
        start = await client.control()
        assert isinstance(start, SynthesisStart) and start.voice == told


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", "bad_json"),
        ("[]", "bad_message"),
        ("{}", "bad_message"),
        (b"\xff\xfe\xfd", "bad_utf8"),
        (b'{"text": "\xc3"}', "bad_utf8"),
        (b"\x00", "bad_json"),
        ('{"text": ""}', "empty_text"),
        ('{"text": "  "}', "empty_text"),
        (json.dumps({"text": "x" * 100_000}), "text_too_long"),
        (json.dumps({"text": "x" * 2_000_000}), "frame_too_large"),
        ('{"text": "Hi", "voice": "nobody"}', "unknown_voice"),
        ('{"text": "Hi", "lang": "klingon"}', "unsupported_lang"),
        ('{"text": "Hi", "voice": "af_heart", "lang": "en-gb"}', "lang_mismatch"),
        ('{"text": "Hi", "speed": NaN}', "bad_json"),
        ('{"text": "Hi", "speed": 5}', "bad_field"),
        ('{"text": "Hi", "sample_rate": 1}', "bad_field"),
        ('{"type": "sing"}', "unknown_type"),
    ],
)
async def test_after_a_bad_frame_the_next_sentence_speaks(
    service: Running, frame: str | bytes, code: str
) -> None:
    async with service.connect() as client:
        if isinstance(frame, str):
            await client.ws.send_str(frame)
        else:
            await client.ws.send_bytes(frame)
        error = await client.control()
        assert isinstance(error, Error) and error.code == code and not error.retryable
        await speaks(client)


async def test_bad_utf8_in_a_text_frame_is_answered_too(service: Running) -> None:
    async with service.connect() as client:
        await client.ws.send_frame(b'{"text": "\xff"}', aiohttp.WSMsgType.TEXT)
        error = await client.control()
        assert isinstance(error, Error) and error.code == "bad_utf8"
        await speaks(client)


async def test_text_without_a_letter_is_complete_without_audio(service: Running) -> None:
    async with service.connect() as client:
        for text in ("😀🎉", "...", "!", "\x00"):
            spoken = await client.say("1", text)
            assert spoken.start is not None and spoken.frames == []
            assert isinstance(spoken.end, SynthesisComplete) and spoken.end.samples == 0
        await speaks(client)


async def test_pings_are_answered_while_a_synthesis_runs(make: Make) -> None:
    service, engine = await make(ToneOptions(latency_s=60))
    async with service.connect() as client:
        await client.ask("1", "Hi.")
        await eventually(engine.running.is_set, "the engine works")
        await client.ws.send_str('{"type": "ping"}')
        assert await client.control() == Pong()
        await client.ws.send_frame(b"are you there", aiohttp.WSMsgType.PING)
        await client.ws.send_str('{"type": "cancel", "id": "1"}')
        assert await client.control() == Cancelled("1", 0)


async def test_cancel_stops_the_audio_at_once(make: Make) -> None:
    service, engine = await make(ToneOptions(latency_s=0.2, chars_per_piece=10))
    async with service.connect() as client:
        await client.ask("1", LONG)
        assert isinstance(await client.control(), SynthesisStart)
        await client.ws.send_str('{"type": "cancel", "id": "1"}')
        pcm = b""
        while isinstance(message := await client.message(), bytes):
            pcm += message
        assert message == Cancelled("1", len(pcm) // 2)
        assert pcm == tone_pcm(LONG, options=engine.options)[: len(pcm)]
        assert len(pcm) < len(tone_pcm(LONG)) / 2
        await client.ask("2", "Next.")
        assert (await client.spoken()).pcm == tone_pcm("Next.", options=engine.options)


async def test_requests_queue_on_a_connection_and_are_bounded(make: Make) -> None:
    service, engine = await make(ToneOptions(hang=True), max_queued=1)
    async with service.connect() as client:
        for id in ("1", "2", "3"):
            await client.ask(id, f"Number {id}.")
        busy = await client.control()
        assert isinstance(busy, Error) and (busy.id, busy.code, busy.retryable) == (
            "3",
            "busy",
            True,
        )
        engine.release()
        for id in ("1", "2"):
            assert (await client.spoken()).pcm == tone_pcm(f"Number {id}.")


async def test_many_connections_never_hear_each_other(make: Make) -> None:
    service, _ = await make(max_wait_s=60.0)  # nobody is refused on a busy machine

    async def converse(number: int) -> None:
        async with service.connect() as client:
            for turn in range(3):
                text = f"Caller {number} speaks sentence {turn}."
                spoken = await client.say(f"{turn}", text, voice="am_adam")
                assert spoken.pcm == tone_pcm(text, voice="am_adam")

    await asyncio.gather(*(converse(number) for number in range(20)))


async def test_resumed_audio_is_exactly_the_rest(service: Running) -> None:
    async with service.connect() as client:
        whole = await client.say("1", LONG)
        assert whole.start is not None
        rest = await client.say("2", LONG, skip_samples=30_001, plan=whole.start.plan)
        assert rest.pcm == whole.pcm[60_002:]
        assert rest.start is not None and rest.start.plan == whole.start.plan
        again = await client.say("3", LONG, skip_samples=30_001, plan="unknown")
        assert again.pcm == whole.pcm


async def test_a_client_that_disconnects_stops_its_synthesis(make: Make) -> None:
    service, engine = await make(ToneOptions(latency_s=60))
    async with service.connect() as client:
        await client.ask("1", "Hi.")
        await eventually(engine.running.is_set, "the engine works")
    await eventually(lambda: not service.speaker.busy, "the engine is stopped")


async def test_a_client_that_reads_nothing_is_dropped(make: Make) -> None:
    options = ToneOptions(ms_per_char=2_000)
    service, _ = await make(options, send_timeout_s=0.2)
    async with service.connect() as client:
        client.ws._response.connection.transport.pause_reading()  # type: ignore[union-attr]
        await client.ask("1", LONG)
        await eventually(
            lambda: not service.service._connections, "the connection is gone", timeout=15
        )


async def test_close_ends_the_connection_after_what_is_queued(service: Running) -> None:
    async with service.connect() as client:
        await client.ask("1", "The last word.")
        await client.ws.send_str('{"type": "close"}')
        assert (await client.spoken()).pcm == tone_pcm("The last word.")
        assert await client.closed() == 1000


async def test_drain_finishes_the_synthesis_then_says_closing(make: Make) -> None:
    service, engine = await make(ToneOptions(hang=True))
    async with service.connect() as client, service.connect() as idle:
        await client.ask("1", "Hold on.")
        await client.ask("2", "Never mind.")
        await eventually(engine.running.is_set, "the engine works")
        draining = asyncio.create_task(service.service.drain())
        refused = await client.control()
        assert isinstance(refused, Error) and (refused.id, refused.code) == ("2", "draining")
        engine.release()
        assert (await client.spoken()).pcm == tone_pcm("Hold on.")
        assert await client.control() == Closing("drain")
        assert await client.closed() == 1012
        assert await idle.control() == Closing("drain")
        assert await idle.closed() == 1012
        await draining
    async with service.http.get(f"http://{service.address}/ping") as response:
        assert response.status == 503
        assert (await response.json())["reason"] == "the service is draining"
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await service.http.ws_connect(f"http://{service.address}{PATH}")
    assert caught.value.status == 503
    async with service.http.post(
        f"http://{service.address}/invocations", json={"text": "Hi."}
    ) as response:
        assert response.status == 503


async def test_what_is_not_done_when_the_drain_ends_is_stopped(make: Make) -> None:
    service, engine = await make(ToneOptions(latency_s=60), drain_s=0.1)
    url = f"http://{service.address}/invocations"
    async with service.connect() as client:
        await client.ask("1", "Too long.")
        await eventually(engine.running.is_set, "the engine works")
        posted = asyncio.create_task(service.http.post(url, json={"text": "Too long as well."}))
        await eventually(lambda: service.service._invocations._stops, "the invocation runs")
        draining = asyncio.create_task(service.service.drain())
        stopped = await client.control()
        assert isinstance(stopped, Error) and (stopped.code, stopped.retryable) == (
            "draining",
            True,
        )
        assert await client.closed() == 1012
        await draining
    async with await posted as response:
        assert response.status == 503


async def test_ping_is_honest(make: Make) -> None:
    service, engine = await make(ToneOptions(hang=True), hang_s=0.1)
    url = f"http://{service.address}/ping"
    for method in ("GET", "POST"):
        async with service.http.request(method, url) as response:
            assert (response.status, await response.json()) == (200, {"status": "ok"})
    async with service.connect() as client:
        stuck = (await client.say("1", "Hang.")).end
        assert isinstance(stuck, Error) and (stuck.code, stuck.retryable) == (
            "synthesis_stuck",
            True,
        )
    async with service.http.get(url) as response:
        assert response.status == 503
        assert "hangs" in (await response.json())["reason"]
    readyz = f"http://{service.address}/readyz"
    async with service.http.get(readyz) as response:
        assert response.status == 503
        assert "hangs" in (await response.json())["reasons"]["engine"]
    engine.release()
    await eventually(lambda: service.service.unwell() is None, "well again")
    for each in (url, readyz):
        async with service.http.get(each) as response:
            assert response.status == 200


async def test_it_is_unwell_by_the_deadline_although_nobody_waits_any_more(make: Make) -> None:
    """Its caller went long before: what SageMaker asks tells of it all the same."""
    service, engine = await make(ToneOptions(hang=True), hang_s=0.3)
    async with service.connect() as client:
        await client.ask("1", "Hang.")
        await eventually(engine.running.is_set, "the engine works")

    async def unwell() -> bool:
        async with service.http.get(f"http://{service.address}/ping") as response:
            return response.status == 503

    await eventually(unwell, "it is unwell")


class BrokenSynthesizer(ToneSynthesizer):
    """Raises what no engine should, with text in it."""

    def prepare(self, utterance: Utterance) -> Prepared:
        if "secret" in utterance.text:
            raise RuntimeError(utterance.text)
        return super().prepare(utterance)


async def test_an_unknown_error_is_told_without_the_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with running(BrokenSynthesizer, InferenceSettings()) as service:
        async with service.connect() as client:
            error = (await client.say("1", "A secret.")).end
            assert isinstance(error, Error) and (error.code, error.retryable) == (
                "engine_failed",
                True,
            )
            await speaks(client)
        url = f"http://{service.address}/invocations"
        async with service.http.post(url, json={"text": "A secret."}) as response:
            assert response.status == 503
            assert (await response.json())["error"]["code"] == "engine_failed"
    logged = capsys.readouterr().out
    assert "RuntimeError" in logged and "secret" not in logged


class TestInvocations:
    async def post(self, service: Running, body: Any) -> tuple[int, bytes, str]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://{service.address}/invocations"
        async with service.http.post(url, data=io.BytesIO(data)) as response:
            return response.status, await response.read(), response.content_type

    async def test_a_wav_whole(self, service: Running) -> None:
        status, body, kind = await self.post(service, {"text": LONG, "stream": False})
        assert (status, kind) == (200, "audio/wav")
        with wave.open(io.BytesIO(body)) as reader:
            assert reader.readframes(10**9) == tone_pcm(LONG)

    async def test_a_wav_streamed(self, service: Running) -> None:
        status, body, _ = await self.post(service, {"text": LONG})
        assert status == 200 and body[:4] == b"RIFF" and body[44:] == tone_pcm(LONG)

    async def test_pcm(self, service: Running) -> None:
        for stream in (True, False):
            request = {"text": "Hi.", "stream": stream, "format": "pcm", "sample_rate": 24000}
            status, body, kind = await self.post(service, request)
            assert (status, kind, body) == (200, "audio/pcm", tone_pcm("Hi."))

    async def test_null_is_as_if_not_given(self, service: Running) -> None:
        nothing = dict.fromkeys(("voice", "lang", "stream", "format", "transport", "sample_rate"))
        status, body, kind = await self.post(service, {"text": "Hi.", **nothing})
        assert (status, kind, body[44:]) == (200, "audio/wav", tone_pcm("Hi."))

    async def test_nothing_to_say_is_an_empty_wav(self, service: Running) -> None:
        status, body, _ = await self.post(service, {"text": "...", "stream": False})
        assert (status, len(body)) == (200, 44)

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            (b"{", 400, "bad_json"),
            (b"\xff", 400, "bad_utf8"),
            ({"type": "ping"}, 400, "bad_message"),
            ({"text": " "}, 400, "empty_text"),
            ({"text": "x" * 5001}, 413, "text_too_long"),
            ({"text": "x" * 2_000_000}, 413, "frame_too_large"),
            (b"x" * 5_000_000, 413, "frame_too_large"),
            ({"text": "Hi", "format": "tape"}, 400, "unsupported_format"),
            ({"text": "Hi", "format": []}, 400, "unsupported_format"),
            ({"text": "Hi", "stream": "yes"}, 400, "bad_field"),
            ({"text": "Hi", "transport": "pigeon"}, 400, "unsupported_transport"),
            ({"text": "Hi", "voice": "nobody"}, 400, "unknown_voice"),
        ],
    )
    async def test_what_is_refused(
        self, service: Running, body: Any, status: int, code: str
    ) -> None:
        answered, content, kind = await self.post(service, body)
        error = json.loads(content)["error"]
        assert (answered, error["code"], kind) == (status, code, "application/json")
        assert error["message"]

    async def test_a_failure_before_the_first_byte_has_a_status(self, make: Make) -> None:
        service, _ = await make(ToneOptions(fail_times=1))
        assert (await self.post(service, {"text": "Hi."}))[0] == 503
        assert (await self.post(service, {"text": "Hi."}))[0] == 200

    async def test_a_failure_after_the_first_byte_breaks_the_body_off(self, make: Make) -> None:
        service, _ = await make(ToneOptions(latency_s=0.2, chars_per_piece=50))
        url = f"http://{service.address}/invocations"
        async with service.http.post(url, json={"text": "word " * 40}) as response:
            assert response.status == 200
            await response.content.readexactly(1000)
            service.service._invocations.stop_now()
            with pytest.raises(aiohttp.ClientError):
                await response.read()

    async def test_a_client_that_goes_away_stops_the_synthesis(self, make: Make) -> None:
        service, _ = await make(ToneOptions(latency_s=0.05, chars_per_piece=10))
        url = f"http://{service.address}/invocations"
        async with service.http.post(url, json={"text": LONG}) as response:
            await response.content.readexactly(1000)
            response.close()
        await eventually(lambda: not service.service._invocations._stops, "the synthesis is over")


async def test_metrics_and_health_are_served_without_text(service: Running) -> None:
    async with service.connect() as client:
        await client.say("1", "A very secret sentence.")
        await client.ws.send_str('{"text": ""}')
        await client.control()
    base = f"http://{service.address}"
    async with service.http.get(f"{base}/metrics") as response:
        text = await response.text()
    assert "firstword_synthesis_seconds_count" in text
    assert 'firstword_synthesis_errors_total{code="empty_text"}' in text
    assert "secret" not in text
    async with service.http.get(f"{base}/readyz") as response:
        assert await response.json() == {"ready": True, "reasons": {}}


async def test_the_process_drains_on_sigterm() -> None:
    environ = {
        **os.environ,
        "FIRSTWORD_INFERENCE_PORT": "0",
        "FIRSTWORD_TONE_LATENCY_MS": "300",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.doubles.tone_inference", "serve"),
        env=environ,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        log: list[dict[str, Any]] = []
        while not log or log[-1]["event"] != "ready":
            log.append(json.loads(await asyncio.wait_for(process.stdout.readline(), 30)))
        address = log[-1]["http"]
        assert not address.endswith(":0")
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"http://{address}{PATH}") as ws,
        ):
            client = Client(ws)
            await client.ask("1", "The last secret.")
            await client.ws.send_str('{"type": "ping"}')
            assert await client.control() == Pong()
            process.send_signal(signal.SIGTERM)
            assert (await client.spoken()).pcm == tone_pcm("The last secret.")
            assert await client.control() == Closing("drain")
            assert await client.closed() == 1012
        rest = await asyncio.wait_for(process.stdout.read(), 20)
        assert await process.wait() == 0
        assert b"secret" not in rest
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_settings_that_are_wrong_end_the_process_with_all_reasons() -> None:
    environ = {
        **os.environ,
        "FIRSTWORD_INFERENCE_PORT": "many",
        "FIRSTWORD_INFERENCE_WORKERS": "0",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.doubles.tone_inference"),
        env=environ,
        stderr=asyncio.subprocess.PIPE,
    )
    _, stderr = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert b"FIRSTWORD_INFERENCE_PORT" in stderr and b"FIRSTWORD_INFERENCE_WORKERS" in stderr
