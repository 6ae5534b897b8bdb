"""Words from an agent of the Strands SDK: one for each session, tools and all."""

from __future__ import annotations

import asyncio
import contextlib
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
_BREAK = "\n\n"


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
        paragraphs = _Paragraphs()
        try:
            async for event in events:
                if piece := paragraphs.feed(event):
                    yield piece
        finally:
            unwanted.set()  # tools and the model's own thread, if it has one
            await _run_out(events)


async def _run_out(events: AsyncGenerator[dict[str, Any], None]) -> None:
    """End an agent where it waits next.

    Closed between two events its inner generators would be left to the garbage collector, which
    OpenTelemetry takes for an error: it says so, with a traceback, for every answer that is cut.
    """
    async with aclosing(events):
        with contextlib.suppress(Exception):
            async with asyncio.timeout(0):
                async for _ in events:
                    pass


def bedrock_agent(model: str, region: str, system_prompt: str, max_tokens: int) -> MakeAgent:
    """Makes agents without tools on a model of Bedrock."""

    def make() -> Agent:
        on = BedrockModel(model_id=model, region_name=region or None, max_tokens=max_tokens or None)
        return Agent(model=on, system_prompt=system_prompt or None, callback_handler=None)

    return make


class _Paragraphs:
    """What is said in an agent's events: a block of text is a paragraph, which a tool ends, too, so
    that what was said before the tool is spoken while it runs."""

    def __init__(self) -> None:
        self._thoughts = Thoughts()
        self._open = False
        """Something was said since the last break."""
        self._over = False
        """Its block has ended: what is said next is another paragraph."""

    def feed(self, event: dict[str, Any]) -> str:
        """What is to be spoken now."""
        raw = event.get("event")
        kind = raw if isinstance(raw, dict) else {}
        said = self._thoughts.feed(_text_of(event))
        if "contentBlockStop" in kind:
            said += self._thoughts.end()
            self._thoughts = Thoughts()
        before = self._break() if said and self._over else ""
        self._open = self._open or bool(said)
        self._over = self._open and (self._over or "contentBlockStop" in kind)
        begins = kind.get("contentBlockStart", {}).get("start") or {}
        after = self._break() if "toolUse" in begins and self._over else ""
        return before + said + after

    def _break(self) -> str:
        self._open = self._over = False
        return _BREAK


def _text_of(event: dict[str, Any]) -> str:
    text = event.get("data")
    if not isinstance(text, str) or event.get("reasoning") or event.get("citation"):
        return ""
    return text
