"""`POST /invocations`: one turn, answered with server-sent events."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from firstword.client import Event, Session
from firstword.errors import FirstwordError
from services.agent.conversation import CallerGone, Conversation
from services.agent.core import Say, SseTurn, agent_start, error_event, text_deltas

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",  # a proxy that collects the stream would undo what we are for
}
KEEPALIVE_S = 15.0  # what is silent for a minute is cut by many a load balancer


class SseOutlet:
    """Writes the events of one turn as `data:` lines."""

    def __init__(self, response: web.StreamResponse) -> None:
        self._response = response
        self._turn = SseTurn("")

    async def start(self, session: str, turn: str, mode: str) -> None:
        """Begin to tell of this turn."""
        self._turn = SseTurn(turn)
        await self._send(agent_start(session, turn, mode))

    async def text(self, turn: str, piece: str, start: int) -> None:
        for delta in text_deltas(turn, piece, start):
            await self._send(delta)

    async def event(self, event: Event) -> None:
        for told in self._turn.feed(event.message):
            await self._send(told)

    async def error(self, turn: str | None, error: FirstwordError) -> None:
        await self._send(error_event(error, turn))

    async def finish(self, reason: str) -> None:
        """End the turn for the caller, if it has not ended."""
        if not self._turn.over:
            for event in self._turn.finish(reason):
                await self._send(event)

    async def keep_alive(self) -> None:
        """Send a comment now and then, however long there is nothing to tell; never returns."""
        while True:
            await asyncio.sleep(KEEPALIVE_S)
            await self._write(": still here")

    async def _send(self, event: dict[str, Any]) -> None:
        await self._write(f"data: {json.dumps(event)}")

    async def _write(self, line: str) -> None:
        try:
            await self._response.write(f"{line}\n\n".encode())
        except ConnectionError as error:
            raise CallerGone from error


async def speak(session: Session, conversation: Conversation, outlet: SseOutlet, say: Say) -> None:
    """Have one turn written and hand it to the caller until it is over.

    Raises CallerGone. What goes wrong otherwise is told to the caller.
    """
    turn = conversation.begin(say)
    await outlet.start(session.name, turn.name, say.mode)
    failure: FirstwordError | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            beside = [
                tasks.create_task(conversation.write(turn)),
                tasks.create_task(outlet.keep_alive()),
            ]
            await conversation.follow(turn)
            for task in beside:
                task.cancel()
    except* FirstwordError as group:
        failure = next(e for e in group.exceptions if isinstance(e, FirstwordError))
    except* CallerGone:
        raise CallerGone from None
    if failure is not None:
        conversation.end(turn.name, "failed")
        await outlet.error(turn.name, failure)
    await outlet.finish("failed")
