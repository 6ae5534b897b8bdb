"""Two hundred listeners at the agent's doors: none loses an event, none waits for the slow ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack

import aiohttp
import pytest

from firstword import codec, keys
from firstword import messages as m
from tests.doubles.deaf import deaf
from tests.e2e.stack import Stack
from tests.integration.test_agent import serving
from tests.integration.test_agent_sessions import cut_off
from tests.support import eventually

SESSIONS = [f"s{number}" for number in range(10)]
OF_EACH_DOOR = 10  # in each session
TEXT = "One sentence of several. Another that follows it. And a last one, which is a little longer."
FLOOD = "flood"
CHUNKS = 400

Heard = list[tuple[str, str]]
"""Types of events and their ids."""


async def _by_events(
    agent: aiohttp.ClientSession, session: str, ready: Callable[[], None]
) -> Heard:
    heard: Heard = []
    async with agent.get(f"/v1/sessions/{session}/events") as response:
        assert response.status == 200
        ready()
        async for line in response.content:
            if line.startswith(b"data: "):
                event = json.loads(line.removeprefix(b"data: "))
                heard.append((event["type"], event["id"]))
                if event["type"] == "turn_done":
                    break
    return heard


async def _by_websocket(
    agent: aiohttp.ClientSession, session: str, ready: Callable[[], None]
) -> Heard:
    heard: Heard = []
    async with agent.ws_connect(f"/ws?session={session}") as socket:
        await socket.receive()
        ready()
        at = ""
        async for frame in socket:
            if frame.type is aiohttp.WSMsgType.BINARY:
                heard.append(("audio_chunk", at))
                continue
            event = frame.json()
            if event["type"] == "at":
                at = event["id"]
            else:
                heard.append((event["type"], event["id"]))
            if event["type"] == "turn_done":
                break
    return heard


async def _flood(stack: Stack) -> None:
    """More than any buffer on the way holds."""
    chunks = [
        m.AudioChunk(turn="t", n=0, offset=8000 * n, data=bytes(16_000)) for n in range(CHUNKS)
    ]
    for message in [*chunks, m.TurnDone(turn="t", segments=1, samples=0, reason="complete")]:
        packed = codec.pack(message, FLOOD)
        await stack.firstword.streams.append(keys.audio(FLOOD), {"m": packed})


async def test_200_listeners_hear_all_and_the_slow_are_cut(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before a slow machine has filled what lies before a deaf listener, its system would end it.
    monkeypatch.setattr("services.agent.slow.LEAST_SILENCE_S", 600.0)
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        serving(stack.redis_url, stall_s=1.0) as agent,
        aiohttp.ClientSession(agent._base_url, connector=connector) as callers,
        AsyncExitStack() as slow,
    ):
        before = {door: await cut_off(agent, door) for door in ("events", "ws")}
        connected = 0

        def ready() -> None:
            nonlocal connected
            connected += 1

        for path, websocket in (
            (f"/v1/sessions/{FLOOD}/events", False),
            (f"/ws?session={FLOOD}", True),
        ):
            for _ in range(3):
                await slow.enter_async_context(
                    deaf(f"{agent._base_url}{path}", websocket=websocket)
                )
        listeners: dict[str, list[asyncio.Task[Heard]]] = {}
        async with asyncio.timeout(90), asyncio.TaskGroup() as tasks:
            for session in [*SESSIONS, FLOOD]:
                listeners[session] = [
                    tasks.create_task(listen(callers, session, ready))
                    for listen in (_by_events, _by_websocket)
                    for _ in range(1 if session == FLOOD else OF_EACH_DOOR)
                ]
            wanted = 2 * (OF_EACH_DOOR * len(SESSIONS) + 1)
            await eventually(lambda: connected == wanted, "all listen", timeout=30)
            tasks.create_task(_flood(stack))
            for session in SESSIONS:
                body = {"text": TEXT, "turn": "t", "seq": 0, "end": True}
                async with callers.post(f"/v1/sessions/{session}/text", json=body) as response:
                    assert response.status == 202
        for session, their in listeners.items():
            heard = [task.result() for task in their]
            assert all(one == heard[0] for one in heard), session
            ids = [entry for _, entry in heard[0]]
            assert len(set(ids)) == len(ids)
            kinds = [kind for kind, _ in heard[0]]
            if session == FLOOD:
                assert kinds == [*["audio_chunk"] * CHUNKS, "turn_done"]
            else:
                assert kinds.count("segment_started") == kinds.count("segment_done") == 3

        async def cut() -> bool:
            return all([await cut_off(agent, door) == before[door] + 3 for door in before])

        await eventually(cut, "all that took nothing are cut off, and nobody else")
