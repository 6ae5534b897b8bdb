"""Words from an agent of the Strands SDK: one for each session, tools and all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, cast

from strands import Agent
from strands.models import BedrockModel
from strands.types.content import Messages

from services.agent.source import Ask
from services.agent.thoughts import Thoughts

MakeAgent = Callable[[], Agent]


class StrandsSource:
    """Answers with what the agent says: not with reasoning, citations, tools and what they answer.

    An agent takes one prompt at a time, which is what a session's talk gives it. Before each it is
    told what was said in the session, and heard; what its tools answered it knows within a turn.
    """

    def __init__(self, make: MakeAgent) -> None:
        self._make = make
        self._agent: Agent | None = None

    async def stream(self, ask: Ask) -> AsyncGenerator[str, None]:
        if self._agent is None:
            self._agent = await asyncio.to_thread(self._make)  # it may read files, or ask AWS
        *before, prompt = ask.messages
        said = [{"role": one.role, "content": [{"text": one.text}]} for one in before]
        self._agent.messages = cast("Messages", said)
        unwanted = threading.Event()
        events = cast(
            "AsyncGenerator[dict[str, Any], None]",
            self._agent.stream_async(prompt.text, cancel_signal=unwanted),
        )
        thoughts = Thoughts()
        try:
            async with aclosing(events):
                async for event in events:
                    if piece := thoughts.feed(_text_of(event)):
                        yield piece
                    if _ends_a_block(event):
                        if piece := thoughts.end():
                            yield piece
                        thoughts = Thoughts()
        finally:
            unwanted.set()  # tools and the model's own thread, if it has one


def bedrock_agent(model: str, region: str, system_prompt: str, max_tokens: int) -> MakeAgent:
    """Makes agents without tools on a model of Bedrock."""

    def make() -> Agent:
        on = BedrockModel(model_id=model, region_name=region or None, max_tokens=max_tokens or None)
        return Agent(model=on, system_prompt=system_prompt or None, callback_handler=None)

    return make


def _text_of(event: dict[str, Any]) -> str:
    text = event.get("data")
    if not isinstance(text, str) or event.get("reasoning") or event.get("citation"):
        return ""
    return text


def _ends_a_block(event: dict[str, Any]) -> bool:
    raw = event.get("event")
    return isinstance(raw, dict) and "contentBlockStop" in raw
