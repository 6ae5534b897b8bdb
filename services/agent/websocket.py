"""`WS /ws`: a conversation. Text frames carry JSON events both ways, binary frames audio.

A `Line` outlives its socket: if the network drops the socket, the caller's turns go on, and a
caller that comes back is connected to the same line.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from aiohttp import WSMsgType, web

from firstword import telemetry
from firstword.client import Event, Session
from firstword.errors import FirstwordError
from firstword.poison import where
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
from services.agent.slow import Watched

ERRORS_KEPT: Final = 32
ERRORS_KEPT_S: Final = 60.0
"""The agent's own errors are sent again to a caller that comes back: nobody knows what the broken
socket delivered, and they are not on the session's stream."""


class WebSocketOutlet:
    """Sends events as text frames and audio as binary ones, one frame at a time."""

    def __init__(self) -> None:
        self.watched = Watched()
        self.charge: Callable[[str, int], None] = lambda _turn, _characters: None
        """Called for every piece that is written."""
        self._socket: web.WebSocketResponse | None = None
        self._order = asyncio.Lock()
        self._errors: deque[tuple[float, dict[str, Any]]] = deque(maxlen=ERRORS_KEPT)

    def connect(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    def disconnect(self) -> None:
        """Send nothing from now on: text and errors are sent again on return."""
        self._socket = None

    async def text(self, turn: str, piece: str, start: int) -> None:
        self.charge(turn, len(piece))
        for delta in text_deltas(turn, piece, start):
            await self.tell(delta)

    async def event(self, event: Event) -> None:
        """Raises CallerGone: the caller gets missed events by listening again."""
        for frame in frames(event.message, event.id):
            await self.send(frame)

    async def error(self, turn: str | None, error: FirstwordError) -> None:
        told = error_event(error, turn)
        self._errors.append((asyncio.get_running_loop().time(), told))
        await self.tell(told)

    async def tell(self, frame: dict[str, Any]) -> None:
        """Send something of the agent's own, if there is a socket."""
        with contextlib.suppress(CallerGone):
            await self.send(frame)

    async def tell_errors_again(self) -> None:
        since = asyncio.get_running_loop().time() - ERRORS_KEPT_S
        for at, told in list(self._errors):
            if at >= since:
                await self.send(told)

    async def send(self, frame: dict[str, Any] | bytes) -> None:
        """Wait for a slow reader; the session's stream keeps what comes meanwhile."""
        async with self._order:
            socket = self._socket
            if socket is None:
                raise CallerGone
            try:
                with self.watched.writing():
                    if isinstance(frame, bytes):
                        await socket.send_bytes(frame)
                    else:
                        await socket.send_str(json.dumps(frame))
            except (ConnectionError, RuntimeError) as error:  # the latter: it is closing
                raise CallerGone from error


class Line:
    """One caller in one session, over as many sockets as it takes.

    `shown` is the caller's name for the session. `spend` is called before a text is taken, and may
    raise an error that refuses it.
    """

    def __init__(
        self,
        name: str,
        shown: str,
        session: Session,
        conversation: Conversation,
        outlet: WebSocketOutlet,
        limits: Limits,
        max_turns: int,
        spend: Callable[[Say], None],
    ) -> None:
        self.name = name
        self.session = session
        self.conversation = conversation
        self.over = False
        """Set when nobody will come back: the caller has hung up, or the session is closed."""
        self._shown = shown
        self._outlet = outlet
        self._limits = limits
        self._max_turns = max_turns
        self._spend = spend
        self._busy = asyncio.Lock()
        self._socket: web.WebSocketResponse | None = None
        self._transport: asyncio.Transport | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def take_over(self) -> None:
        """Drop the present socket, which may be dead without knowing it."""
        if self._transport is not None:
            self._transport.abort()
        async with self._busy:
            pass

    async def serve(
        self,
        socket: web.WebSocketResponse,
        transport: asyncio.Transport | None,
        stall_s: float,
    ) -> None:
        """Talk over this socket until the caller hangs up, the session is closed, or it breaks."""
        async with self._busy:
            self._socket, self._transport = socket, transport
            self._outlet.connect(socket)
            slow = self._outlet.watched.patient(transport, stall_s, "ws", self._say_goodbye)
            try:
                async with slow, asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._talk())
                    await self._listen(socket)
                    raise CallerGone  # stops what is being heard
            except* (CallerGone, ConnectionError):
                pass
            finally:
                self._outlet.disconnect()
                self._socket = self._transport = None

    def stop(self) -> None:
        """Stop the writing."""
        for task in list(self._tasks):
            task.cancel()

    # -- to the caller ----------------------------------------------------------------------------

    async def _talk(self) -> None:
        names = {"session": self._shown, "line": self.name}
        await self._outlet.send({"type": "session", **names, "id": self.conversation.position})
        for turn in list(self.conversation.turns.values()):
            await self._tell_again(turn)
        await self._outlet.tell_errors_again()
        try:
            await self.conversation.follow()
        except FirstwordError as error:
            await self._outlet.error(None, error)
        self.over = True
        if self._socket is not None:
            await self._socket.close(message=b"the session is closed")

    async def _tell_again(self, turn: Turn) -> None:
        await self._outlet.send(agent_start(self._shown, turn.name, turn.say.mode))
        for delta in text_deltas(turn.name, turn.text, 0):
            await self._outlet.send(delta)

    async def _say_goodbye(self) -> None:
        if self._socket is not None:
            await self._socket.close(code=1008, message=b"too_slow: you took nothing for too long")

    # -- from the caller --------------------------------------------------------------------------

    async def _listen(self, socket: web.WebSocketResponse) -> None:
        while True:
            frame = await socket.receive()
            if frame.type is WSMsgType.CLOSE:
                self.over = True
                return
            if frame.type in (WSMsgType.CLOSED, WSMsgType.CLOSING, WSMsgType.ERROR):
                return
            await self._take(frame.type, frame.data)

    async def _take(self, kind: WSMsgType, data: Any) -> None:
        try:
            if kind is not WSMsgType.TEXT:
                raise RequestError("bad_frame", "send JSON in text frames")
            request = parse_frame(data, self._limits)
            if isinstance(request, Cancel):
                self.conversation.silence(request.turn)  # what is said next may need the room
                self._start(self._cancel(request))
                return
            if len(self.conversation.turns) >= self._max_turns:
                raise RequestError(
                    "busy", f"{self._max_turns} turns are waiting already: cancel, or wait"
                )
            self._spend(request)
            self._start(self._write(self.conversation.begin(request)))
        except RequestError as error:
            telemetry.count_refusal(error.code)
            await self._outlet.error(None, error)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            names = {"session": self.session.name, "error": type(error).__name__}
            telemetry.logger().error("line_failed", where=where(error), **names)
            if self._transport is not None:
                self._transport.abort()  # it must not look as if it were being spoken

    async def _write(self, turn: Turn) -> None:
        await self._outlet.tell(agent_start(self._shown, turn.name, turn.say.mode))
        try:
            await self.session.check_room()
            await self.conversation.write(turn)
        except FirstwordError as error:
            self.conversation.end(turn.name, "failed")
            await self._outlet.error(turn.name, error)

    async def _cancel(self, request: Cancel) -> None:
        """Cancel. The caller gets the receipt with the session's events."""
        try:
            await self.session.cancel(request.turn, request.played)
        except FirstwordError as error:
            await self._outlet.error(request.turn, error)
