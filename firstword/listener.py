"""Following a session's events: from a position, over reconnections, without a silent loss."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from firstword import codec, keys, server_errors
from firstword import messages as m
from firstword.errors import DecodeError, FirstwordError, StateLost
from firstword.heard import Heard
from firstword.ids import id_after, id_before, id_key
from firstword.streams import BLOCK_MS, Entry, Streams, pause

COUNT = 256
CHECK_S = 5.0  # audio is kept for minutes: nothing is trimmed unread within this time
MARKS = 32
_AT_ONCE_MS = 1

Tell = Callable[[m.Resume], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Event:
    """What happened in a session. Listen from `id` to continue after it."""

    id: str
    message: m.Audio


async def now(streams: Streams, session: str) -> str:
    """Where a listener without a position starts: before the open turn, else at the end."""
    # In this order, so that a turn that opens in between is not missed.
    last = await streams.last_id(keys.audio(session))
    opened = await streams.commands.hget(keys.speech_state(session), "turn_at")
    return min(last, id_before(opened.decode()), key=id_key) if opened else last


class Listener:
    """An async iterator over a session's events after `position`; it ends after `closed`.

    It survives the loss of its connection, and of the server's data. In the latter case it yields
    one `error` `state_lost`, publishes what was heard through `tell`, and continues with what is
    spoken from there. Nothing comes twice. If events were trimmed unread, it yields one `Gap`.

    Raises StateLost when the server does not have the position that was `asked` for, and a
    FirstwordError when it refuses us. `position` is the id of the last event that was returned.
    """

    def __init__(
        self,
        streams: Streams,
        session: str,
        position: str,
        *,
        asked: bool = False,
        tell: Tell | None = None,
    ) -> None:
        self.position = position
        self._streams = streams
        self._session = session
        self._stream = keys.audio(session)
        self._from = position
        self._read_up_to = position
        self._asked = asked
        self._tell = tell
        self._heard = Heard()
        self._marks: deque[str] = deque(maxlen=MARKS)  # entries that the stream must still have
        self._lost = False  # `state_lost` was yielded, and nothing since
        self._last_n = -1
        self._ready: deque[Event] = deque()
        self._closed = False
        self._failures = 0
        self._check_at = 0.0  # loop time of the next check that the server has our position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._closed:
                raise StopAsyncIteration
            await self._fill()
        event = self._ready.popleft()
        self.position = event.id
        return event

    async def _fill(self) -> None:
        try:
            await self._read()
            self._failures = 0
        except FirstwordError:
            raise
        except Exception as error:
            final = server_errors.final(error)
            if final is not None:
                raise final from error
            self._failures += 1
            self._check_at = 0.0
            await pause(self._failures)

    async def _read(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock() >= self._check_at
        block_ms = _AT_ONCE_MS if due else BLOCK_MS
        found = await self._streams.wait({self._stream: self._read_up_to}, COUNT, block_ms)
        entries = found.get(self._stream, [])
        if due:
            # After the read, so that nothing can be trimmed between the check and the read.
            if not await self._is_ours(entries):
                await self._start_over()
                return
            await self._tell_gap(entries)
            self._asked = False
        if len(entries) == COUNT:
            self._check_at = 0.0  # there is more: we may be far behind
        elif due or entries:
            self._check_at = clock() + CHECK_S
        for entry in entries:
            if not self._closed:
                await self._take(entry)
        if entries:
            self._marks.append(entries[-1].id)

    # -- what the server has ----------------------------------------------------------------------

    async def _is_ours(self, entries: list[Entry]) -> bool:
        """Whether the stream is still the one we read, or were asked to start in."""
        if self._marks:
            return await self._has(self._marks[-1]) or await self._was_trimmed(self._marks[-1])
        if entries or id_key(await self._last_id()) >= id_key(self._read_up_to):
            return True
        if self._asked:
            raise StateLost(f"session {self._session}")
        return False

    async def _has(self, entry_id: str) -> bool:
        return bool(await self._streams.commands.xrange(self._stream, entry_id, entry_id, count=1))

    async def _last_id(self) -> str:
        return await self._streams.last_id(self._stream)

    async def _kept_from(self) -> str | None:
        raw = await self._streams.commands.hget(keys.speech_state(self._session), "kept_from")
        return raw.decode() if raw else None

    async def _was_trimmed(self, entry_id: str) -> bool:
        kept = await self._kept_from()
        return kept is not None and id_key(entry_id) < id_key(kept)

    async def _tell_gap(self, entries: list[Entry]) -> None:
        kept = await self._kept_from()
        if kept is None or id_key(kept) <= id_key(id_after(self._read_up_to)):
            return
        if not entries or id_key(entries[0].id) >= id_key(kept):
            first = entries[0].id if entries else kept
            self._read_up_to = id_before(first)
            self._ready.append(Event(self._read_up_to, m.Gap(first=first)))

    async def _start_over(self) -> None:
        """Go on from what the stream still has of what we read, or from its beginning."""
        common = min(self._from, await self._last_id(), key=id_key)
        for mark in reversed(self._marks):
            if await self._has(mark):
                common = mark
                break
        self._marks.clear()
        self._read_up_to = common
        await self._on_lost(common)

    async def _on_lost(self, entry_id: str) -> None:
        """Yield `state_lost`, once, and publish what was heard."""
        if self._lost:
            return
        self._lost, self._last_n = True, -1
        self._ready.append(Event(entry_id, m.STATE_LOST))
        if self._tell is None:
            return
        for had in self._heard.positions():
            resume = m.Resume(
                session=self._session,
                turn=had.turn,
                start=had.start,
                samples=had.samples,
                end=had.end,
            )
            with contextlib.suppress(FirstwordError):  # if that fails we hear it again, and drop it
                await self._tell(resume)

    # -- what is read -----------------------------------------------------------------------------

    async def _take(self, entry: Entry) -> None:
        self._read_up_to = entry.id
        try:
            message = codec.unpack(entry.fields.get(b"m", b""), codec.AUDIO)
        except DecodeError:
            return  # from a later version, or garbage: not worth losing the session for
        if isinstance(message, m.ErrorEvent) and message.code == m.STATE_LOST.code:
            self._marks.clear()  # entries before it may belong to another stream
            await self._on_lost(entry.id)
            return
        new = None if message is None else self._heard.take(message)
        if isinstance(new, m.SegmentStarted):
            if new.n <= self._last_n:  # numbers that start again mean lost state
                await self._on_lost(id_before(entry.id))
            self._last_n = new.n
        if new is not None:
            self._lost = False
            self._ready.append(Event(entry.id, new))
            self._closed = isinstance(new, m.Closed)
