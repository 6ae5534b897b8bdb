"""A model for Strands agents that thinks, uses a tool and answers, all by itself.

`make` is what FIRSTWORD_AGENT_STRANDS names.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

from strands import Agent, tool
from strands.models import Model
from strands.types.streaming import StreamEvent

SECRET = "what nobody is to hear"
PIECE_S = 0.002


class ThinkingModel(Model):
    """Asked with `prompt`, it answers that it heard it, and how many messages it knows of.

    To `hang` and `fail` it says a word, and waits for ever, or breaks.
    """

    def update_config(self, **_config: Any) -> None:
        """It has no settings."""

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *_args: Any, **_given: Any) -> AsyncGenerator[dict[str, Any], None]:
        raise NotImplementedError

    def stream(self, messages: Any, *_args: Any, **_given: Any) -> AsyncIterable[StreamEvent]:
        return self._stream(messages)

    async def _stream(self, messages: list[dict[str, Any]]) -> AsyncGenerator[StreamEvent, None]:
        last = messages[-1]["content"]
        answered = any("toolResult" in block for block in last)
        yield {"messageStart": {"role": "assistant"}}
        if answered:
            async for event in _text("And that is all."):
                yield event
        else:
            for event in _thoughts():
                yield event
            async for event in _reply(last[0]["text"], len(messages)):
                yield event
            for event in _tool_use():
                yield event
        yield {"messageStop": {"stopReason": "end_turn" if answered else "tool_use"}}


async def _reply(prompt: str, messages: int) -> AsyncGenerator[StreamEvent, None]:
    newest = prompt.split("\n")[-1]  # those before it were never answered
    if newest in ("fail", "hang"):
        yield {"contentBlockDelta": {"delta": {"text": "Well. "}}}
        if newest == "fail":
            raise ConnectionError(SECRET)
        await asyncio.sleep(3600)
    async for event in _text(f"I heard {prompt} as message {messages}. "):
        yield event


async def _text(text: str) -> AsyncGenerator[StreamEvent, None]:
    yield {"contentBlockStart": {"start": {}}}
    for word in text.split(" "):
        await asyncio.sleep(PIECE_S)
        yield {"contentBlockDelta": {"delta": {"text": f"{word} " if word else word}}}
    yield {"contentBlockStop": {}}


def _thoughts() -> list[StreamEvent]:
    return [
        {"contentBlockStart": {"start": {}}},
        {"contentBlockDelta": {"delta": {"reasoningContent": {"text": SECRET}}}},
        {"contentBlockStop": {}},
        {"contentBlockStart": {"start": {}}},
        {"contentBlockDelta": {"delta": {"text": f"<thinking>{SECRET}"}}},
        {"contentBlockDelta": {"delta": {"text": "</thinking> "}}},
        {"contentBlockStop": {}},
    ]


def _tool_use() -> list[StreamEvent]:
    return [
        {"contentBlockStart": {"start": {"toolUse": {"name": "look_up", "toolUseId": "u-1"}}}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}},
        {"contentBlockStop": {}},
    ]


@tool
def look_up() -> str:
    """Finds what nobody is to hear."""
    return SECRET


def make() -> Agent:
    """An agent for one session."""
    return Agent(model=ThinkingModel(), tools=[look_up], callback_handler=None)
