"""Conversations: `POST /invocations` and `WS /ws`. Each caller is in a session while connected, and
for a while after its network dropped."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from firstword import telemetry
from firstword.client import Firstword, Session
from firstword.errors import FirstwordError
from services.agent.access import BEARER_PROTOCOL, PROTOCOL, Caller
from services.agent.conversation import CallerGone, Conversation, Farewells
from services.agent.core import RequestError, Say, check_label, parse_invocation
from services.agent.doors import CALLER, MAX_REQUEST_BYTES, Doors
from services.agent.settings import AgentSettings
from services.agent.sse import HEADERS, SseOutlet, speak
from services.agent.talk import Talks
from services.agent.websocket import Line, WebSocketOutlet

HEARTBEAT_S = 50.0
"""Between pings, which keep the connection alive; no answer within half of this means gone."""
FAREWELL_S = 8.0


@dataclass(eq=False)
class _Held:
    """A line, its caller, and the timer that gives it up if nobody comes back."""

    line: Line
    caller: Caller
    own: bool
    sockets: int = 1
    reached: bool = False
    """Whether a caller has been connected, who may come back."""
    given_up: asyncio.TimerHandle | None = None


class Calls:
    """The conversations of one agent process."""

    def __init__(
        self, firstword: Firstword, talks: Talks, settings: AgentSettings, doors: Doors
    ) -> None:
        self._firstword = firstword
        self._talks = talks
        self._settings = settings
        self._doors = doors
        self._lines: dict[str, _Held] = {}
        self._farewells = Farewells()

    async def stop(self) -> None:
        """Give every line up, and wait until its turns are cancelled."""
        for held in list(self._lines.values()):
            self._give_up(held)
        await self._farewells.finish(FAREWELL_S)

    # -- one turn ---------------------------------------------------------------------------------

    async def invocations(self, request: web.Request) -> web.StreamResponse:
        """`POST /invocations`: one turn, answered with server-sent events."""
        caller = request[CALLER]
        say = parse_invocation(await request.read(), self._settings.limits())
        own = say.session is None
        full = caller.full(say.session or f"s-{secrets.token_hex(8)}")
        response = web.StreamResponse(headers=HEADERS)
        outlet = SseOutlet(response)
        with self._doors.using(caller, full):
            async with self._conversation(full, outlet, own=own) as (session, conversation):
                self._charge_for_replies(outlet, conversation, caller)
                await session.check_room()  # else the caller would wait for others without a word
                self._spend(caller, say)
                await response.prepare(request)
                with contextlib.suppress(CallerGone):
                    async with outlet.patient(request.transport, self._settings.stall_s):
                        await speak(session, conversation, outlet, say, caller.own(full))
        return response

    @asynccontextmanager
    async def _conversation(
        self, full: str, outlet: SseOutlet, *, own: bool
    ) -> AsyncIterator[tuple[Session, Conversation]]:
        """A caller's session for one turn.

        When the caller leaves, its open turn is cancelled; a session made for it alone is closed
        too. Raises FirstwordError if the server cannot be used.
        """
        session = self._firstword.session(full)
        listener = await session.listener()
        await self._open(session, own=own)
        talk = self._talks.of(full)
        patience_s = self._settings.patience_s
        conversation = Conversation(session, listener, talk, outlet, patience_s)
        with telemetry.callers.labels("sse").track_inprogress():
            try:
                yield session, conversation
            finally:
                self._part(session, conversation, own=own)

    # -- many turns -------------------------------------------------------------------------------

    async def ws(self, request: web.Request) -> web.StreamResponse:
        """`WS /ws`: a conversation, or the rest of one whose socket broke."""
        caller, query = request[CALLER], request.query
        name, from_id = query.get("session"), query.get("from")
        if from_id is not None and name is None:
            raise RequestError("bad_field", "from is a place in a session: give session too")
        full = caller.full(f"s-{secrets.token_hex(8)}" if name is None else check_label(name))
        socket = _socket(request)
        came_back = await self._returning(caller, full, query.get("line"))
        held = came_back or await self._new_line(caller, full, from_id, own=name is None)
        line = held.line
        try:
            if came_back:
                line.conversation.listen_with(await line.session.listener(from_id))
            await socket.prepare(request)
            held.reached = True
            with telemetry.callers.labels("ws").track_inprogress():
                await line.serve(socket, request.transport, self._settings.stall_s)
        finally:
            self._left(held)
        return socket

    async def _new_line(
        self, caller: Caller, full: str, from_id: str | None, *, own: bool
    ) -> _Held:
        self._doors.enter(caller, full)
        try:
            session = self._firstword.session(full)
            talk = self._talks.of(full)
            listener = await session.listener(from_id)
            await self._open(session, own=own)
        except BaseException:
            self._doors.leave(caller, full)
            raise
        outlet = WebSocketOutlet()
        conversation = Conversation(session, listener, talk, outlet, self._settings.patience_s)
        self._charge_for_replies(outlet, conversation, caller)
        line = Line(
            f"l-{secrets.token_urlsafe(12)}",
            caller.own(full),
            session,
            conversation,
            outlet,
            self._settings.limits(),
            self._settings.max_turns,
            lambda say: self._spend(caller, say),
        )
        held = self._lines[line.name] = _Held(line, caller, own)
        return held

    async def _returning(self, caller: Caller, full: str, line: str | None) -> _Held | None:
        """The line that this caller comes back to, if it still exists."""
        held = self._lines.get(line or "")
        if held is None or held.caller != caller or held.line.session.name != full:
            return None
        held.sockets += 1
        if held.given_up is not None:
            held.given_up.cancel()
        try:
            await held.line.take_over()
        except BaseException:  # this caller is gone too
            self._left(held)
            raise
        return held if held.line.name in self._lines else None

    def _left(self, held: _Held) -> None:
        """A socket is gone."""
        held.sockets -= 1
        if held.sockets or held.line.name not in self._lines:
            return
        if held.line.over or not held.reached or not self._settings.resume_s:
            self._give_up(held)
            return
        loop = asyncio.get_running_loop()
        held.given_up = loop.call_later(self._settings.resume_s, self._give_up, held)

    def _give_up(self, held: _Held) -> None:
        """Nobody listens on this line any more: cancel its turns."""
        if self._lines.pop(held.line.name, None) is None:
            return
        if held.given_up is not None:
            held.given_up.cancel()
        self._doors.leave(held.caller, held.line.session.name)
        held.line.stop()
        self._part(held.line.session, held.line.conversation, own=held.own)

    # -- both -------------------------------------------------------------------------------------

    async def _open(self, session: Session, *, own: bool) -> None:
        try:
            await session.open()
        except asyncio.CancelledError:  # its caller is gone, and it may be open all the same
            if own:
                self._farewells.see_to(_close(session))
            raise

    def _part(self, session: Session, conversation: Conversation, *, own: bool) -> None:
        if own:
            self._talks.forget(session.name)
        self._farewells.see_to(conversation.hang_up(close=own))

    def _spend(self, caller: Caller, say: Say) -> None:
        """Charge a text at once; the reply to a prompt is charged as it is written."""
        self._doors.spend(caller, 0 if say.is_prompt else len(say.text))

    def _charge_for_replies(
        self, outlet: SseOutlet | WebSocketOutlet, conversation: Conversation, caller: Caller
    ) -> None:
        def charge(turn: str, characters: int) -> None:
            written = conversation.turns.get(turn)
            if written is not None and written.say.is_prompt:
                self._doors.charge(caller, characters)

        outlet.charge = charge


async def _close(session: Session) -> None:
    with contextlib.suppress(FirstwordError):  # the gateway closes idle sessions too
        await session.close()


def _socket(request: web.Request) -> web.WebSocketResponse:
    offered = [
        entry.strip() for entry in request.headers.get("Sec-WebSocket-Protocol", "").split(",")
    ]
    if PROTOCOL not in offered and any(entry.startswith(BEARER_PROTOCOL) for entry in offered):
        # The token itself must not be selected: it would be in the response, and in logs.
        raise RequestError("bad_protocol", f"offer the subprotocol {PROTOCOL} beside the token")
    agreed = (PROTOCOL,) if PROTOCOL in offered else ()
    # Text is decoded where a frame is read: what is no UTF-8 is answered, and the call goes on.
    return web.WebSocketResponse(
        heartbeat=HEARTBEAT_S,
        max_msg_size=MAX_REQUEST_BYTES,
        protocols=agreed,
        decode_text=False,
    )
