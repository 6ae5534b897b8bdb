"""Server-sent events: how they are written, and one turn as an answer to `POST /invocations`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from firstword.client import Event, Session
from firstword.errors import FirstwordError
from services.agent.access import TOO_SLOW
from services.agent.conversation import CallerGone, Conversation
from services.agent.core import Say, SseTurn, agent_start, error_event, text_deltas
from services.agent.slow import Watched

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",  # a proxy must not buffer the stream
}
KEEPALIVE_S = 15.0  # many load balancers cut a connection that is silent for a minute


class Body(Protocol):
    """Where the bytes of an answer go: aiohttp's response, or another server's."""

    async def write(self, data: bytes) -> None: ...


class Lines:
    """Writes one response, event by event. Every method raises CallerGone."""

    def __init__(self, response: Body) -> None:
        self._response = response
        self._watched = Watched()

    async def send(self, event: dict[str, Any], entry_id: str | None = None) -> None:
        """Send an event; `entry_id` is its `Last-Event-ID` for a reader that reconnects."""
        where = "" if entry_id is None else f"id: {entry_id}\n"
        await self.write(f"{where}data: {json.dumps(event)}\n\n".encode())

    async def keep_alive(self) -> None:
        """Send a comment every KEEPALIVE_S; never returns."""
        while True:
            await asyncio.sleep(KEEPALIVE_S)
            await self.write(b": still here\n\n")

    def patient(
        self,
        transport: asyncio.Transport | None,
        seconds: float,
        door: str,
        *,
        say_why: bool = True,
    ) -> AbstractAsyncContextManager[None]:
        """While inside, cut off a reader that takes nothing for `seconds`."""

        async def farewell() -> None:
            if say_why:
                await self.send(error_event(TOO_SLOW))

        return self._watched.patient(transport, seconds, door, farewell)

    async def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        try:
            with self._watched.writing():
                await self._response.write(data)
        except ConnectionError as error:
            raise CallerGone from error


class SseOutlet:
    """Writes the events of one turn as `data:` lines."""

    def __init__(self, response: Body) -> None:
        self.charge: Callable[[str, int], None] = lambda _turn, _characters: None
        """Called for every piece that is written."""
        self._lines = Lines(response)
        self._turn = SseTurn("")

    def patient(
        self, transport: asyncio.Transport | None, seconds: float
    ) -> AbstractAsyncContextManager[None]:
        """While inside, cut off a caller that takes nothing for `seconds`."""
        return self._lines.patient(transport, seconds, "sse")

    async def start(self, session: str, turn: str, mode: str) -> None:
        """Begin this turn for the caller."""
        self._turn = SseTurn(turn)
        await self._send(agent_start(session, turn, mode))

    async def text(self, turn: str, piece: str, start: int) -> None:
        self.charge(turn, len(piece))
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
        """Send comments while there is nothing else to send; never returns."""
        await self._lines.keep_alive()

    async def _send(self, event: dict[str, Any]) -> None:
        await self._lines.send(event)


async def speak(
    session: Session, conversation: Conversation, outlet: SseOutlet, say: Say, shown: str
) -> None:
    """Have one turn written and send its events to the caller until it is over.

    `shown` is the caller's name for the session. Raises CallerGone; any other failure is sent to
    the caller.
    """
    turn = conversation.begin(say)
    await outlet.start(shown, turn.name, say.mode)
    failure: FirstwordError | None = None
    gone = False
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
        gone = True
    if gone:
        raise CallerGone
    if failure is not None:
        conversation.end(turn.name, "failed")
        await outlet.error(turn.name, failure)
    await outlet.finish("failed")
