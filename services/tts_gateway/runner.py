"""One session's shell: reads its segments, performs what the core decides, in order."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from typing import Any, ParamSpec

from firstword import codec, keys, logs, telemetry
from firstword import messages as m
from firstword.dead import put_aside
from firstword.errors import DecodeError, LeaseLost, StateLost
from firstword.ids import START, id_after
from firstword.ownership import new_token
from firstword.poison import Poison
from firstword.streams import Entry, Streams
from firstword.tracing import TurnTrace
from services.tts_gateway.actions import CLOSED, Action, Close, Commit, Connect, Disconnect, Send
from services.tts_gateway.backlog import Backlog, speech_seconds
from services.tts_gateway.connection import Came, Connection, Due, Lost, News, Opened, Renewed
from services.tts_gateway.core import Speech
from services.tts_gateway.measures import measure
from services.tts_gateway.reachability import Reachability
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Upstream

SWEEP_S = 5.0
FETCH = 256
BUSY_S = 3600.0  # while a segment is spoken, no sweep is needed: frames and timers wake us
TOMBSTONE_S = 3600
DELETE = "\0"
P = ParamSpec("P")


class SessionRunner:
    """Speaks one session until it is closed, idle, handed over or another's."""

    def __init__(
        self,
        session: str,
        streams: Streams,
        upstream: Upstream,
        worker: str,
        settings: GatewaySettings,
        poison: Poison | None = None,
        reachability: Reachability | None = None,
    ) -> None:
        self.rev = 0
        """The last revision of the session's state that the server is known to have had."""
        self._session = session
        self._streams = streams
        self._worker = worker
        self._settings = settings
        self._poison = poison or Poison()
        self._reachability = reachability or Reachability()
        self._in_hand = START
        self._retention = settings.retention()
        self._keys = [keys.speech_state(session), keys.segments(session), keys.audio(session)]
        self._token = new_token()
        self._core = Speech(session, settings.limits(), {})
        # None is a ring: there is something new in the session, entries or a cancel.
        self._inbox: asyncio.Queue[News | None] = asyncio.Queue()
        self._connection = Connection(upstream, self._inbox.put_nowait)
        self._backlog: Backlog[Entry] = Backlog()
        self._segment: m.Segment | None = None  # the last one that was begun
        self._trace = TurnTrace(None, session, "", START)
        self._read = START
        self._stopping = False
        self._closed = False
        self._worked_at = 0.0

    # -- from the service -------------------------------------------------------------------------

    @property
    def position(self) -> str:
        """The last finished entry of the segments stream."""
        return self._core.position

    def ring(self) -> None:
        """There is something new in the session."""
        self._inbox.put_nowait(None)

    def hand_over(self) -> None:
        """Stop between segments, so that another worker goes on."""
        self._stopping = True
        self.ring()

    @property
    def open(self) -> bool:
        """Whether an entry waits or is being worked on."""
        return bool(self._backlog) or not self._core.idle

    @property
    def unspoken_s(self) -> float:
        """Seconds of speech still to be made: of the entries that wait, and the segment in hand."""
        in_hand = 0.0 if self._segment is None else speech_seconds(self._segment)
        return self._backlog.seconds + (0.0 if self._core.idle else in_hand)

    @property
    def behind_s(self) -> float:
        """How long the entry in hand has produced no output, seconds; 0 while there is none."""
        return 0.0 if self._core.idle else _now() - self._worked_at

    async def run(self) -> bool:
        """Speak. Returns whether another worker must continue the session.

        Offer the session again if there are entries after `position` once it is released.
        Raises LeaseLost if it is another worker's now, StateLost if the server forgot it.
        """
        saved = await self._streams.acquire(self._keys, self._token, self._worker)
        self.rev = int(saved.get("rev", b"0"))
        self._core = await self._restore(saved)
        self._read = self._core.position
        self._worked_at = _now()
        await self._fetch()
        # The worker that closed it may have died before it could leave it.
        self._closed = CLOSED in saved and not self._backlog
        try:
            while not await self._leave():
                await self._step()
            return self._stopping and not self._closed
        finally:
            untold = [self._inbox.get_nowait() for _ in range(self._inbox.qsize())]
            await self._connection.close(news for news in untold if news is not None)

    async def _restore(self, saved: dict[str, bytes]) -> Speech:
        """The core as it was left. A state that cannot be read is lost: tell the listeners."""
        limits = self._settings.limits()
        try:
            return Speech(self._session, limits, saved)
        except Exception:
            if not self._poison.failed(self._session):
                raise
            self._poison.forget(self._session)
        broken = Entry(START, {name.encode(): value for name, value in saved.items()})
        await put_aside(self._streams, self._keys[0], broken, "broken_state")
        telemetry.count_error(m.STATE_LOST.code)
        payload = codec.pack(m.STATE_LOST, self._session)
        await self._streams.move(self._keys[2], {"m": payload})
        return Speech(self._session, limits, {"position": saved.get("position", START.encode())})

    # -- the loop ---------------------------------------------------------------------------------

    async def _step(self) -> None:
        """Begin the entries that can begin, then wait for the next event and handle it."""
        hold = await self._feed()
        if self._closed:
            return
        timer = self._core.timer()
        patience = min(SWEEP_S, self._settings.idle_s) if self._core.idle else BUSY_S
        if hold:
            patience = min(patience, hold)
        if timer is not None:
            patience = min(patience, max(0.0, timer - _now()))
        try:
            async with asyncio.timeout(patience):
                news = await self._inbox.get()
        except TimeoutError:
            await self._on_timeout(timer)
        else:
            await self._handle(news)

    async def _on_timeout(self, timer: float | None) -> None:
        if timer is not None and _now() >= timer:
            owed_since = self._core.owed_since
            actions = self._decide(self._core.expired, _now())
            if owed_since is not None:
                self._reachability.silent(owed_since)
            telemetry.upstream_reconnects.inc(actions.count(Disconnect()))
            await self._perform(actions)
        else:
            await self._fetch()  # the sweep: a ring may have been lost

    async def _handle(self, news: News | None) -> None:
        if news is None:
            await self._on_ring()
        elif self._connection.holds(news):
            await self._on_news(news)

    async def _on_ring(self) -> None:
        await self._fetch()
        if self._core.turn and await self._is_cancelled(self._core.turn):
            await self._perform(self._decide(self._core.cancelled))

    async def _on_news(self, news: News) -> None:
        match news:
            case Came(frame=frame, text=text):
                await self._perform(self._decide(self._core.receive, frame, text, _now()))
            case Opened():
                await self._perform(self._decide(self._core.connected, True, _now()))
            case Lost(error=error):
                telemetry.upstream_reconnects.inc()
                telemetry.logger().warning("upstream_lost", code=error.code)
                await self._perform(self._decide(self._core.lost, error))
            case Due():
                await self._connect(0.0)
            case Renewed():  # else it takes over when the next segment asks for a connection
                if self._core.quiet:
                    await self._connect(0.0)

    # -- entries ----------------------------------------------------------------------------------

    async def _fetch(self) -> None:
        """Append new entries of the segments stream to the backlog."""
        more = True
        while more:
            entries = await self._streams.range(self._keys[1], self._read, FETCH)
            self._backlog.add(entries)
            self._read = entries[-1].id if entries else self._read
            more = len(entries) == FETCH

    async def _feed(self) -> float:
        """Begin entries while the core is idle; seconds to hold the next one back, or 0."""
        while self._core.idle and self._backlog and not self._stopping and not self._closed:
            self._worked_at = _now()
            entry = self._backlog.next
            self._in_hand = entry.id
            message = await self._decode(entry)
            self._follow(message)
            hold = 0.0 if message is None else self._core.wait_before(message, _now())
            if isinstance(message, m.Segment) and await self._is_cancelled(message.turn):
                actions = self._core.skip(entry.id)
            elif self._poison.is_over(self._blamed):
                await put_aside(self._streams, self._keys[1], entry, "failed")
                actions = self._core.put_aside(entry.id, message)
            elif hold:
                return hold
            elif message is None:
                actions = [self._core.pass_over(entry.id)]
            elif isinstance(message, m.Tentative) and len(self._backlog) > 1:
                actions = []  # hints are for when there is nothing else to do
            else:
                actions = self._decide(self._core.begin, entry.id, message, _now())
            self._backlog.drop()
            if isinstance(message, m.Segment):
                self._segment = message
            await self._perform(actions)
        return 0.0

    def _follow(self, message: m.Segments | None) -> None:
        """Let log lines and spans belong to this entry from now on, here and at the backend."""
        logs.bind(turn=getattr(message, "turn", None), segment=getattr(message, "n", None))
        if not isinstance(message, m.Segment | m.Tentative | m.TurnEnd):
            return
        turn, opened_at = message.turn, message.opened_at
        if opened_at and turn != self._trace.turn:
            self._trace = TurnTrace(message.traceparent, self._session, turn, opened_at)
        same = turn == self._trace.turn
        self._core.traceparent = self._trace.traceparent if same else None

    async def _decode(self, entry: Entry) -> m.Segments | None:
        """The message in an entry; None if it cannot be used here."""
        try:
            message = codec.unpack(entry.fields.get(b"m", b""), codec.SEGMENTS)
        except DecodeError as error:
            await put_aside(self._streams, self._keys[1], entry, error.code)
            return None
        except Exception:
            if not self._poison.failed(self._blamed):
                raise
            return None  # `_feed` puts it aside now
        if message is None:
            telemetry.skipped.labels("unknown_type").inc()
        return message

    @property
    def _blamed(self) -> str:
        """What a failure of our own code is counted against: the entry in hand."""
        return f"{self._session} {self._in_hand}"

    def _decide(
        self, ask: Callable[P, list[Action]], *args: P.args, **named: P.kwargs
    ) -> list[Action]:
        """Ask the core. If it fails, the session starts over from what is stored, a few times."""
        try:
            return ask(*args, **named)
        except Exception:
            self._poison.failed(self._blamed)
            raise

    async def _is_cancelled(self, turn: str) -> bool:
        mark = f"cancelled:{turn}"
        return bool(await self._streams.commands.hexists(self._keys[0], mark))

    # -- leaving ----------------------------------------------------------------------------------

    async def _leave(self) -> bool:
        """Leave the session if there is nothing more to do here; whether it was left."""
        if not self._core.idle:
            return False
        if self._closed:
            kept_s = min(TOMBSTONE_S, math.ceil(self._settings.retention_s))
            return await self._vacate("", TOMBSTONE_S, audio_s=kept_s)
        if self._stopping:
            return await self._vacate("", 0)
        idle_s = _now() - self._worked_at
        if self._backlog or idle_s < self._settings.idle_s:
            return False
        await self._perform(self._core.rest())
        if idle_s < self._settings.retention_s:
            return False
        await self._forget_audio()
        return await self._vacate(self._read, self._settings.session_ttl_s)

    async def _forget_audio(self) -> None:
        """Trim the session's audio, all of which is past retention.

        The last entry stays: without a stream its listeners would take its state for lost.
        """
        last = await self._streams.last_id(self._keys[2])
        commit = self._core.pass_over(self._read)
        await self._commit(commit, keep_from="" if last == START else last)

    async def _vacate(self, position: str, expiry_s: int, audio_s: int | None = None) -> bool:
        """Leave if there are no entries after `position`; the keys expire after `expiry_s`."""
        expiries = [expiry_s, expiry_s, expiry_s if audio_s is None else audio_s]
        return await self._streams.vacate(self._keys, self._token, position, expiries)

    # -- what the core wants ----------------------------------------------------------------------

    async def _perform(self, actions: list[Action]) -> None:
        """Do these in order. A refused commit replaces what would have followed it."""
        for action in actions:
            match action:
                case Commit():
                    if not await self._commit(action, self._retention.keep_from()):
                        await self._perform(self._core.cancelled())
                        return
                case Send(frame):
                    await self._connection.send(frame)
                case Connect(after_s, code):
                    if code:
                        telemetry.logger().info("retry", code=code, pause_s=round(after_s, 3))
                    await self._connect(after_s)
                case Disconnect():
                    self._connection.drop()
                case Close():
                    self._closed = True

    async def _connect(self, after_s: float) -> None:
        fresh = not after_s and self._connection.take_over()
        # Jitter: sessions that lost the same backend must not all come back at once.
        if self._connection.ready(after_s * random.uniform(1, 1.25)):  # noqa: S311
            await self._perform(self._core.connected(fresh, _now()))

    async def _commit(self, commit: Commit, keep_from: str) -> bool:
        """Store one commit; False if its turn is cancelled. Raises LeaseLost, StateLost."""
        fields: list[Any] = []
        for name, value in commit.fields.items():
            fields += [name, DELETE if value is None else value]
        done_to = id_after(commit.done_to) if commit.done_to else ""
        payloads = [self._pack(event) for event in commit.events]
        head = [self._token, self.rev + 1, commit.guard, done_to, keep_from]
        key_list = [self._keys[0], self._keys[2], self._keys[1]]
        began_at = _now()
        args = [*head, *fields, "", *payloads]
        status, first = await self._streams.script("commit_speech", key_list, args)
        if status == -3:
            return False
        if status == -1:
            telemetry.fenced_commits.labels("gateway").inc()
            raise LeaseLost(f"session {self._session}")
        if status == -2:
            raise StateLost(f"session {self._session}")
        self.rev += 1
        self._worked_at = _now()
        first_id = first.decode()
        self._note(commit, first_id, _now() - began_at)
        self._core.committed(commit, first_id)
        if commit.done_to:
            logs.bind(turn=None, segment=None)
        return True

    def _pack(self, event: m.Audio) -> bytes:
        try:
            return codec.pack(event, self._session)
        except Exception:
            self._poison.failed(self._blamed)
            raise

    def _note(self, commit: Commit, first_id: str, took_s: float) -> None:
        """Measure what was published, and remember it for retention."""
        for event in commit.events:
            if isinstance(event, m.SegmentStarted):
                self._retention.segment(first_id)
            elif isinstance(event, m.AudioChunk):
                self._retention.audio(first_id, len(event.data))
            elif isinstance(event, m.SegmentDone):
                self._reachability.spoke(_now())
        realtime = self._core.settings.pace == "realtime"
        ahead_s = self._core.pace.ahead(_now()) if realtime else None
        measure(commit, first_id, took_s, ahead_s=ahead_s, trace=self._trace)


def _now() -> float:
    return asyncio.get_running_loop().time()
