"""A session for its publishers and listeners. Made by `firstword.client`."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from firstword import keys, listener, server_errors
from firstword import messages as m
from firstword.errors import FirstwordError
from firstword.listener import Event, Listener
from firstword.pieces import AS_THE_SESSION, Manner, TurnOver, split
from firstword.publisher import Publisher
from firstword.room import Room

if TYPE_CHECKING:
    from firstword.client import Firstword

RECEIPT_TIMEOUT_S = 5.0
_ENTRY_ID = re.compile(r"\d{1,20}(-\d{1,20})?", re.ASCII)

OnPublished = Callable[[str, str], None]


class Session:
    """One voice conversation. Made by `Firstword.session()`.

    As an async context manager it opens the session on entry, so that the voice is ready before
    there is text; leaving does not close it, `close()` does. Turns are named, here or by the
    caller, and every piece is numbered, so that publishing may be repeated without harm. Write a
    turn through one Session object, and use its name once in the life of a session. A turn is kept
    here until it is spoken, and published again if the server loses it.
    """

    def __init__(self, firstword: Firstword, opening: m.Open) -> None:
        self.name = opening.session
        self._firstword = firstword
        self._publisher = Publisher(firstword, opening)
        self._entered_at: str | None = None
        self._rooms: Room | None = None

    async def __aenter__(self) -> Self:
        self._entered_at = await self._now()
        await self.open()
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Nothing to undo: the session lives on, for others and for later."""

    # -- speaking ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start the session or update its settings; done by `async with`."""
        await self._publisher.open()

    async def check_room(self) -> None:
        """Raises FirstwordError `busy`, which is retryable, if half of what may wait to be spoken
        waits already; `text` would wait then."""
        await self._room().check()

    async def say(
        self, text: str, *, turn: str | None = None, manner: Manner = AS_THE_SESSION
    ) -> str:
        """Speak a whole turn; returns its name as soon as it is published.

        Waits, as `text` does, while much of the session waits to be spoken.
        """
        turn = self._begin(turn)
        await self.text(text, turn, manner)
        await self.end(turn)
        return turn

    async def stream(
        self,
        pieces: AsyncIterator[str],
        *,
        turn: str | None = None,
        manner: Manner = AS_THE_SESSION,
        on_published: OnPublished | None = None,
    ) -> str:
        """Speak a turn while it is being written; returns its name when the last piece is out.

        `on_published(piece, entry_id)` is called for each piece. If `pieces` raises, what came
        before is spoken and the error is raised here. A pause of up to five minutes, as for a tool,
        does not end the turn. If the turn is cancelled, this returns normally. If you cancel this
        call itself, the turn stays open: `cancel()` or `end()` it.
        """
        turn = self._begin(turn)
        keeping = asyncio.create_task(self._publisher.keep_open(turn))
        try:
            async for piece in pieces:
                entry_id = await self.text(piece, turn, manner)
                if entry_id is not None and on_published is not None:
                    on_published(piece, entry_id)
            await self.end(turn)
        except TurnOver:
            pass
        except FirstwordError:
            raise
        except Exception:
            await self.end(turn)
            raise
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            if (close := getattr(pieces, "aclose", None)) is not None:
                await close()
        return turn

    async def text(
        self, piece: str, turn: str, manner: Manner = AS_THE_SESSION, *, wait: bool = True
    ) -> str | None:
        """Publish a piece of any size; returns its (last) entry id, None if it is empty.

        Waits while half of what may wait to be spoken waits; with `wait` False it raises `busy`
        instead. After a retryable error, calling it again with the same piece is safe, if that has
        at most PIECE_CHARACTERS.
        """
        entry_id = None
        for part in split(piece):
            message = m.Text(
                session=self.name,
                text=part,
                turn=turn,
                voice=manner.voice,
                speed=manner.speed,
                lang=manner.lang,
            )
            last = self._publisher.last
            last_id = None if last is None else last.entry_id
            await self._room().enter(part, last_id, wait=wait)
            entry_id = await self._publisher.say(message)
        return entry_id

    async def flush(self, turn: str) -> str:
        """Speak the text so far; the turn goes on. Returns the entry id."""
        return await self._publisher.say(m.Flush(session=self.name, turn=turn))

    async def end(self, turn: str) -> str:
        """No more text in this turn. Returns the entry id."""
        entry_id = await self._publisher.say(m.End(session=self.name, turn=turn))
        self._publisher.finish(turn)
        return entry_id

    async def cancel(
        self,
        turn: str | None = None,
        played: dict[str, Any] | None = None,
        *,
        timeout_s: float = RECEIPT_TIMEOUT_S,
    ) -> m.TurnCancelled:
        """Stop this turn, or without a name all turns so far; returns the receipt.

        `played` is what the listener had really heard: {turn, n, samples}. Nothing of the turn
        comes after the receipt. Raises FirstwordError `no_receipt` if none arrives in time.
        """
        self._publisher.drop(turn)
        cancel = m.Cancel(session=self.name, turn=turn, played=played)
        async with self._publisher.order:  # it stops what was published before, nothing after
            receipts = await self._from_the_end()
            published = await self._publisher.publish(cancel)
        seeing_to_it = self._firstword.attend(self._publisher.see_to(published))
        try:
            async with asyncio.timeout(timeout_s):
                async for event in receipts:
                    message = event.message
                    if isinstance(message, m.TurnCancelled) and turn in (None, message.turn):
                        self._publisher.heard(message)
                        return message
        except TimeoutError:
            raise FirstwordError(
                "no_receipt",
                f"no segmenter answered the cancel within {timeout_s:g} s: is one running? "
                "The cancel is published and will be obeyed",
                retryable=True,
            ) from None
        finally:
            seeing_to_it.cancel()
        raise FirstwordError("session_closed", f"session {self.name} was closed meanwhile")

    async def close(self) -> None:
        """Speak what is queued, then close the session and its upstream connection."""
        await self._publisher.close()

    # -- listening --------------------------------------------------------------------------------

    async def listener(self, from_id: str | None = None) -> Listener:
        """A listener whose start is fixed when this returns: before anything you publish next.

        It starts after the event `from_id`; without it, at the start of the open turn, else at the
        next one.
        """
        return await self._listener(from_id, None)

    async def listen(self, from_id: str | None = None) -> AsyncIterator[Event]:
        """All events of the session, in order, until it is closed; reconnects on its own.

        Without `from_id`, in a session entered with `async with`, it starts where the session was
        on entry, else as `listener()`. Yields `Gap` if older events are no longer kept, and an
        `error` `state_lost` if the server lost its data; what was heard does not come again.
        Raises StateLost if the server does not have `from_id`.
        """
        async for event in await self._listener(from_id, self._entered_at):
            yield event

    # -- inside -----------------------------------------------------------------------------------

    def _begin(self, turn: str | None) -> str:
        if turn is None:
            return f"t-{secrets.token_hex(6)}"
        self._publisher.check_open(turn)
        return turn

    def _room(self) -> Room:
        if self._rooms is None:
            self._rooms = Room(self._firstword.streams, self.name)
        return self._rooms

    async def _listener(self, from_id: str | None, start: str | None) -> Listener:
        return Listener(
            self._firstword.streams,
            self.name,
            _checked_id(from_id) or start or await self._now(),
            asked=from_id is not None,
            tell=self._publisher.aside,
        )

    async def _now(self) -> str:
        streams = self._firstword.streams
        return await server_errors.insist(lambda: listener.now(streams, self.name), streams.url)

    async def _from_the_end(self) -> Listener:
        streams = self._firstword.streams
        stream = keys.audio(self.name)
        end = await server_errors.insist(lambda: streams.last_id(stream), streams.url)
        return Listener(streams, self.name, end)


def _checked_id(entry_id: str | None) -> str | None:
    """`entry_id` (`5` means `5-0`); raises FirstwordError if it is not an entry id."""
    if entry_id is None:
        return None
    if not _ENTRY_ID.fullmatch(entry_id):
        raise FirstwordError(
            "bad_id", f"{entry_id[:64]!r} is no entry id: they look like 1700000000000-0"
        )
    return entry_id
