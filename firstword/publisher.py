"""One publisher's messages to a session: each once and in order, whatever the server forgets."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from firstword import keys, server_errors, traceparent, watch
from firstword import messages as m
from firstword.errors import FirstwordError
from firstword.outbox import Outbox, Piece
from firstword.pieces import TurnCut, TurnOver
from firstword.watch import Published, Watch, is_known

if TYPE_CHECKING:
    from firstword.client import Firstword

KEEP_OPEN_S = 10.0
"""How often a turn whose text is still being written says that it is, when nothing comes."""
MOST_SILENCES = 30
"""How often one after the other; its writer hangs, then."""
_REMEMBERED_TURNS = 256  # as many as the segmenter remembers


class Route:
    """The way of a session's entries: by the door or straight to its partition, as the first went.

    It never changes: two streams have no order between them.
    """

    def __init__(self, firstword: Firstword, session: str) -> None:
        self._firstword = firstword
        self._session = session
        self._chosen: tuple[int | None] | None = None

    async def append(self, message: m.Ingress) -> Published:
        """Append once, without a retry."""
        if self._chosen is None:
            self._chosen = (await self._firstword.partitions(),)
        partitions = self._chosen[0]
        entry_id = await self._firstword.streams.publish(message, partitions)
        return Published(keys.ingress_of(self._session, partitions), entry_id, message)


class Publisher:
    """Numbers the pieces of turns, appends them, and keeps them to append them again.

    Callers of `publish` must hold `order`, so that entries are on the stream in the right order.
    """

    def __init__(self, firstword: Firstword, opening: m.Open) -> None:
        self.order = asyncio.Lock()
        self.last: Published | None = None
        """The last piece of a turn."""
        self._firstword = firstword
        self._opening = opening
        self._opened = False
        self._closing: m.Close | None = None
        """The close, if nothing was published after it."""
        self._session = opening.session
        self._route = Route(firstword, opening.session)
        self._next_seq: dict[str, int] = {}
        self._over: dict[str, str] = {}  # turns that nothing can be said in any more, and why
        self._outbox = Outbox()
        self._owed: deque[m.Open | m.Close | m.Cancel | Piece] = deque()
        """To be published before anything else."""
        self._watch: Watch | None = None
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Publish the session's settings."""
        async with self.order:
            await self.publish(self._opening)
            self._opened = True
            self._closing = None

    async def close(self) -> None:
        """Publish the session's close."""
        closing = m.Close(session=self._session)
        async with self.order:
            await self.publish(closing)
            self._closing = closing

    # -- turns ------------------------------------------------------------------------------------

    def check_open(self, turn: str) -> None:
        """Raises TurnOver or TurnCut if this turn takes no more text."""
        reason = self._over.get(turn)
        if reason in ("", "complete"):
            raise TurnOver(turn)
        if reason is not None:
            raise TurnCut(turn, reason)

    def finish(self, turn: str, reason: str = "") -> None:
        """This turn takes no more text; it is kept until it is spoken."""
        self._next_seq.pop(turn, None)
        self._over.setdefault(turn, reason)
        if len(self._over) > _REMEMBERED_TURNS:
            del self._over[next(iter(self._over))]

    def heard(self, receipt: m.TurnCancelled) -> None:
        """Note that these turns are stopped: if the server rewinds, they are cancelled again."""
        self._outbox.take(receipt)

    def drop(self, turn: str | None) -> None:
        """This turn is cancelled, or without a name all: they will not be published again."""
        for name in list(self._next_seq) if turn is None else [turn]:
            self.finish(name)
        if turn is None:
            self._outbox.clear()
        else:
            self._outbox.forget(turn)

    async def say(self, message: Piece) -> str:
        """Publish with the turn's next number; returns the entry id.

        A failure leaves the number unused, so that repeating the call is safe. A cancelled call
        has most likely been sent, so its number counts as used: a gap costs a moment, a number
        used twice costs words.
        """
        turn = keys.check_name("turn", message.turn or "")
        async with self.order:
            self.check_open(turn)
            seq = self._next_seq.setdefault(turn, 0)
            piece = dataclasses.replace(message, seq=seq, traceparent=traceparent.current())
            self._outbox.check(piece)
            if piece.seq == 0 and not self._outbox.empty:
                # If earlier turns were lost, this one would be spoken before them.
                await self._insist_on_what_is_kept()
            try:
                published = await self.publish(piece)
            except asyncio.CancelledError:
                self._advance(turn, piece)
                raise
            self._note(published)
            self._advance(turn, piece)
            return published.entry_id

    async def keep_open(self, turn: str) -> None:
        """Until cancelled: publish an empty piece now and then while a begun turn is silent, since
        one without any input counts as abandoned."""
        silences, seen = 0, None
        while silences < MOST_SILENCES:
            await asyncio.sleep(KEEP_OPEN_S)
            seq = self._next_seq.get(turn)
            if seq is None or seq != seen:
                silences = 0
            else:
                with contextlib.suppress(FirstwordError):  # whoever writes is told
                    await self.say(m.Text(session=self._session, text="", turn=turn))
                silences += 1
            seen = self._next_seq.get(turn)

    def _advance(self, turn: str, piece: Piece) -> None:
        self._closing = None
        if turn not in self._next_seq:  # cancelled while we waited
            return
        self._next_seq[turn] += 1
        self._outbox.keep(piece)
        if self._watching is None or self._watching.done():
            self._watching = self._firstword.attend(self._watcher().run())

    # -- appending --------------------------------------------------------------------------------

    async def publish(self, message: m.Ingress) -> Published:
        """Append, and again while no reply comes: each of our messages may be there twice.

        A server that was away may have come back without its data: then what it lost goes first.
        """
        was_away = False

        async def attempt() -> Published:
            nonlocal was_away
            if was_away:
                await self._look_for_what_is_kept()
            was_away = True
            await self._settle()
            return await self._route.append(message)

        return await server_errors.insist(attempt, self._firstword.streams.url)

    async def aside(self, message: m.Ingress) -> Published:
        """Append something that needs no order among the others."""
        return await server_errors.insist(
            partial(self._route.append, message), self._firstword.streams.url
        )

    async def see_to(self, cancel: Published) -> None:
        """While this runs, publish the cancel again whenever the server has lost it."""
        streams = self._firstword.streams
        while True:
            await asyncio.sleep(watch.LOOK_S)
            with contextlib.suppress(FirstwordError):  # the server is away: try again soon
                known = partial(is_known, streams, cancel)
                if not await server_errors.insist(known, streams.url):
                    cancel = await self.aside(cancel.message)

    def _note(self, published: Published) -> None:
        self.last = published
        self._watcher().note(published)

    # -- what the server lost ---------------------------------------------------------------------

    def _watcher(self) -> Watch:
        if self._watch is None:
            streams = self._firstword.streams
            self._watch = Watch(streams, self._session, self._outbox, self._again, self._on_over)
        return self._watch

    async def _again(self, messages: Sequence[Piece | m.Cancel], lost: bool) -> None:
        async with self.order:
            if lost:
                self._owe_everything()
            self._owed.extend(messages)
            await server_errors.insist(self._settle, self._firstword.streams.url)

    def _on_over(self, turn: str, reason: str) -> None:
        if turn in self._next_seq:
            self.finish(turn, reason)

    async def _insist_on_what_is_kept(self) -> None:
        await server_errors.insist(self._look_for_what_is_kept, self._firstword.streams.url)

    async def _look_for_what_is_kept(self) -> None:
        if not self._outbox.empty and await self._watcher().misses_something():
            self._owe_everything()

    def _owe_everything(self) -> None:
        self._owed.clear()
        if self._opened:
            self._owed.append(self._opening)
        self._owed.extend(self._outbox.everything())
        if self._closing is not None:
            self._owed.append(self._closing)

    async def _settle(self) -> None:
        """Publish what is owed, except what was cancelled meanwhile."""
        while self._owed:
            message = self._owed[0]
            if isinstance(message, m.Open | m.Close | m.Cancel):
                await self._route.append(message)
            elif self._outbox.has(message.turn or ""):
                self._note(await self._route.append(message))
            self._owed.popleft()
