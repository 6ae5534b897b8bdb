"""Watches a session's open turns: whether the server has them, and what its events say.

It looks twice a second and needs no connection of its own; it rarely finds anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from firstword import codec, keys
from firstword import messages as m
from firstword.errors import DecodeError
from firstword.ids import id_key
from firstword.messages import STATE_LOST
from firstword.outbox import REFUSALS, TAKEN_FIELDS, Outbox, Piece, Taken
from firstword.streams import Entry, Streams

LOOK_S = 0.5
COUNT = 256
_BEFORE_MS = 5_000
"""Audio of a turn has ids after that of its first text: so much before it is surely early enough,
also where two nodes of a cluster tell different times."""


@dataclass(frozen=True, slots=True)
class Published:
    """A message of a session that was put on an ingress stream."""

    stream: str
    entry_id: str
    message: m.Ingress


async def stands(streams: Streams, published: Published) -> bool:
    """Whether it is still on the stream. An entry with its id may be another message: after a
    rewind the server gives ids again."""
    entry_id, message = published.entry_id, published.message
    found = await streams.commands.xrange(published.stream, entry_id, entry_id, count=1)
    mine = codec.pack(message, message.session)
    return any(fields and fields.get(b"m") == mine for _, fields in found)


async def taken_of(streams: Streams, session: str) -> Taken:
    """What the session's text side has taken. Call it after `stands`: entries are stored with the
    session before they are trimmed.

    The last entry id that it has read proves nothing: after a rewind any new entry, even a
    listener's `resume`, has a greater id than the lost ones.
    """
    return Taken.read(await streams.commands.hmget(keys.text_state(session), *TAKEN_FIELDS))


async def is_known(streams: Streams, cancel: Published) -> bool:
    """Whether the server still has this cancel, or its effect."""
    if await stands(streams, cancel):
        return True
    taken = await taken_of(streams, cancel.message.session)
    return cancel.entry_id in taken.cancels


class Watch:
    """Watches one session for one publisher. `again(messages, lost)` must publish these, and with
    `lost` all open turns before them. `over(turn, reason)` is called for turns that take no more
    text; the reason of a cancelled one is ''."""

    def __init__(
        self,
        streams: Streams,
        session: str,
        outbox: Outbox,
        again: Callable[[Sequence[Piece | m.Cancel], bool], Awaitable[None]],
        over: Callable[[str, str], None],
    ) -> None:
        self._streams = streams
        self._session = session
        self._outbox = outbox
        self._again = again
        self._over = over
        self._stream = keys.audio(session)
        self._last: Published | None = None
        self._position: str | None = None
        self._wanted: list[Piece] = []
        self._lost = False

    def note(self, published: Published) -> None:
        """Note our last piece."""
        self._last = published
        if self._position is None:
            milliseconds, _sequence = id_key(published.entry_id)
            self._position = f"{max(0, milliseconds - _BEFORE_MS)}-0"

    async def run(self) -> None:
        """Look until no turn is open; errors neither end it nor leave it."""
        while not self._outbox.empty:
            await asyncio.sleep(LOOK_S)
            # Whatever is wrong with the server: publishing reports it, and this is soon repeated.
            with contextlib.suppress(Exception):
                await self._look()
        self._position = None
        self._wanted, self._lost = [], False

    async def misses_something(self) -> bool:
        """Whether the server lost something of the open turns."""
        published = self._outbox.published()
        if self._last is None or await stands(self._streams, self._last):
            return False
        return self._outbox.is_missed(published, await taken_of(self._streams, self._session))

    async def _look(self) -> None:
        await self._read()
        published, stopped = self._outbox.published(), self._outbox.stopped()
        standing = self._last is None or await stands(self._streams, self._last)
        taken = await taken_of(self._streams, self._session)
        self._wanted += self._outbox.reopen(taken)
        if not standing and not self._wanted:  # requested pieces go first
            self._lost = self._lost or self._outbox.is_missed(published, taken)
        wanted: list[Piece | m.Cancel] = [*self._wanted]
        if self._lost:
            last = await self._streams.last_id(self._stream)
            self._position = min(self._position or last, last, key=id_key)
            wanted = []
        revived = self._outbox.revived(stopped, taken)
        wanted += [m.Cancel(session=self._session, turn=turn) for turn in revived]
        if wanted or self._lost:
            await self._again(wanted, self._lost)
        self._wanted, self._lost = [], False

    async def _read(self) -> None:
        while self._position is not None:
            entries = await self._streams.range(self._stream, self._position, COUNT)
            for entry in entries:
                self._position = entry.id
                self._take(entry)
            if len(entries) < COUNT:
                break

    def _take(self, entry: Entry) -> None:
        try:
            message = codec.unpack(entry.fields.get(b"m", b""), codec.AUDIO)
        except DecodeError:
            return
        if message is None:
            return
        self._wanted += self._outbox.take(message)
        match message:
            case m.ErrorEvent(code=STATE_LOST.code):
                self._lost = True
            case m.ErrorEvent(code=code, turn=str(turn)) if code in REFUSALS:
                self._over(turn, code)
            case m.TurnDone():
                self._over(message.turn, message.reason)
            case m.TurnCancelled():
                for turn in message.stopped:
                    self._over(turn, "")
            case _:
                pass
