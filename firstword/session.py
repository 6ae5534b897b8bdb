"""A session as its publishers and listeners hold it. `firstword.client` makes them."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from firstword import keys, listener, server_errors
from firstword import messages as m
from firstword.errors import FirstwordError
from firstword.listener import Event, Listener

if TYPE_CHECKING:
    from firstword.client import Firstword

PIECE_CHARACTERS = 65_536  # at most 256 kB of UTF-8
RECEIPT_TIMEOUT_S = 5.0
_ENTRY_ID = re.compile(r"\d{1,20}(-\d{1,20})?", re.ASCII)
_REMEMBERED_TURNS = 256  # as many as the segmenter remembers

Published = Callable[[str, str], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a turn is spoken where it differs from its session; None: as the session."""

    voice: str | None = None
    speed: float | None = None
    lang: str | None = None


AS_THE_SESSION = Manner()


class TurnOver(FirstwordError):
    """The turn has ended or was cancelled: nothing can be said in it any more."""

    def __init__(self, turn: str) -> None:
        super().__init__("turn_over", f"turn {turn} is over: begin another one")


class Session:
    """One voice conversation. Made by `Firstword.session()`.

    As an async context manager it opens the session on entry, so that the voice is ready before
    there is text; leaving does not close it, `close()` does. Turns are named, here or by the
    caller, and every piece is numbered, so that publishing may be repeated without harm. A turn
    is written through one Session object; its name is used once in the life of a session.
    """

    def __init__(self, firstword: Firstword, opening: m.Open) -> None:
        self.name = opening.session
        self._firstword = firstword
        self._opening = opening
        self._entered_at: str | None = None
        self._route: tuple[int | None] | None = None
        self._order = asyncio.Lock()
        self._next_seq: dict[str, int] = {}
        self._over: deque[str] = deque(maxlen=_REMEMBERED_TURNS)

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
        async with self._order:
            await self._publish(self._opening)

    async def say(
        self, text: str, *, turn: str | None = None, manner: Manner = AS_THE_SESSION
    ) -> str:
        """Speak a whole turn; returns its name as soon as it is published."""
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
        on_published: Published | None = None,
    ) -> str:
        """Speak a turn while it is being written; returns its name when the last piece is out.

        `on_published(piece, entry_id)` is called for each piece. When `pieces` raises, what came
        is spoken and the error goes on to the caller. A cancel of the turn ends the stream
        quietly. Whoever cancels this call itself says what is to be of the turn: `cancel()`, or
        `end()`.
        """
        turn = self._begin(turn)
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
            if (close := getattr(pieces, "aclose", None)) is not None:
                await close()
        return turn

    async def text(self, piece: str, turn: str, manner: Manner = AS_THE_SESSION) -> str | None:
        """Publish a piece of any size; returns its (last) entry id, None if it is empty.

        When this fails with a retryable error, calling it again with the same piece is safe, up
        to PIECE_CHARACTERS.
        """
        entry_id = None
        for part in _split(piece):
            message = m.Text(
                session=self.name,
                text=part,
                turn=turn,
                voice=manner.voice,
                speed=manner.speed,
                lang=manner.lang,
            )
            entry_id = await self._say(message)
        return entry_id

    async def flush(self, turn: str) -> str:
        """Speak what is there now; the turn goes on. Returns the entry id."""
        return await self._say(m.Flush(session=self.name, turn=turn))

    async def end(self, turn: str) -> str:
        """No more text in this turn. Returns the entry id."""
        entry_id = await self._say(m.End(session=self.name, turn=turn))
        self._finish(turn)
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
        for name in list(self._next_seq) if turn is None else [turn]:
            self._finish(name)
        async with self._order:  # so that it stops what was called before, and nothing after
            receipts = await self._from_the_end()
            await self._publish(m.Cancel(session=self.name, turn=turn, played=played))
        try:
            async with asyncio.timeout(timeout_s):
                async for event in receipts:
                    message = event.message
                    if isinstance(message, m.TurnCancelled) and turn in (None, message.turn):
                        return message
        except TimeoutError:
            raise FirstwordError(
                "no_receipt",
                f"no segmenter answered the cancel within {timeout_s:g} s: is one running? "
                "The cancel is published and will be obeyed",
                retryable=True,
            ) from None
        raise FirstwordError("session_closed", f"session {self.name} was closed meanwhile")

    async def close(self) -> None:
        """After what is queued, close the session and its upstream connection."""
        async with self._order:
            await self._publish(m.Close(session=self.name))

    # -- listening --------------------------------------------------------------------------------

    async def listener(self, from_id: str | None = None) -> Listener:
        """A listener whose start is fixed when this returns, so before anything you publish next.

        From the event after `from_id`; without it, from the start of the turn that is open, else
        from the next one.
        """
        streams = self._firstword.streams
        return Listener(streams, self.name, _checked_id(from_id) or await self._now())

    async def listen(self, from_id: str | None = None) -> AsyncIterator[Event]:
        """All events of the session, in order, until it is closed; reconnects on its own.

        Without `from_id`, in a session that was entered with `async with`: from then on (and the
        turn that was open then); else as `listener()`. Yields `Gap` first if older events are not
        kept any more. Raises StateLost if the server never had, or has lost, that position.
        """
        async for event in await self.listener(from_id or self._entered_at):
            yield event

    # -- inside -----------------------------------------------------------------------------------

    def _begin(self, turn: str | None) -> str:
        if turn is None:
            return f"t-{secrets.token_hex(6)}"
        if turn in self._over:
            raise TurnOver(turn)
        return turn

    def _finish(self, turn: str) -> None:
        self._next_seq.pop(turn, None)
        if turn not in self._over:
            self._over.append(turn)

    async def _say(self, message: m.Text | m.Flush | m.End) -> str:
        """Publish with the turn's next number.

        A failure leaves the number unused, so that the same call made again repeats it. A call
        that is cancelled has most likely been sent: its number counts as used, since a gap costs
        a moment and a number used twice costs the words.
        """
        turn = keys.check_name("turn", message.turn or "")
        async with self._order:  # entries stand on the stream in the order of their numbers
            if turn in self._over:
                raise TurnOver(turn)
            seq = self._next_seq.setdefault(turn, 0)
            try:
                entry_id = await self._publish(dataclasses.replace(message, seq=seq))
            except asyncio.CancelledError:
                self._advance(turn, seq)
                raise
            self._advance(turn, seq)
            return entry_id

    def _advance(self, turn: str, seq: int) -> None:
        if turn in self._next_seq:  # not cancelled while we waited
            self._next_seq[turn] = seq + 1

    async def _publish(self, message: m.Ingress) -> str:
        """Append, again while no reply comes: every message of ours may stand there twice."""
        streams = self._firstword.streams

        async def append() -> str:
            if self._route is None:
                # Kept for good: two streams have no order between them.
                self._route = (await self._firstword.partitions(),)
            return await streams.publish(message, self._route[0])

        return await server_errors.insist(append, streams.url)

    async def _now(self) -> str:
        streams = self._firstword.streams
        return await server_errors.insist(lambda: listener.now(streams, self.name), streams.url)

    async def _from_the_end(self) -> Listener:
        streams = self._firstword.streams
        stream = keys.audio(self.name)
        end = await server_errors.insist(lambda: streams.last_id(stream), streams.url)
        return Listener(streams, self.name, end)


def _split(piece: str) -> list[str]:
    """Parts small enough for one entry each."""
    try:
        if len(piece) <= PIECE_CHARACTERS:
            piece.encode("utf-8", "surrogateescape")
            return [piece] if piece else []
    except UnicodeEncodeError as error:
        raise FirstwordError(
            "bad_text", "the text holds half of a surrogate pair: join the pieces before"
        ) from error
    return [
        part
        for start in range(0, len(piece), PIECE_CHARACTERS)
        for part in _split(piece[start : start + PIECE_CHARACTERS])
    ]


def _checked_id(entry_id: str | None) -> str | None:
    """`entry_id` (`5` means `5-0`); raises FirstwordError if it is none."""
    if entry_id is None:
        return None
    if not _ENTRY_ID.fullmatch(entry_id):
        raise FirstwordError(
            "bad_id", f"{entry_id[:64]!r} is no entry id: they look like 1700000000000-0"
        )
    return entry_id
