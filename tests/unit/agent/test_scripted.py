"""The scripted token source."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.agent.scripted import ScriptedSource, replies_of
from services.agent.source import Ask


def asked(text: str, tokens_per_second: float = 0) -> Ask:
    return Ask(text=text, session="s", turn="t", tokens_per_second=tokens_per_second)


@given(st.text(max_size=200))
@settings(deadline=None)
def test_the_pieces_are_the_text(text: str) -> None:
    async def collect() -> list[str]:
        return [piece async for piece in ScriptedSource().stream(asked(text))]

    pieces = asyncio.run(collect())
    assert "".join(pieces) == text
    assert all(pieces)


async def test_it_keeps_the_pace_and_makes_up_for_lateness() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    at = []
    async for piece in ScriptedSource().stream(asked("One two three four five", 100)):
        at.append(loop.time() - began)
        if piece == "One":
            await asyncio.sleep(0.02)  # the reader was busy
    # Never before its time; how late is the machine's affair.
    assert all(when >= count * 0.01 - 0.001 for count, when in enumerate(at, 1))
    assert len(at) == 5


async def test_a_reader_that_gives_up_stops_it() -> None:
    pieces = ScriptedSource().stream(asked("Never said", 0.01))
    waiting = asyncio.ensure_future(anext(pieces))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(StopAsyncIteration):
        await anext(pieces)


async def test_a_script_is_followed_round_and_round() -> None:
    replies = replies_of("\nFirst line,\nsame reply.\n\n  \n\nSecond.\n")
    source = ScriptedSource(replies)
    said = ["".join([piece async for piece in source.stream(asked("?"))]) for _ in range(3)]
    assert said == ["First line,\nsame reply.", "Second.", "First line,\nsame reply."]
