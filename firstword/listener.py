"""Following a session's events: from a position, over reconnections, without a silent loss."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Self

from firstword import codec, keys, server_errors
from firstword import messages as m
from firstword.errors import DecodeError, FirstwordError, StateLost
from firstword.ids import id_after, id_before, id_key
from firstword.streams import BLOCK_MS, Entry, Streams, pause

COUNT = 256
CHECK_S = 5.0  # audio is kept for minutes: within this, nothing can have been trimmed unread
_AT_ONCE_MS = 1


@dataclass(frozen=True, slots=True)
class Event:
    """What happened in a session. `id` is where to go on listening after it."""

    id: str
    message: m.Audio


async def now(streams: Streams, session: str) -> str:
    """Where a listener without a position starts: before the turn that is open, else at the end."""
    # In this order, so that a turn that opens in between is not missed.
    last = await streams.last_id(keys.audio(session))
    opened = await streams.commands.hget(keys.speech_state(session), "turn_at")
    return min(last, id_before(opened.decode()), key=id_key) if opened else last


class Listener:
    """An async iterator over a session's events after `position`; it ends after `closed`.

    It survives the loss of its connection. Events that were trimmed before they could be read are
    told by one `Gap`. Raises StateLost when the server has less than was already heard, and a
    FirstwordError when it refuses us. `position` is the id of the last event that was returned.
    """

    def __init__(self, streams: Streams, session: str, position: str) -> None:
        self.position = position
        self._streams = streams
        self._session = session
        self._stream = keys.audio(session)
        self._read_up_to = position
        self._ready: deque[Event] = deque()
        self._closed = False
        self._failures = 0
        self._check_at = 0.0  # loop time from which on the server may lack our position

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
            await self._check(entries)
        if len(entries) == COUNT:
            self._check_at = 0.0  # there is more: we may be far behind
        elif due or entries:
            self._check_at = clock() + CHECK_S
        for entry in entries:
            if not self._closed:
                self._take(entry)

    async def _check(self, entries: list[Entry]) -> None:
        """Whether the server still has what lies after our position. Runs after the read, so that
        nothing can be trimmed between the check and the read."""
        if not entries:
            last = await self._streams.last_id(self._stream)
            if id_key(last) < id_key(self._read_up_to):
                raise StateLost(f"session {self._session}")
        raw = await self._streams.commands.hget(keys.speech_state(self._session), "kept_from")
        if not raw:
            return
        kept = raw.decode()
        trimmed = id_key(kept) > id_key(id_after(self._read_up_to))
        if trimmed and (not entries or id_key(entries[0].id) >= id_key(kept)):
            first = entries[0].id if entries else kept
            self._read_up_to = id_before(first)
            self._ready.append(Event(self._read_up_to, m.Gap(first=first)))

    def _take(self, entry: Entry) -> None:
        self._read_up_to = entry.id
        try:
            message = codec.unpack(entry.fields.get(b"m", b""), codec.AUDIO)
        except DecodeError:
            return  # a later version's, or nobody's: not worth losing the session for
        if message is not None:
            self._ready.append(Event(entry.id, message))
            self._closed = self._closed or isinstance(message, m.Closed)
