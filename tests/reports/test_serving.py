"""Reports about containers that serve speech: under load, while they load, and when they hang."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from firstword.session_protocol import Error, Pong, SynthesisComplete
from services.inference.audio import to_pcm
from services.inference.settings import InferenceSettings
from services.inference.speaker import Speaker
from tests.doubles.inference_client import Client, Running, running
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer, expected_samples
from tests.support import eventually


def busy_engine() -> ToneSynthesizer:
    return ToneSynthesizer(ToneOptions(latency_s=60))


async def test_a117_messages_are_answered_while_the_engine_works_for_three_sessions() -> None:
    engine = busy_engine()
    async with (
        running(lambda: engine, InferenceSettings()) as service,
        service.connect() as one,
        service.connect() as two,
        service.connect() as three,
    ):
        clients = (one, two, three)
        for client in clients:
            await client.ask("1", "A long sentence.")
        await eventually(engine.running.is_set, "the engine works")
        for client in clients:
            await client.ws.send_str('{"type": "ping"}')
            assert await client.control() == Pong()


async def test_a118_twice_as_many_clients_as_it_can_serve_are_told_and_all_speak_in_the_end() -> (
    None
):
    settings = InferenceSettings(max_waiting=10)
    async with running(lambda: ToneSynthesizer(ToneOptions(latency_s=0.02)), settings) as service:
        refusals = await asyncio.gather(*(_until_spoken(service, n) for n in range(20)))
    assert any(refusals), "somebody had to come back"


async def _until_spoken(service: Running, number: int) -> int:
    """Ask on one connection until it is spoken; how often it was refused."""
    text, refused = f"Caller {number}.", 0
    async with service.connect() as client:
        while True:
            spoken = await client.say(f"{refused}", text)
            if isinstance(spoken.end, SynthesisComplete):
                assert spoken.pcm == to_pcm(expected_samples(text))
                return refused
            assert isinstance(spoken.end, Error) and spoken.end.retry_after_ms is not None
            assert (spoken.end.code, spoken.end.retryable) == ("busy", True)
            refused += 1
            await asyncio.sleep(spoken.end.retry_after_ms / 1000)


async def test_a147_a164_it_is_well_only_when_it_has_spoken() -> None:
    engine = ToneSynthesizer()
    speaker = Speaker(lambda: engine, InferenceSettings())
    assert speaker.unwell() == "the engine is loading" and not engine.made
    await speaker.start()
    assert speaker.unwell() is None and len(engine.made) == 1
    speaker.close()


async def test_a146_a119_work_that_hangs_is_told_of_and_its_sessions_live() -> None:
    engine = ToneSynthesizer(ToneOptions(hang=True))
    async with (
        running(lambda: engine, InferenceSettings(hang_s=0.5)) as service,
        service.connect() as client,
    ):
        stuck = (await client.say("1", "Hang.")).end
        assert isinstance(stuck, Error) and stuck.code == "synthesis_stuck"
        assert (await _status(service)) == 503
        await client.ws.send_str('{"type": "ping"}')
        assert await client.control() == Pong(), "the peer is well although the work is not"
        engine.release()
        await eventually(_is_well(service), "well again")
        await _speaks(client)


@pytest.mark.parametrize(
    "wanted", [{}, {"stream": False}, {"stream": False, "format": "mp3", "transport": "sse"}]
)
async def test_a040_an_invocation_whose_caller_has_gone_is_stopped(wanted: dict[str, Any]) -> None:
    """Also one of which nothing would be written before its end."""
    engine = busy_engine()
    async with running(lambda: engine, InferenceSettings()) as service:
        body = {"text": "A long sentence.", **wanted}
        url = f"http://{service.address}/invocations"
        asking = asyncio.ensure_future(service.http.post(url, json=body))
        await eventually(engine.running.is_set, "the engine works")
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        await eventually(lambda: not service.speaker.busy, "the engine is stopped")


async def _status(service: Running) -> int:
    async with service.http.get(f"http://{service.address}/ping") as response:
        return response.status


def _is_well(service: Running) -> Callable[[], bool]:
    return lambda: service.service.unwell() is None


async def _speaks(client: Client) -> None:
    assert (await client.say("2", "Go on.")).pcm == to_pcm(expected_samples("Go on."))
