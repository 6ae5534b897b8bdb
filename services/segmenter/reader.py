"""One ingress partition: its entries in order to its sessions, its cursor behind all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from firstword import codec, keys, telemetry
from firstword import messages as m
from firstword.dead import put_aside
from firstword.errors import BrokenState, DecodeError, LeaseLost, StateLost
from firstword.ids import START, id_after, id_before, id_key
from firstword.ownership import new_token
from firstword.poison import Poison, where
from firstword.streams import BLOCK_MS, Entry, Streams
from services.segmenter.admission import Admission, Memory, Verdict
from services.segmenter.session import Session
from services.segmenter.settings import SegmenterSettings
from services.segmenter.store import Held, call_gateway, commit, leave, load
from services.segmenter.turns import Output

KEEP_OPEN_S = 1.0
"""Text of a sentence that stays open is stored after this long, and the cursor moved."""
KEEP_HELD_S = 60.0
"""A session with nothing open is released after this long."""
REFUSED_TTL_S = 60
"""How long the state of a session that was refused outlives its last use."""
FAILED = "failed"
"""Reason and error code of an entry on which our own code failed again and again."""
CHECK_S = 5.0
"""How often a reader that gets nothing checks that its stream is still the one it read."""


class CursorKeeper:
    """A reader's place on one ingress stream: fencing token, cursor, trimming."""

    def __init__(self, streams: Streams, unit: str, worker: str) -> None:
        self.stream = keys.ingress_stream(unit)
        self.read = START
        """Last entry read."""
        self.recreated = False
        """The stream was deleted and begun again, with ids lower than those that were read."""
        self._check_at = 0.0
        self._streams = streams
        self._unit = unit
        self._worker = worker
        self._token = new_token()
        self._stored = START

    async def acquire(self) -> list[str]:
        """Install our token and load the cursor; returns the sessions that were held."""
        state = keys.ingress_state(self._unit)
        saved = await self._streams.acquire([state], self._token, self._worker)
        self.read = self._stored = saved.get("cursor", START.encode()).decode()
        if await self._is_of_another():
            self.recreated = True
            self.read = self._stored = START
            await self._streams.commands.hdel(state, "cursor")
        members = await self._streams.commands.zrange(keys.ingress_open(self._unit), 0, -1)
        return [member.decode() for member in members]

    async def wait(self, stop: asyncio.Event, block_ms: int = BLOCK_MS) -> list[Entry]:
        """The next entries; none when the time is up or `stop` is set meanwhile."""
        cursors = {self.stream: self.read}
        reading = asyncio.ensure_future(self._streams.wait(cursors, block_ms=block_ms))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            found = reading.result() if reading.done() else {}
        finally:
            reading.cancel()  # a read claims nothing, so nothing can get lost
            stopping.cancel()
        if not found and _now() >= self._check_at:
            if await self.never_had(self.read):
                raise StateLost(f"ingress {self._unit}")
            self._check_at = _now() + CHECK_S
        return found.get(self.stream, [])

    async def _is_of_another(self) -> bool:
        """Whether the cursor is of a stream that is gone: on ours, all up to it is trimmed."""
        first = await self._streams.range(self.stream, START, count=1)
        unread = bool(first) and id_key(first[0].id) <= id_key(self.read)
        return unread or await self.never_had(self.read)

    async def never_had(self, entry_id: str) -> bool:
        """Whether the stream is not yet at this entry: then it was read from one that is gone."""
        return id_key(await self._streams.last_id(self.stream)) < id_key(entry_id)

    async def store(self, cursor: str, opened: list[str], done: list[str]) -> None:
        """Move the stored cursor and trim what it has passed. Raises LeaseLost, StateLost."""
        if cursor == self._stored and not opened and not done:
            return
        key_list = [keys.ingress_state(self._unit), self.stream, keys.ingress_open(self._unit)]
        args = [self._token, cursor, id_after(cursor), len(opened), *opened, *done]
        status = await self._streams.script("commit_ingress", key_list, args)
        if status == -2:
            raise StateLost(f"ingress {self._unit}")
        if status != 1:
            telemetry.fenced_commits.labels("segmenter").inc()
            raise LeaseLost(f"ingress {self._unit}")
        self._stored = cursor


class DoorReader:
    """Copies what comes through the door, in order, to the partitions."""

    def __init__(
        self,
        streams: Streams,
        worker: str,
        settings: SegmenterSettings,
        poison: Poison | None = None,
    ) -> None:
        self._streams = streams
        self._poison = poison or Poison()
        self.cursor = CursorKeeper(streams, "door", worker)
        self._partitions = settings.partitions

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set or the unit is another's (LeaseLost)."""
        await self.cursor.acquire()
        while not stop.is_set():
            for entry in await self.cursor.wait(stop):
                await self._copy(entry)
                self.cursor.read = entry.id
            await self.cursor.store(self.cursor.read, [], [])

    async def _copy(self, entry: Entry) -> None:
        messages = await read(self._streams, self.cursor.stream, entry, self._poison)
        if not messages:
            return
        target = keys.ingress(keys.partition_of(messages[0].session, self._partitions))
        fields = {**entry.fields, b"src": entry.id}
        if self.cursor.recreated:
            del fields[b"src"]  # sessions know greater ones and would take it for a repetition
        await self._streams.move(target, fields)


class PartitionReader:
    """Reads one partition; everything of a session is done here, in order, by one task."""

    def __init__(
        self,
        streams: Streams,
        unit: str,
        worker: str,
        settings: SegmenterSettings,
        memory: Memory,
        poison: Poison | None = None,
    ) -> None:
        self._streams = streams
        self._poison = poison or Poison()
        self._worker = worker
        self._settings = settings
        self._defaults = settings.defaults()
        self._admission = Admission(memory)
        self.cursor = CursorKeeper(streams, unit, worker)
        self._held: dict[str, Held] = {}
        self._indexed: set[str] = set()
        self._stored_at = 0.0

    @property
    def open_sessions(self) -> int:
        """How many of its sessions have a turn that is not over."""
        return sum(held.session.busy for held in self._held.values())

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then store everything so that a successor goes on at once.

        Raises LeaseLost or StateLost; the caller begins anew if the partition is still ours.
        """
        self._indexed = set(await self.cursor.acquire())
        for held in await asyncio.gather(*map(self._hold, self._indexed)):
            held.unheard = True  # the last worker may have died between its commit and its call
        try:
            while not stop.is_set():
                await self._step(stop)
            await self._store_all()
        except StateLost:
            await self._tell_state_lost()
            raise

    async def _step(self, stop: asyncio.Event) -> None:
        outputs: dict[str, list[Output]] = {}
        for entry in await self.cursor.wait(stop, self._patience()):
            await self._take(entry, outputs)
            self.cursor.read = entry.id
        now = _now()
        for name, held in self._held.items():
            at = held.session.timer()
            if at is not None and at <= now:
                outputs.setdefault(name, []).extend(self._tick(held.session, now))
        await self._commit({name: made for name, made in outputs.items() if made})
        if now - self._stored_at >= KEEP_OPEN_S:
            await self._store(now)

    def _tick(self, session: Session, now: float) -> list[Output]:
        try:
            return session.tick(now)
        except Exception as error:
            return self._give_up(session, error)

    def _give_up(self, session: Session, error: Exception) -> list[Output]:
        """End the session's open turns if it has failed too often; until then, raise."""
        if not self._poison.failed(session.name):
            raise error
        self._poison.forget(session.name)
        telemetry.logger().warning("turns_given_up", session=session.name, where=where(error))
        return session.give_up()

    def _patience(self) -> int:
        """Milliseconds until a timer of a session wants us."""
        now = _now()
        timers = (held.session.timer() for held in self._held.values())
        at = min((t for t in timers if t is not None), default=now + KEEP_OPEN_S)
        return max(1, int((min(at - now, KEEP_OPEN_S)) * 1000))

    async def _take(self, entry: Entry, outputs: dict[str, list[Output]]) -> None:
        messages = await read(self._streams, self.cursor.stream, entry, self._poison)
        if not messages:
            return
        now = _now()
        held = await self._hold(messages[0].session)
        if id_key(entry.id) <= id_key(held.seen):
            held.unheard = True  # by a worker that may have died between its commit and its call
            return
        if not await self._admit(held, messages, now):
            return
        if held.session.full:  # as far as we know: the gateway does not say when it takes something
            segments = keys.segments(held.session.name)
            held.session.looked(await self._streams.commands.xlen(segments))
        try:
            made = held.session.handle(entry.id, messages, now)
        except Exception:
            self._poison.failed(entry.id)
            raise  # what is in memory is half done: start over from what is stored
        outputs.setdefault(held.session.name, []).extend(made)
        held.note(entry.id, now)
        held.cancels += [msg.src or entry.id for msg in messages if isinstance(msg, m.Cancel)]
        held.used_at = now

    async def _admit(self, held: Held, messages: Sequence[m.Ingress], now: float) -> bool:
        verdict = self._admission.judge(messages, held.session.opened, now)
        if verdict is Verdict.TAKE:
            return True
        telemetry.skipped.labels("server_full").inc()
        if verdict is Verdict.REFUSE:
            event = m.ErrorEvent(
                code="server_full",
                message="the server has no memory left for another session: publish this later",
                retryable=True,
                turn=getattr(messages[0], "turn", None),
            )
            telemetry.count_error(event.code)
            names = {"session": held.session.name, "turn": event.turn}
            telemetry.logger().warning("error_told", code=event.code, **names)
            await self._streams.tell(held.session.name, event)
        return False

    async def _hold(self, name: str) -> Held:
        held = self._held.get(name)
        if held is None:
            held = await self._load(name)
            ahead = id_key(held.position) > id_key(self.cursor.read)
            if ahead and (self.cursor.recreated or await self.cursor.never_had(held.position)):
                held.position = held.seen = START
            self._held[name] = held
        return held

    async def _load(self, name: str) -> Held:
        terms = (self._streams, name, new_token(), self._worker, self._defaults, _now())
        try:
            return await load(*terms)
        except BrokenState as error:
            if not self._poison.failed(name):
                raise
            held = await load(*terms, anew=True)
            state = Entry(START, {b"state": error.raw})
            await put_aside(self._streams, keys.text_state(name), state, error.code, name)
            await self._streams.tell(name, m.STATE_LOST)
            self._poison.forget(name)
            return held

    async def _commit(self, outputs: dict[str, list[Output]]) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for name, made in outputs.items():
                    tasks.create_task(self._commit_one(self._held[name], made))
        except* (StateLost, LeaseLost) as group:
            found = sorted(group.exceptions, key=lambda error: isinstance(error, LeaseLost))
            raise found[0] from None  # StateLost first: listeners must be told

    async def _commit_one(self, held: Held, made: list[Output]) -> None:
        try:
            await commit(self._streams, held, made)
        except BrokenState as error:
            ends = self._give_up(held.session, error)
            await commit(self._streams, held, ends)

    async def _tell_state_lost(self) -> None:
        """The server forgot what we had committed: tell the listeners before we start over."""
        for name, held in list(self._held.items()):
            if held.session.busy:
                telemetry.logger().warning("error_told", session=name, code=m.STATE_LOST.code)
                await self._streams.tell(name, m.STATE_LOST)
        self._held.clear()  # they are told once

    async def farewell(self) -> None:
        """This reader is at its end. A successor continues with what the server has; where that is
        less than we had stored, tell the listeners. If this raises, it may be called again."""
        for name, held in list(self._held.items()):
            raw = await self._streams.commands.hget(keys.text_state(name), "rev")
            if int(raw or 0) >= held.rev:
                del self._held[name]
        await self._tell_state_lost()

    async def _store(self, now: float) -> None:
        """Store what has been open for a while, move the cursor, release idle sessions."""
        old: dict[str, list[Output]] = {
            name: []
            for name, held in self._held.items()
            if held.pending_from is not None and now - held.pending_since >= KEEP_OPEN_S
        }
        await self._commit(old)
        await self._call_gateways()
        await self._move_cursor()
        self._stored_at = now
        for name, held in list(self._held.items()):
            idle = now - held.used_at >= KEEP_HELD_S
            if idle and not held.session.busy and held.pending_from is None:
                del self._held[name]
                never_was = held.rev == 0  # it was refused: nothing of it is needed later
                expiry_s = REFUSED_TTL_S if never_was else self._settings.session_ttl_s
                await leave(self._streams, held, expiry_s)

    async def _store_all(self) -> None:
        pending: dict[str, list[Output]] = {
            name: [] for name, held in self._held.items() if held.pending_from is not None
        }
        await self._commit(pending)
        await self._call_gateways()
        await self._move_cursor()

    async def _call_gateways(self) -> None:
        """Before the cursor advances: a session with work must have a gateway that knows of it."""
        for held in self._held.values():
            if held.unheard:
                await call_gateway(self._streams, held, _now())

    async def _move_cursor(self) -> None:
        """The cursor passes an entry only once its session has stored it and is indexed.

        All held sessions are indexed: those with open text so that a successor speaks it, the
        others so that somebody lets their state expire.
        """
        pending = [held.pending_from for held in self._held.values() if held.pending_from]
        oldest = min(pending, key=id_key, default=None)
        cursor = self.cursor.read if oldest is None else id_before(oldest)
        names = set(self._held)
        opened, done = sorted(names - self._indexed), sorted(self._indexed - names)
        await self.cursor.store(cursor, opened, done)
        self._indexed = names


async def read(streams: Streams, stream: str, entry: Entry, poison: Poison) -> Sequence[m.Ingress]:
    """The messages of an entry; none if it cannot be used, which is then reported and counted."""
    try:
        messages = codec.decode_ingress(entry.fields)
    except DecodeError as error:
        await refuse(streams, stream, entry, error)
        return ()
    except Exception:
        if not poison.failed(entry.id):
            raise
        await put_aside(streams, stream, entry, FAILED)
        return ()
    if not messages:
        telemetry.skipped.labels("unknown_type").inc()
    elif poison.is_over(entry.id):
        told = DecodeError(FAILED, "this could not be handled, and was put aside for an operator")
        told.session = messages[0].session
        await refuse(streams, stream, entry, told)
        return ()
    return messages


async def refuse(streams: Streams, stream: str, entry: Entry, error: DecodeError) -> None:
    """Put an unusable entry among the dead letters and tell its session, if it names one."""
    await put_aside(streams, stream, entry, error.code, error.session)
    if error.session is not None:
        telemetry.count_error(error.code)
        event = m.ErrorEvent(code=error.code, message=error.message, retryable=False)
        await streams.tell(error.session, event)


def _now() -> float:
    return asyncio.get_running_loop().time()
