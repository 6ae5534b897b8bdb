"""A sentence's trace goes to the container that speaks it, where spans are made; nowhere else."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from opentelemetry.sdk.trace import TracerProvider

from firstword import messages as m
from firstword import tracing
from firstword.child import ChildProcess
from firstword.streams import Streams
from firstword.supervisor import ready_address
from tests.doubles.gateway_rig import SessionHand, gateway, spoken
from tests.doubles.openai_speech import OpenAISpeech, SpeechPeer
from tests.doubles.otlp_collector import collector
from tests.doubles.sagemaker import MISSING, emulated
from tests.reports.scripted import ScriptedContainer
from tests.support import eventually

pytestmark = pytest.mark.streams

TEXTS = ("The first of them.", "And the second one.")
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"
KINDS = [
    "websocket",
    "openai",
    pytest.param("sagemaker", marks=pytest.mark.skipif(bool(MISSING), reason=MISSING or "-")),
]


@pytest.fixture(params=[True, False], ids=["on", "off"])
def on(request: pytest.FixtureRequest) -> Iterator[bool]:
    tracing.use(TracerProvider() if request.param else None)
    yield request.param
    tracing.use(None)


@pytest.fixture
async def hand(redis_url: str) -> AsyncIterator[SessionHand]:
    streams = Streams(redis_url)
    yield SessionHand(streams)
    await streams.close()


@asynccontextmanager
async def backend(kind: str) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Its URL, and the requests that it gets."""
    asked: list[dict[str, Any]] = []

    async def speak(peer: SpeechPeer) -> None:
        asked.append(peer.body)
        await peer.send(spoken(peer.body["input"]))
        await peer.finish()

    if kind == "openai":
        async with OpenAISpeech(speak) as server:
            yield server.url, asked
        return
    async with ScriptedContainer() as container:
        if kind == "websocket":
            yield container.url, asked
        else:
            async with emulated(container.url) as made:
                yield made.url, asked
        asked += container.requests


@pytest.mark.parametrize("kind", KINDS)
async def test_a_container_is_told_the_trace_while_spans_are_made(
    redis_url: str, hand: SessionHand, kind: str, on: bool
) -> None:
    async with backend(kind) as (url, asked), gateway(redis_url, url):
        traced = [
            replace(hand.segment("t", n, text, first=n == 1), traceparent=TRACEPARENT)
            for n, text in enumerate(TEXTS, start=1)
        ]
        await hand.put(hand.open(), *traced, m.TurnEnd(turn="t", segments=2, opened_at="1-0"))
        await hand.put(hand.segment("u", 3, TEXTS[0], first=True))

        async def over() -> bool:
            return set((await hand.hear()).ends) == {1, 2, 3}

        await eventually(over, "all of it is spoken")
        ear = await hand.hear()
    assert ear.segments == {n: spoken(text) for n, text in enumerate((*TEXTS, TEXTS[0]), start=1)}
    told = [request.get("traceparent") for request in asked]
    if not on or kind == "openai":
        assert told == [None] * 3
        return
    assert told[:2] == [TRACEPARENT] * 2
    assert told[2] is not None and TRACE_ID not in told[2], "a turn without has a trace of its own"


async def test_what_is_begun_on_a_hint_belongs_to_its_turn(
    redis_url: str, hand: SessionHand, on: bool
) -> None:
    segment = replace(hand.segment("t", 1, TEXTS[0], first=True), traceparent=TRACEPARENT)
    hint = m.Tentative(
        turn="t",
        n=1,
        text=TEXTS[0],
        voice=segment.voice,
        speed=segment.speed,
        lang=segment.lang,
        opened_at=segment.opened_at,
        traceparent=TRACEPARENT,
    )
    async with ScriptedContainer() as container, gateway(redis_url, container.url):
        await hand.put(hand.open())
        await eventually(lambda: container.peers, "there is a connection")

        async def begun() -> bool:
            await hand.put(hint)  # one that comes too early for the connection is let go
            return bool(container.requests)

        await eventually(begun, "it is begun before it is certain")
        await hand.put(segment, m.TurnEnd(turn="t", segments=1, opened_at="1-0"))

        async def over() -> bool:
            return "t" in (await hand.hear()).turn_ends

        await eventually(over, "it is spoken")
        [asked] = container.requests
        assert asked.get("traceparent") == (TRACEPARENT if on else None)


async def test_the_inference_process_exports_its_part(tmp_path: Path) -> None:
    async with collector() as (url, came):
        environ = {
            **os.environ,
            "FIRSTWORD_INFERENCE_PORT": "0",
            tracing.ENDPOINT: url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        log = tmp_path / "inference.log"
        with log.open("wb") as out:
            command = [sys.executable, "-m", "tests.doubles.tone_inference", "serve"]
            process = await asyncio.to_thread(
                ChildProcess, command, stdout=out, stderr=out, env=environ
            )
        try:

            def address() -> str:
                found = map(ready_address, log.read_bytes().splitlines())
                return next(filter(None, found), "")

            where = await eventually(address, "the container is ready", 30)
            asked = {"id": "3.1", "text": TEXTS[0], "traceparent": TRACEPARENT}
            async with (
                aiohttp.ClientSession() as client,
                client.post(f"http://{where}/invocations", json=asked) as reply,
            ):
                assert reply.status == 200
                await reply.read()
            await eventually(lambda: b"firstword.synthesis" in b"".join(came), "its span came")
        finally:
            await asyncio.to_thread(process.stop, 10)
    told = b"".join(came)
    assert bytes.fromhex(TRACE_ID) in told and b"firstword-inference" in told
    assert TEXTS[0].encode() not in told
