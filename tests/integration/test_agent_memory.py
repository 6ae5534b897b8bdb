"""What a model is told at the agent's doors: what was said before, and what was heard of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest

from services.agent.source import Ask
from tests.doubles.path import PathDouble
from tests.e2e.stack import Stack
from tests.integration.test_agent import invoke, serving, written
from tests.integration.test_agent_websocket import events, until
from tests.support import eventually

REPLY = "The rain had stopped. Nobody noticed. Then the sun came out. It was warm again."


class Model:
    """Answers everything with the same words; to `wait` it says nothing until it is let, to `pause`
    two sentences."""

    def __init__(self) -> None:
        self.asked: list[Ask] = []
        self.closed: list[str] = []
        self.go = asyncio.Event()

    async def stream(self, ask: Ask) -> AsyncGenerator[str, None]:
        self.asked.append(ask)
        try:
            if ask.text == "wait":
                await self.go.wait()
            for word in REPLY.split(" "):
                if ask.text == "pause" and word == "Then":
                    await self.go.wait()
                yield f"{word} "
        finally:
            self.closed.append(ask.turn)

    def told(self) -> list[tuple[str, str]]:
        """What it knew when it was asked last."""
        return [(message.role, message.text) for message in self.asked[-1].messages]


@pytest.fixture
def model() -> Model:
    return Model()


async def test_a_session_s_prompts_know_what_was_said(redis_url: str, model: Model) -> None:
    async with PathDouble(redis_url), serving(redis_url, lambda: model) as agent:
        await invoke(agent, text="Hello.", session="kept", tokens_per_second=0)
        assert written(await invoke(agent, prompt="one?", session="kept")) == f"{REPLY} "
        await invoke(agent, prompt="two?", session="kept")
        assert model.told()[1:] == [
            ("assistant", "Hello."),
            ("user", "one?"),
            ("assistant", f"{REPLY} "),
            ("user", "two?"),
        ]
        for _ in range(2):
            await invoke(agent, prompt="alone?")
            assert model.told() == [("user", "alone?")]


async def test_prompts_that_are_asked_at_once_are_answered_in_order(
    redis_url: str, model: Model
) -> None:
    async with (
        PathDouble(redis_url),
        serving(redis_url, lambda: model) as agent,
        agent.ws_connect("/ws") as socket,
    ):
        for turn, prompt in (("t1", "wait"), ("t2", "two?"), ("t3", "three?")):
            await socket.send_json({"type": "say", "turn": turn, "prompt": prompt})
        await eventually(lambda: model.asked, "the first is asked")
        model.go.set()
        for _ in range(3):
            await until(socket, "turn_done")
    assert [ask.turn for ask in model.asked] == ["t1", "t2", "t3"]
    assert [text for role, text in model.told() if role == "user"] == ["wait", "two?", "three?"]


async def test_a_cancel_stops_a_model_that_has_not_said_a_word(
    redis_url: str, model: Model
) -> None:
    async with (
        PathDouble(redis_url),
        serving(redis_url, lambda: model) as agent,
        agent.ws_connect("/ws") as socket,
    ):
        await socket.send_json({"type": "say", "turn": "t1", "prompt": "wait"})
        await eventually(lambda: model.asked, "the model is asked")
        await socket.send_json({"type": "cancel", "turn": "t1"})
        await eventually(lambda: model.closed == ["t1"], "the model is stopped")
        await socket.send_json({"type": "say", "turn": "t2", "prompt": "two?"})
        await until(socket, "turn_done")
    assert model.told() == [("user", "wait\n\ntwo?")]


async def test_who_hangs_up_stops_the_model(redis_url: str, model: Model) -> None:
    async with PathDouble(redis_url), serving(redis_url, lambda: model) as agent:
        async with agent.post("/invocations", json={"prompt": "wait"}) as response:
            assert b"agent_start" in await response.content.readline()
            await eventually(lambda: model.asked, "the model is asked")
        await eventually(lambda: model.closed, "the model is stopped")


@pytest.mark.parametrize("tells", [True, False], ids=["played", "sent"])
async def test_after_a_barge_in_the_model_is_told_what_was_heard(
    redis_url: str, model: Model, tells: bool
) -> None:
    async with (
        Stack(redis_url),
        serving(redis_url, lambda: model) as agent,
        agent.ws_connect("/ws") as socket,
    ):
        heard = await barge_in(socket, tells=tells)
        await socket.send_json({"type": "say", "turn": "t2", "prompt": "Why?"})
        await until(socket, "turn_done")
    said = dict(model.told()).get("assistant", "")
    assert said == heard
    assert 0 < len(said) < len(REPLY)
    assert model.told()[-1] == ("user", "Why?")


async def barge_in(socket: aiohttp.ClientWebSocketResponse, *, tells: bool) -> str:
    """Interrupt in the second sentence; returns what was heard of the reply."""
    await socket.send_json({"type": "say", "turn": "t1", "prompt": "pause"})
    frames = await until(socket, "segment_done")
    (first,) = events(frames, "segment_started")
    cancel: dict[str, Any] = {"type": "cancel", "turn": "t1"}
    if tells:
        (done,) = events(frames, "segment_done")
        cancel["played"] = {"turn": "t1", "n": done["n"], "samples": done["samples"]}
    await socket.send_json(cancel)
    frames = await until(socket, "turn_cancelled")
    (receipt,) = events(frames, "turn_cancelled")
    if tells:
        return str(receipt["heard"]["text"])
    ends_at = {event["n"]: event["end"] for event in [first, *events(frames, "segment_started")]}
    ends = [ends_at[event["n"]] for event in events(frames, "segment_done")]
    return f"{REPLY} "[: max([first["end"], *ends])]
