"""`/v1/sessions/{id}/…`: listening and publishing for programs that have no Redis."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import partial

from aiohttp import web

from firstword import messages as m
from firstword import server_errors, telemetry, traceparent
from firstword.client import Firstword
from firstword.errors import FirstwordError
from firstword.pieces import split
from firstword.publisher import Route
from firstword.room import Room
from services.agent.access import Caller
from services.agent.conversation import CallerGone
from services.agent.core import RequestError, error_event, event
from services.agent.doors import CALLER, Doors
from services.agent.ingress import KINDS, Published, read
from services.agent.settings import AgentSettings
from services.agent.sse import HEADERS, Lines

PUBLISHERS = 4_096
IDLE_S = 60.0
"""How long after its last request a publisher's session counts as the caller's."""


@dataclass(eq=False)
class _Publisher:
    """A session that is published to: one request at a time, and how much may wait."""

    caller: Caller
    room: Room
    route: Route
    used_at: float = 0.0
    requests: int = 0
    last_id: str | None = None
    order: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """The routes of sessions. A piece with a number may be sent again without harm."""

    def __init__(self, firstword: Firstword, settings: AgentSettings, doors: Doors) -> None:
        self._firstword = firstword
        self._settings = settings
        self._doors = doors
        self._publishers: OrderedDict[str, _Publisher] = OrderedDict()
        self._sweeping: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        """The agent is stopping."""
        if self._sweeping is not None:
            self._sweeping.cancel()

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/v1/sessions/{session}/events", self.events)
        for kind in KINDS:
            router.add_post(f"/v1/sessions/{{session}}/{{kind:{kind}}}", self.publish)

    # -- listening --------------------------------------------------------------------------------

    async def events(self, request: web.Request) -> web.StreamResponse:
        """`GET …/events`: the session's events, from now or after an entry, until it is closed."""
        caller = request[CALLER]
        full = caller.full(request.match_info["session"])
        from_id = request.headers.get("Last-Event-ID") or request.query.get("from")
        with self._doors.using(caller, full):
            listener = await self._firstword.session(full).listener(from_id)
            response = web.StreamResponse(headers=HEADERS)
            await response.prepare(request)
            lines = Lines(response)
            with telemetry.callers.labels("events").track_inprogress():
                async with lines.patient(request.transport, self._settings.stall_s, "events"):
                    beating = asyncio.create_task(lines.keep_alive())
                    try:
                        async for heard in listener:
                            await lines.send(event(heard.message, heard.id), heard.id)
                    except FirstwordError as error:
                        # An empty id: a reader that reconnects must not ask for this place again.
                        with contextlib.suppress(CallerGone):
                            await lines.send(error_event(error), "")
                    except CallerGone:
                        pass
                    finally:
                        beating.cancel()
                        with contextlib.suppress(asyncio.CancelledError, CallerGone):
                            await beating
        return response

    # -- publishing -------------------------------------------------------------------------------

    async def publish(self, request: web.Request) -> web.Response:
        """`POST …/text`, `…/flush` …: 202 and the entry's id; to a cancel, its receipt."""
        caller = request[CALLER]
        shown = request.match_info["session"]
        full = caller.full(shown)
        asked = read(
            request.match_info["kind"], await request.read(), full, self._settings.limits()
        )
        if isinstance(asked, m.Cancel):
            session = self._firstword.session(full)
            receipt = await session.cancel(asked.turn, asked.played)
            told = event(receipt, "")
            del told["id"]  # only listeners need it
            return web.json_response(told)
        publisher = self._publisher(caller, full)
        publisher.requests += 1
        trace = traceparent.current()
        try:
            async with publisher.order:
                for message in asked:
                    await self._append(publisher, replace(message, traceparent=trace))
        finally:
            publisher.requests -= 1
        return web.json_response({"session": shown, "id": publisher.last_id}, status=202)

    async def _append(self, publisher: _Publisher, message: Published) -> None:
        parts: list[Published] = [message]
        if isinstance(message, m.Text):
            parts = _parts(message)
            await publisher.room.enter(message.text, publisher.last_id, wait=False)
            self._doors.spend(publisher.caller, len(message.text))
        for part in parts:
            publisher.last_id = await self._once(publisher, part)

    async def _once(self, publisher: _Publisher, message: Published) -> str:
        """Publish; if no reply comes, retry a numbered piece, but not one without a number."""
        url = self._firstword.streams.url
        append = partial(publisher.route.append, message)
        if getattr(message, "seq", 0) is not None:
            return (await server_errors.insist(append, url)).entry_id
        try:
            return (await append()).entry_id
        except FirstwordError:
            raise
        except Exception as error:
            raise (server_errors.final(error) or server_errors.unreachable(url, error)) from error

    def _publisher(self, caller: Caller, full: str) -> _Publisher:
        """The session's one publisher. Raises AccessError if the caller may have no more."""
        now = asyncio.get_running_loop().time()
        publisher = self._publishers.get(full)
        if publisher is None:
            if len(self._publishers) >= PUBLISHERS:
                raise FirstwordError(
                    "busy", "too many sessions are published to at once: wait", retryable=True
                )
            self._doors.enter(caller, full)
            room = Room(self._firstword.streams, full)
            publisher = self._publishers[full] = _Publisher(
                caller, room, Route(self._firstword, full)
            )
        publisher.used_at = now
        self._publishers.move_to_end(full)
        self._sweep_soon()
        return publisher

    def _sweep_soon(self) -> None:
        if self._sweeping is None and self._publishers:
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(IDLE_S / 8, self._forget_idle)

    def _forget_idle(self) -> None:
        """Those that were used last are at the end."""
        self._sweeping = None
        now = asyncio.get_running_loop().time()
        for full, publisher in list(self._publishers.items()):
            if publisher.used_at + IDLE_S > now:
                break
            if not publisher.requests:
                del self._publishers[full]
                self._doors.leave(publisher.caller, full)
        self._sweep_soon()


def _parts(message: m.Text) -> list[Published]:
    """The message as one or more entries. A numbered one must be one entry, since its publisher
    numbers the next."""
    texts = split(message.text)
    if len(texts) == 1:
        return [message]
    if message.seq is not None:
        limit = len(texts[0])
        raise RequestError("too_large", f"a piece with a seq has at most {limit} characters")
    return [
        m.Text(
            session=message.session,
            text=text,
            turn=message.turn,
            voice=message.voice,
            speed=message.speed,
            lang=message.lang,
            traceparent=message.traceparent,
        )
        for text in texts
    ]
