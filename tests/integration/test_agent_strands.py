"""Words from a Strands agent with a model of our own: no network, no AWS."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("strands", reason="the extra `strands` is not installed")

from strands import Agent

from firstword import messages as m
from services.agent.core import Say
from services.agent.memory import MemoryLimits, Message
from services.agent.source import Ask
from services.agent.strands import StrandsSource
from services.agent.talk import Talk
from tests.doubles.strands_model import SECRET, make

ROOMY = MemoryLimits(messages=40, characters=10_000)


def prompt(text: str) -> Say:
    return Say(text=text, mode="stream", tokens_per_second=0, is_prompt=True)


async def pieces_of(talk: Talk, turn: str, text: str) -> list[str]:
    return [piece async for piece in talk.write(turn, prompt(text), None)]


async def test_only_what_the_agent_says_is_spoken() -> None:
    pieces = await pieces_of(Talk("s", StrandsSource(make), ROOMY, 30), "t1", "one")
    assert "".join(pieces) == "I heard one as message 1. \n\nAnd that is all. "
    assert len(pieces) > 8
    assert SECRET not in "".join(pieces)


async def test_it_knows_what_was_said_and_heard() -> None:
    talk = Talk("s", StrandsSource(make), ROOMY, 30)
    await pieces_of(talk, "t1", "one")
    await pieces_of(talk, "t2", "two")
    heard = {"turn": "t2", "text": "I heard", "samples": 5}
    talk.memory.take(m.TurnCancelled(turn="t2", sent={}, already_done=False, heard=heard))
    assert "as message 5." in "".join(await pieces_of(talk, "t3", "three"))
    said = [message.text for message in talk.memory.messages("t3")]
    assert said == [
        "one",
        "I heard one as message 1. \n\nAnd that is all. ",
        "two",
        "I heard",
        "three",
    ]


async def test_prompts_of_one_session_wait_for_each_other() -> None:
    """An agent raises when it is asked twice at once."""
    made: list[Agent] = []

    def counted() -> Agent:
        made.append(make())
        return made[-1]

    talk = Talk("s", StrandsSource(counted), ROOMY, 30)
    answers = await asyncio.gather(*[pieces_of(talk, f"t{n}", f"p{n}") for n in range(5)])
    for n, pieces in enumerate(answers):
        assert "".join(pieces).startswith(f"I heard p{n} as message {2 * n + 1}.")
    assert len(made) == 1


async def test_who_stops_listening_can_ask_again_at_once() -> None:
    source = StrandsSource(make)
    talk = Talk("s", source, ROOMY, 30)
    hanging = talk.write("t1", prompt("hang"), None)
    assert await anext(hanging) == "Well. "
    waiting = asyncio.ensure_future(anext(hanging, None))
    await asyncio.sleep(0)
    talk.stop("t1")
    assert await waiting is None
    assert "I heard two" in "".join(await pieces_of(talk, "t2", "two"))


async def test_an_error_of_the_model_comes_after_what_was_said() -> None:
    source = StrandsSource(make)
    ask = Ask(text="fail", session="s", turn="t", messages=(Message("user", "fail"),))
    said: list[str] = []
    with pytest.raises(Exception, match=SECRET):  # for whoever reads it to keep to itself
        async for piece in source.stream(ask):
            said.append(piece)  # noqa: PERF401
    assert said == ["Well. "]
