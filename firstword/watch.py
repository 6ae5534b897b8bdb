"""Looks after a session's open turns: that the server has them, and what is said of them.

A look twice a second and no connection of its own: what it finds is for the rare case.
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
from firstword.outbox import REFUSALS, Outbox, Piece
from firstword.streams import Entry, Streams

LOOK_S = 0.5
COUNT = 256
_BEFORE_MS = 5_000
"""Audio of a turn has ids after that of its first text: so much before it is surely early enough,
also where two nodes of a cluster tell different times."""


@dataclass(frozen=True, slots=True)
class Published:
    """A message of a session that stands on an ingress stream."""

    stream: str
    entry_id: str


async def is_known(streams: Streams, session: str, published: Published) -> bool:
    """Whether the server still has this message, or what was made of it."""
    found = await streams.commands.xrange(
        published.stream, published.entry_id, published.entry_id, count=1
    )
    if found:
        return True
    raw = await streams.commands.hget(keys.text_state(session), "position")
    return raw is not None and id_key(raw.decode()) >= id_key(published.entry_id)


class Watch:
    """One session's, for one publisher. `again(pieces, lost)` publishes pieces again. `over(turn,
    reason)` is told of turns that take no more text, '' for one that was cancelled."""

    def __init__(
        self,
        streams: Streams,
        session: str,
        outbox: Outbox,
        again: Callable[[Sequence[Piece], bool], Awaitable[None]],
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
        """The last message of ours."""
        self._last = published
        if self._position is None:
            milliseconds, _sequence = id_key(published.entry_id)
            self._position = f"{max(0, milliseconds - _BEFORE_MS)}-0"

    async def run(self) -> None:
        """Look until no turn is open; nothing that goes wrong ends it, or gets out."""
        while not self._outbox.empty:
            await asyncio.sleep(LOOK_S)
            # Whatever is wrong with the server: who publishes is told, and this is soon repeated.
            with contextlib.suppress(Exception):
                await self._look()
        self._position = None
        self._wanted, self._lost = [], False

    async def _look(self) -> None:
        await self._read()
        if self._last is not None and not await is_known(self._streams, self._session, self._last):
            self._lost = True
        if self._lost:
            last = await self._streams.last_id(self._stream)
            self._position = min(self._position or last, last, key=id_key)
            self._wanted = self._outbox.everything()
        if self._wanted:
            await self._again(self._wanted, self._lost)
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
