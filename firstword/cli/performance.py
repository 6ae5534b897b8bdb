"""Speaking one text and hearing it: what `say` and `demo` do, with everything a waterfall needs."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from firstword import messages as m
from firstword import waterfall
from firstword.client import Firstword, Session
from firstword.errors import FirstwordError
from firstword.ids import START, id_key
from firstword.session import OnPublished
from firstword.tokens import tokens
from firstword.waterfall import Heard, Token, Waterfall

DEFAULT_RATE = 24_000
_LEAVE_S = 2.0
"""For so long whoever gives up waits for the receipt of its cancel."""


class Sink(Protocol):
    """Whoever takes a session's events as they come."""

    def feed(self, message: m.Audio) -> None: ...


@dataclass(frozen=True, slots=True)
class Script:
    """What to say and how: `mode` is `stream` (each token is published when it is there) or
    `batch` (the whole text is published when the last token is there). `times_s`: when each token
    is there, counted from the first, as `record` found it; without it, evenly.

    Raises FirstwordError `nothing_to_say` for an empty text.
    """

    text: str
    tokens_per_second: float
    mode: str = "stream"
    voice: str | None = None
    speed: float | None = None
    lang: str | None = None
    silence_s: float = 120.0
    times_s: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise FirstwordError("nothing_to_say", "the text is empty: give some words to speak")


@dataclass(slots=True)
class Performance:
    """One turn, spoken."""

    script: Script
    session: str
    sample_rate: int
    waterfall: Waterfall
    reason: str
    voice: str = ""
    errors: list[m.ErrorEvent] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "mode": self.script.mode,
            "tokens_per_second": self.script.tokens_per_second,
            "session": self.session,
            "voice": self.voice,
            "sample_rate": self.sample_rate,
            "reason": self.reason,
            "errors": [{"code": e.code, "message": e.message, "n": e.n} for e in self.errors],
            **self.waterfall.as_data(),
        }


async def record(script: Script) -> tuple[float, ...]:
    """Let the text be written once, for nobody; returns when each token was there."""
    there = [time.monotonic() async for _ in _paced(script)]
    return tuple(at - there[0] for at in there)


async def perform(firstword: Firstword, script: Script, sinks: Sequence[Sink]) -> Performance:
    """Speak `script` in a session of its own and follow it to the end of its turn.

    Raises FirstwordError `silent` when no audio comes for `script.silence_s` seconds. Whatever ends
    this before its time, the turn is cancelled: nobody would hear it.
    """
    session = firstword.session(
        voice=script.voice, speed=script.speed, lang=script.lang, pace="none"
    )
    writer = _Writer(session, script)
    async with session:
        try:
            async with asyncio.TaskGroup() as tasks:
                writing = tasks.create_task(writer.write())
                following = tasks.create_task(_follow(session, script.silence_s, sinks))
                if (await following)[1].startswith("closed"):
                    writing.cancel()  # nobody speaks the rest
        except BaseException as error:
            await _give_up(session)
            raise error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error from None
        with contextlib.suppress(FirstwordError):  # all was heard
            await session.close()
    events, end = following.result()
    started = _started(events)
    rate = started.sample_rate if started else DEFAULT_RATE
    return Performance(
        script=script,
        session=session.name,
        sample_rate=rate,
        waterfall=waterfall.build(writer.turn, writer.written, events, rate),
        reason=end,
        voice=started.voice if started else "",
        errors=[event.message for event in events if isinstance(event.message, m.ErrorEvent)],
    )


async def _give_up(session: Session) -> None:
    """Cancel what is left and close, without an error of its own and within a moment."""
    with contextlib.suppress(FirstwordError, TimeoutError):
        async with asyncio.timeout(_LEAVE_S):
            with contextlib.suppress(FirstwordError):
                await session.cancel(timeout_s=_LEAVE_S / 2)
            await session.close()


class _Writer:
    """Stands for a language model: its tokens come at a steady pace."""

    def __init__(self, session: Session, script: Script) -> None:
        self.turn = f"t-{secrets.token_hex(6)}"
        self.written: list[Token] = []
        self._session = session
        self._script = script

    async def write(self) -> None:
        """Publish the text as the mode says."""
        if self._script.mode == "stream":
            await self._publish(_paced(self._script), self._published)
        else:
            await self._batch()

    async def _batch(self) -> None:
        """Nothing leaves before the last token; each counts from when it was there."""
        there = [(piece, time.monotonic()) async for piece in _paced(self._script)]

        async def whole() -> AsyncIterator[str]:
            yield self._script.text

        def published(_piece: str, entry_id: str) -> None:
            # The server's clock and ours meet here: the entry has just been written.
            offset = id_key(entry_id)[0] - time.monotonic() * 1000
            self.written = [Token(piece, at * 1000 + offset) for piece, at in there]

        await self._publish(whole(), published)

    async def _publish(self, pieces: AsyncIterator[str], on_published: OnPublished) -> None:
        await self._session.stream(pieces, turn=self.turn, on_published=on_published)

    def _published(self, piece: str, entry_id: str) -> None:
        self.written.append(Token(piece, id_key(entry_id)[0]))


async def _paced(script: Script) -> AsyncIterator[str]:
    """The tokens when they are there; a late one does not delay those after it."""
    pieces = tokens(script.text)
    rate = script.tokens_per_second
    times_s = script.times_s or [number / rate if rate else 0.0 for number in range(len(pieces))]
    begun = time.monotonic()
    for piece, at in zip(pieces, times_s, strict=True):
        if at > 0:
            await asyncio.sleep(max(0.0, begun + at - time.monotonic()))
        yield piece


async def _follow(
    session: Session, silence_s: float, sinks: Sequence[Sink]
) -> tuple[list[Heard], str]:
    """All events up to the end of the session's only turn, and how it ended."""
    events: list[Heard] = []
    clock = asyncio.get_running_loop().time
    heard_at = clock()
    listener = await session.listener(START)
    while True:
        try:
            async with asyncio.timeout_at(heard_at + silence_s):
                event = await anext(listener)
        except TimeoutError:
            raise FirstwordError(
                "silent",
                f"nothing was heard for {silence_s:g} s: look into the logs of `firstword up`, "
                "or give a slow machine more time (--timeout)",
                retryable=True,
            ) from None
        events.append(Heard(id_key(event.id)[0], event.message))
        for sink in sinks:
            sink.feed(event.message)
        if isinstance(event.message, m.AudioChunk):  # segments that fail or begin again are not
            heard_at = clock()
        match event.message:
            case m.TurnDone():
                return events, event.message.reason
            case m.TurnCancelled():
                return events, "cancelled"
            case m.Closed():
                return events, f"closed ({event.message.reason})"
            case _:
                pass


def _started(events: Sequence[Heard]) -> m.TurnStarted | None:
    started = (event.message for event in events if isinstance(event.message, m.TurnStarted))
    return next(started, None)
