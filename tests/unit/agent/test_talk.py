"""One reply at a time in a session, each knowing those before; stopped at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from firstword import telemetry
from services.agent.core import Say
from services.agent.memory import MemoryLimits
from services.agent.source import Ask, SourceError
from services.agent.talk import Talk, Talks

LIMITS = MemoryLimits(messages=20, characters=1_000)


class Model:
    """Answers with what it was told, and writes each piece when it is let."""

    def __init__(self) -> None:
        self.asked: list[Ask] = []
        self.go = asyncio.Semaphore(0)
        self.closed = 0

    async def stream(self, ask: Ask) -> AsyncGenerator[str, None]:
        self.asked.append(ask)
        try:
            for piece in ("Answer to ", ask.text):
                await self.go.acquire()
                yield piece
        finally:
            self.closed += 1


def prompt(text: str) -> Say:
    return Say(text=text, mode="stream", tokens_per_second=0, is_prompt=True)


async def written(talk: Talk, turn: str, say: Say, after: asyncio.Event | None = None) -> str:
    async with aclosing(talk.write(turn, say, after)) as pieces:
        return "".join([piece async for piece in pieces])


def let(model: Model, pieces: int) -> None:
    for _ in range(pieces):
        model.go.release()


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_prompts_are_answered_one_after_the_other() -> None:
    model = Model()
    talk = Talk("s", model, LIMITS, None)
    begun = asyncio.Event()
    second = asyncio.create_task(written(talk, "t2", prompt("two"), begun))
    first = asyncio.create_task(written(talk, "t1", prompt("one")))
    await settle()
    assert [ask.turn for ask in model.asked] == ["t1"]
    let(model, 1)
    begun.set()
    await settle()
    assert [ask.turn for ask in model.asked] == ["t1"]
    let(model, 3)
    assert await first == "Answer to one"
    assert await second == "Answer to two"
    said = [message.text for message in model.asked[1].messages]
    assert said == ["one", "Answer to one", "two"]


async def test_a_text_is_said_as_it_is_and_remembered() -> None:
    model = Model()
    talk = Talk("s", model, LIMITS, None)
    greeting = Say(text="Hello there.", mode="stream", tokens_per_second=0)
    assert await written(talk, "t1", greeting) == "Hello there."
    assert model.asked == []
    let(model, 2)
    await written(talk, "t2", prompt("Hi"))
    assert [message.text for message in model.asked[0].messages][1:] == ["Hello there.", "Hi"]


async def test_the_time_to_the_first_text_is_measured_for_prompts_alone() -> None:
    def observed() -> float:
        (family,) = telemetry.model_first_text.collect()
        return sum(sample.value for sample in family.samples if sample.name.endswith("_count"))

    before, model = observed(), Model()
    talk = Talk("s", model, LIMITS, None)
    await written(talk, "t1", Say(text="As it is.", mode="stream", tokens_per_second=0))
    assert observed() == before
    let(model, 2)
    await written(talk, "t2", prompt("one"))
    assert observed() == before + 1


async def test_stop_ends_a_model_that_thinks() -> None:
    model = Model()
    talk = Talk("s", model, LIMITS, 60)
    thinking = asyncio.create_task(written(talk, "t1", prompt("one")))
    waiting = asyncio.create_task(written(talk, "t2", prompt("two")))
    third = asyncio.create_task(written(talk, "t3", prompt("three")))
    await settle()
    talk.stop("t2")
    talk.stop("t1")
    talk.stop("t9")
    assert await thinking == ""
    assert model.closed == 1
    assert await waiting == ""
    let(model, 2)
    assert await third == "Answer to three"
    assert [ask.turn for ask in model.asked] == ["t1", "t3"]


async def test_stop_between_two_pieces_ends_it_too() -> None:
    model = Model()
    talk = Talk("s", model, LIMITS, 60)
    let(model, 2)
    async with aclosing(talk.write("t1", prompt("one"), None)) as pieces:
        assert await anext(pieces) == "Answer to "
        talk.stop("t1")
        assert await anext(pieces, None) is None
    assert model.closed == 1


async def test_a_model_that_writes_nothing_is_given_up() -> None:
    model = Model()
    talk = Talk("s", model, LIMITS, 0.01)
    with pytest.raises(SourceError, match="source_silent") as told:
        await written(talk, "t1", prompt("one"))
    assert told.value.retryable
    assert model.closed == 1


async def test_a_source_s_own_timeout_stays_its_own() -> None:
    class Late:
        async def stream(self, _ask: Ask) -> AsyncGenerator[str, None]:
            yield "So far"
            raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await written(Talk("s", Late(), LIMITS, 60), "t1", prompt("one"))


def test_sessions_are_forgotten_when_they_are_over_or_too_many() -> None:
    talks = Talks(Model, LIMITS, 2, None)
    first, second = talks.of("a"), talks.of("b")
    assert talks.of("a") is first
    talks.of("c")
    assert talks.of("a") is first
    assert talks.of("b") is not second
    talks.forget("b")
    talks.forget("b")
    again = talks.of("b")
    assert again is not second
    assert talks.of("b") is again
