"""One session's shell: reads its segments, performs what the core decides, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from firstword import codec, keys, telemetry
from firstword import messages as m
from firstword.errors import DecodeError, FirstwordError, LeaseLost, StateLost
from firstword.ids import id_after, seconds_between
from firstword.ownership import new_token
from firstword.session_protocol import Frame
from firstword.streams import Streams
from services.tts_gateway.actions import Action, Close, Commit, Connect, Disconnect, Send
from services.tts_gateway.core import Speech
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Link, Upstream

SWEEP_S = 5.0
TOMBSTONE_S = 3600
DELETE = "\0"


@dataclass(frozen=True, slots=True)
class _FrameCame:
    link: Link
    frame: Frame
    text: bool | None


@dataclass(frozen=True, slots=True)
class _LinkLost:
    link: Link | None
    error: FirstwordError


@dataclass(frozen=True, slots=True)
class _LinkUp:
    link: Link


@dataclass(frozen=True, slots=True)
class _Rung:
    """Something new lies in the session: entries, or a cancel."""


_Happening = _FrameCame | _LinkLost | _LinkUp | _Rung


class SessionRunner:
    """Speaks one session until it is closed, idle, handed over or another's."""

    def __init__(
        self,
        session: str,
        streams: Streams,
        upstream: Upstream,
        worker: str,
        settings: GatewaySettings,
    ) -> None:
        self._session = session
        self._streams = streams
        self._upstream = upstream
        self._worker = worker
        self._settings = settings
        self._retention = settings.retention()
        self._keys = [keys.speech_state(session), keys.segments(session), keys.audio(session)]
        self._token = new_token()
        self._rev = 0
        self._core = Speech(session, settings.limits(), {})
        self._inbox: asyncio.Queue[_Happening] = asyncio.Queue()
        self._backlog: deque[tuple[str, m.Segments]] = deque()
        self._read = ""
        self._link: Link | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closes: set[asyncio.Task[None]] = set()
        self._connecting = False
        self._stopping = False
        self._closed = False
        self._worked_at = 0.0
        self._segment_at = ""
        self._segment_bytes = 0

    # -- from the service -------------------------------------------------------------------------

    @property
    def position(self) -> str:
        """The last entry of the segments stream that is done with."""
        return self._core.position

    def ring(self) -> None:
        """Something new lies in the session."""
        self._inbox.put_nowait(_Rung())

    def hand_over(self) -> None:
        """Stop between segments, so that another worker goes on."""
        self._stopping = True
        self.ring()

    async def run(self) -> bool:
        """Speak. Returns whether others must go on with the session.

        The session is to be offered again if entries lie beyond `position` when it is released.
        Raises LeaseLost if it is another worker's now, StateLost if the server forgot it.
        """
        saved = await self._streams.acquire(self._keys, self._token, self._worker)
        self._rev = int(saved.get("rev", b"0"))
        self._core = Speech(self._session, self._settings.limits(), saved)
        self._read = self._core.position
        self._worked_at = _now()
        self.ring()
        try:
            while not await self._leave():
                await self._step()
            return self._stopping and not self._closed
        finally:
            await self._close_links()

    # -- the loop ---------------------------------------------------------------------------------

    async def _step(self) -> None:
        hold = await self._feed()
        now = _now()
        timer = self._core.timer()
        idle = SWEEP_S if self._core.idle else 3600.0
        patience = min(hold or idle, idle if timer is None else max(0.0, timer - now))
        try:
            async with asyncio.timeout(patience):
                happening = await self._inbox.get()
        except TimeoutError:
            now = _now()
            if timer is not None and now >= timer:
                telemetry.upstream_reconnects.inc()
                await self._perform(self._core.expired(now))
            elif self._core.idle and not hold:
                await self._fetch()
            return
        await self._react(happening)

    async def _react(self, happening: _Happening) -> None:
        now = _now()
        match happening:
            case _FrameCame(link, frame, text):
                if link is self._link:
                    await self._perform(self._core.receive(frame, text, now))
            case _LinkUp(link):
                self._connecting = False
                self._link = link
                telemetry.upstream_connections.inc()
                _spawn(self._tasks, self._pump(link))
                await self._perform(self._core.connected(True, now))
            case _LinkLost(link, error):
                if link is None:
                    self._connecting = False
                elif link is not self._link:
                    return
                telemetry.upstream_reconnects.inc()
                telemetry.logger().warning("upstream_lost", session=self._session, code=error.code)
                await self._perform(self._core.lost(error, now))
            case _Rung():
                await self._fetch()
                if self._core.turn and await self._is_cancelled(self._core.turn):
                    await self._perform(self._core.cancelled())

    async def _feed(self) -> float:
        """Begin entries while the core is idle; seconds to hold the next one back, or 0."""
        while self._core.idle and self._backlog and not self._stopping:
            entry_id, message = self._backlog[0]
            now = _now()
            self._worked_at = now
            if isinstance(message, m.Segment) and await self._is_cancelled(message.turn):
                actions = self._core.skip(entry_id)
            elif hold := self._core.wait_before(message, now):
                return hold
            else:
                actions = self._core.begin(entry_id, message, now)
            self._backlog.popleft()
            await self._perform(actions)
        return 0.0

    async def _fetch(self) -> None:
        """Put what is new on the segments stream behind the backlog."""
        while entries := await self._streams.range(self._keys[1], self._read or "0-0"):
            for entry in entries:
                self._read = entry.id
                try:
                    message = codec.unpack(entry.fields.get(b"m", b""), codec.SEGMENTS)
                except DecodeError as error:
                    telemetry.dead_letters.labels(error.code).inc()
                    await self._streams.dead_letter(self._keys[1], entry, error.code)
                    continue
                if message is None:
                    telemetry.skipped.labels("unknown_type").inc()
                else:
                    self._backlog.append((entry.id, message))

    async def _leave(self) -> bool:
        """Whether the session is done with here; then its state says so."""
        if not self._core.idle:
            return False
        if self._closed:
            await self._vacate("", TOMBSTONE_S, TOMBSTONE_S)
            return True
        if self._stopping:
            await self._vacate("", 0, 0)
            return True
        if self._backlog or _now() - self._worked_at < self._settings.idle_s:
            return False
        retention = int(self._settings.retention_s)
        return await self._vacate(self._read, self._settings.session_ttl_s, retention)

    async def _vacate(self, position: str, expiry_s: int, audio_expiry_s: int) -> bool:
        expiries = [expiry_s, expiry_s, audio_expiry_s]
        return await self._streams.vacate(self._keys, self._token, position, expiries)

    # -- what the core wants ----------------------------------------------------------------------

    async def _perform(self, actions: list[Action]) -> None:
        """Do these in order. A refused commit replaces what would have followed it."""
        for action in actions:
            match action:
                case Commit():
                    if not await self._commit(action):
                        await self._perform(self._core.cancelled())
                        return
                case Send(frame):
                    await self._send(frame)
                case Connect(after_s):
                    await self._connect(after_s)
                case Disconnect():
                    self._drop_link()
                case Close():
                    self._closed = True

    async def _commit(self, commit: Commit) -> bool:
        """Store one commit; False if its turn is cancelled. Raises LeaseLost, StateLost."""
        fields: list[Any] = []
        for name, value in commit.fields.items():
            fields += [name, DELETE if value is None else value]
        done_to = id_after(commit.done_to) if commit.done_to else ""
        keep_from = self._retention.keep_from(self._segment_at) if self._segment_at else ""
        payloads = [codec.pack(event, self._session) for event in commit.events]
        args = [self._token, self._rev + 1, commit.guard, done_to, keep_from, *fields, ""]
        key_list = [self._keys[0], self._keys[2], self._keys[1]]
        received_at = _now()
        status, first = await self._streams.script("commit_speech", key_list, [*args, *payloads])
        if status == -3:
            return False
        if status == -1:
            telemetry.fenced_commits.labels("gateway").inc()
            raise LeaseLost(f"session {self._session}")
        if status == -2:
            raise StateLost(f"session {self._session}")
        self._rev += 1
        first_id = first.decode()
        self._measure(commit, first_id, _now() - received_at)
        self._core.committed(commit, first_id)
        return True

    def _measure(self, commit: Commit, first_id: str, took_s: float) -> None:
        for event in commit.events:
            match event:
                case m.TurnStarted():
                    opened_at = self._core.opened_at
                    telemetry.first_audio.observe(max(0.0, seconds_between(opened_at, first_id)))
                    telemetry.publish.observe(took_s)
                case m.SegmentStarted(ttfb_ms=ttfb_ms, committed_at=committed_at):
                    self._segment_at, self._segment_bytes = first_id, 0
                    telemetry.upstream_first_byte.observe(ttfb_ms / 1000)
                    waited = seconds_between(committed_at, first_id) - ttfb_ms / 1000 - took_s
                    telemetry.wait.observe(max(0.0, waited))
                case m.AudioChunk(data=data):
                    self._segment_bytes += len(data)
                case m.SegmentDone():
                    self._retention.note(self._segment_at, self._segment_bytes)
                    telemetry.segments.labels("done").inc()
                case m.TurnDone(reason=reason):
                    telemetry.turns.labels(reason).inc()
                case m.ErrorEvent(code=code):
                    telemetry.segments.labels("error").inc()
                    telemetry.errors.labels(code).inc()
                case _:
                    pass
        if commit.drops:
            counter = telemetry.turns if commit.drops == "turn" else telemetry.segments
            counter.labels("cancelled").inc()

    async def _send(self, frame: str) -> None:
        link = self._link
        if link is None:
            return
        try:
            await link.send(frame)
        except FirstwordError as error:
            self._inbox.put_nowait(_LinkLost(link, error))

    async def _connect(self, after_s: float) -> None:
        if self._link is not None:
            await self._perform(self._core.connected(False, _now()))
        elif not self._connecting:
            self._connecting = True
            _spawn(self._tasks, self._open_link(after_s))

    async def _open_link(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        try:
            link = await self._upstream.connect()
        except FirstwordError as error:
            self._inbox.put_nowait(_LinkLost(None, error))
        else:
            self._inbox.put_nowait(_LinkUp(link))

    async def _pump(self, link: Link) -> None:
        """Frames of one connection into the inbox, until it ends."""
        try:
            while True:
                frame, text = await link.receive()
                self._inbox.put_nowait(_FrameCame(link, frame, text))
        except FirstwordError as error:
            self._inbox.put_nowait(_LinkLost(link, error))

    def _drop_link(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            telemetry.upstream_connections.dec()
            _spawn(self._closes, link.close())

    async def _close_links(self) -> None:
        """At the end: no task and no connection of ours is left."""
        self._drop_link()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while not self._inbox.empty():
            happening = self._inbox.get_nowait()
            if isinstance(happening, _LinkUp):
                _spawn(self._closes, happening.link.close())
        await asyncio.gather(*self._closes, return_exceptions=True)

    async def _is_cancelled(self, turn: str) -> bool:
        mark = f"cancelled:{turn}"
        return bool(await self._streams.commands.hexists(self._keys[0], mark))


def _spawn(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def _now() -> float:
    return asyncio.get_running_loop().time()
