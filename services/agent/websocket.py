"""`WS /ws`: a conversation. Text frames carry JSON events both ways, binary frames audio."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import WSMsgType, web

from firstword import telemetry
from firstword.client import Event, Session
from firstword.errors import FirstwordError
from services.agent.conversation import CallerGone, Conversation, Turn
from services.agent.core import (
    Cancel,
    Limits,
    RequestError,
    Say,
    agent_start,
    error_event,
    frames,
    parse_frame,
    text_deltas,
)


class WebSocketOutlet:
    """Sends events as text frames and audio as binary ones, one frame at a time."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._order = asyncio.Lock()

    async def text(self, turn: str, piece: str, start: int) -> None:
        for delta in text_deltas(turn, piece, start):
            await self.send(delta)

    async def event(self, event: Event) -> None:
        for frame in frames(event.message, event.id):
            await self.send(frame)

    async def error(self, turn: str | None, error: FirstwordError) -> None:
        await self.send(error_event(error, turn))

    async def send(self, frame: dict[str, Any] | bytes) -> None:
        """A caller who reads slowly is waited for: the session's stream holds what comes."""
        try:
            async with self._order:
                if isinstance(frame, bytes):
                    await self._socket.send_bytes(frame)
                else:
                    await self._socket.send_str(json.dumps(frame))
        except ConnectionError as error:
            raise CallerGone from error


class Call:
    """One caller on the line, until it hangs up or the session is closed."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        outlet: WebSocketOutlet,
        session: Session,
        conversation: Conversation,
        limits: Limits,
        max_turns: int,
    ) -> None:
        self._socket = socket
        self._outlet = outlet
        self._session = session
        self._conversation = conversation
        self._limits = limits
        self._max_turns = max_turns

    async def run(self) -> None:
        """Listen to the caller and talk to it, side by side."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._talk())
                async for frame in self._socket:
                    await self._take(frame.type, frame.data, tasks)
                raise CallerGone  # stops what is being written and heard
        except* CallerGone:
            pass

    async def _talk(self) -> None:
        await self._outlet.send({"type": "session", "session": self._session.name})
        try:
            await self._conversation.follow()
        except FirstwordError as error:
            await self._outlet.error(None, error)
        await self._socket.close(message=b"the session is closed")

    async def _take(self, kind: WSMsgType, data: Any, tasks: asyncio.TaskGroup) -> None:
        try:
            if kind is not WSMsgType.TEXT:
                raise RequestError("bad_frame", "send JSON in text frames")
            request = parse_frame(data, self._limits)
            if isinstance(request, Say) and len(self._conversation.turns) >= self._max_turns:
                raise RequestError(
                    "busy", f"{self._max_turns} turns are waiting already: cancel, or wait"
                )
            if isinstance(request, Cancel):
                tasks.create_task(self._cancel(request))
            else:
                tasks.create_task(self._write(self._conversation.begin(request)))
        except RequestError as error:
            telemetry.refused_requests.labels(error.code).inc()
            await self._outlet.error(None, error)

    async def _write(self, turn: Turn) -> None:
        await self._outlet.send(agent_start(self._session.name, turn.name, turn.say.mode))
        try:
            await self._session.check_room()
            await self._conversation.write(turn)
        except FirstwordError as error:
            self._conversation.end(turn.name, "failed")
            await self._outlet.error(turn.name, error)

    async def _cancel(self, request: Cancel) -> None:
        """The receipt comes to the caller with the session's events."""
        self._conversation.silence(request.turn)
        try:
            await self._session.cancel(request.turn, request.played)
        except FirstwordError as error:
            await self._outlet.error(request.turn, error)
