"""Many sessions on one device: who is served first, who is refused, and nobody hears another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from firstword.session_protocol import Cancelled, Error, SynthesisComplete
from services.inference.audio import to_pcm
from tests.doubles.inference_client import Make, Running, tone_services
from tests.doubles.tone_synthesizer import ToneOptions, expected_samples
from tests.support import eventually


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Starts a service: `make(ToneOptions(…), max_wait_s=…)`."""
    async with tone_services() as build:
        yield build


def waiting(service: Running) -> int:
    return service.speaker._workers._scheduler.waiting


def waits_more(service: Running, before: int) -> bool:
    return waiting(service) > before


async def test_new_turns_go_first_then_who_has_least_audio_ahead(make: Make) -> None:
    service, engine = await make(ToneOptions(hang=True))

    async def speak(id: str, **fields: Any) -> None:
        async with service.connect() as client:
            spoken = await client.say(id, f"This is {id}.", **fields)
            assert isinstance(spoken.end, SynthesisComplete)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(speak("the one that runs"))
        await eventually(engine.running.is_set, "the engine works")
        asked: dict[str, dict[str, Any]] = {
            "far ahead": {"deadline_ms": 25_000},
            "a little ahead": {"deadline_ms": 15_000},
            "a new turn": {"deadline_ms": 0, "first": True},
            "in silence": {"deadline_ms": 0},
        }
        for id, fields in asked.items():
            before = waiting(service)
            tasks.create_task(speak(id, **fields))
            await eventually(partial(waits_more, service, before), f"{id} waits")
        engine.release()
    order = ["the one that runs", "in silence", "a new turn", "a little ahead", "far ahead"]
    assert engine.made[1:] == [f"This is {id}." for id in order]


async def test_a_cancelled_request_that_waits_is_gone_at_once(make: Make) -> None:
    never = 3600.0  # or a request that waits would end when the engine counts as stuck
    service, engine = await make(ToneOptions(hang=True), hang_s=never)
    async with service.connect() as busy, service.connect() as client:
        await busy.ask("1", "This one keeps the engine.")
        await eventually(engine.running.is_set, "the engine works")
        await client.ask("2", "This one waits.")
        await eventually(lambda: waiting(service) == 1, "the second waits")
        await client.ws.send_str('{"type": "cancel", "id": "2"}')
        assert await client.control() == Cancelled("2", 0), "although the engine has not moved"
        assert waiting(service) == 0


async def test_busy_says_when_to_come_back(make: Make) -> None:
    service, engine = await make(ToneOptions(latency_s=60), max_waiting=1)
    async with service.connect() as busy, service.connect() as client:
        await busy.ask("1", "This one keeps the engine.")
        await eventually(engine.running.is_set, "the engine works")
        refused = (await client.say("2", "This one is too much.")).end
        assert isinstance(refused, Error) and refused.retryable
        assert (refused.code, refused.retry_after_ms) == ("busy", 50)
        url = f"http://{service.address}/invocations"
        async with service.http.post(url, json={"text": "So is this."}) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert (await response.json())["error"]["retry_after_ms"] == 50


async def test_32_sessions_hear_their_own_texts_only(make: Make) -> None:
    options = ToneOptions(chars_per_piece=9, ms_per_char=5)
    service, _ = await make(options, workers=3, max_wait_s=60.0)  # nobody is refused

    async def converse(number: int) -> None:
        async with service.connect() as client:
            for turn in range(4):
                text = f"Caller {number} says {turn * 31 + number} things in turn {turn}."
                voice = ("af_heart", "am_adam", "bf_emma")[number % 3]
                spoken = await client.say(f"{turn}", text, voice=voice, first=turn == 0)
                assert spoken.pcm == to_pcm(expected_samples(text, voice, options=options))

    async with asyncio.TaskGroup() as callers:
        for number in range(32):
            callers.create_task(converse(number))
