"""Firstword for scripts that have no event loop: the same calls, each ends when it is done.

    with Firstword() as firstword, firstword.session(voice="af_heart") as session:
        turn = session.stream(tokens)
        audio = session.collect(turn)

It is `firstword.client` on a loop in a thread of its own; names, promises and errors are those.
May be used from several threads at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from firstword import client
from firstword import messages as m
from firstword.audio import TurnAudio
from firstword.errors import FirstwordError
from firstword.listener import Event
from firstword.pieces import AS_THE_SESSION, Manner
from firstword.session import RECEIPT_TIMEOUT_S

T = TypeVar("T")
_END = object()


class Firstword:
    """A connection to the deployment; a context manager. `url` as for the asynchronous client."""

    def __init__(self, url: str | None = None) -> None:
        self._client = client.Firstword(url)
        self._loop = _LoopThread()

    def __enter__(self) -> Self:
        self._loop.start()
        try:
            self._loop.run(self._client.__aenter__())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            self._loop.run(self._client.__aexit__(None, None, None))
        finally:
            self._loop.stop()

    def session(
        self,
        name: str | None = None,
        *,
        voice: str | None = None,
        speed: float | None = None,
        lang: str | None = None,
        sample_rate: int | None = None,
        pace: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Session:
        """A session by its name, or a new one. Settings that are None stay as they are."""
        session = self._client.session(
            name,
            voice=voice,
            speed=speed,
            lang=lang,
            sample_rate=sample_rate,
            pace=pace,
            meta=meta,
        )
        return Session(session, self._loop)


class Session:
    """One voice conversation; `client.Session` says what each call promises."""

    def __init__(self, session: client.Session, loop: _LoopThread) -> None:
        self.name = session.name
        self._session = session
        self._loop = loop

    def __enter__(self) -> Self:
        self._loop.run(self._session.__aenter__())
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Nothing to undo: the session lives on, for others and for later."""

    def say(self, text: str, *, turn: str | None = None, manner: Manner = AS_THE_SESSION) -> str:
        """Speak a whole turn; returns its name as soon as it is published."""
        return self._loop.run(self._session.say(text, turn=turn, manner=manner))

    def stream(
        self, pieces: Iterable[str], *, turn: str | None = None, manner: Manner = AS_THE_SESSION
    ) -> str:
        """Speak a turn while it is being written; returns its name when the last piece is out.

        The pieces are taken one after another in a thread that is not yours. When they raise, what
        came is spoken and the error goes on to you.
        """
        return self._loop.run(self._session.stream(_one_by_one(pieces), turn=turn, manner=manner))

    def text(self, piece: str, turn: str, manner: Manner = AS_THE_SESSION) -> str | None:
        """Publish a piece of any size; returns its (last) entry id, None if it is empty."""
        return self._loop.run(self._session.text(piece, turn, manner))

    def flush(self, turn: str) -> str:
        """Speak what is there now; the turn goes on. Returns the entry id."""
        return self._loop.run(self._session.flush(turn))

    def end(self, turn: str) -> str:
        """No more text in this turn. Returns the entry id."""
        return self._loop.run(self._session.end(turn))

    def cancel(
        self,
        turn: str | None = None,
        played: dict[str, Any] | None = None,
        *,
        timeout_s: float = RECEIPT_TIMEOUT_S,
    ) -> m.TurnCancelled:
        """Stop this turn, or without a name all turns so far; returns the receipt."""
        return self._loop.run(self._session.cancel(turn, played, timeout_s=timeout_s))

    def close(self) -> None:
        """After what is queued, close the session and its upstream connection."""
        self._loop.run(self._session.close())

    def listen(self, from_id: str | None = None) -> Iterator[Event]:
        """All events of the session, in order, until it is closed. Waits for each."""
        events = self._session.listen(from_id)
        try:
            while (event := self._loop.run(_next(events))) is not None:
                yield event
        finally:
            self._loop.run(_close(events))

    def collect(
        self, turn: str, *, from_id: str | None = None, timeout_s: float | None = None
    ) -> TurnAudio:
        """The audio of one turn, complete. Raises TimeoutError after `timeout_s` seconds."""

        async def collected() -> TurnAudio:
            async with asyncio.timeout(timeout_s):
                return await client.collect(self._session.listen(from_id), turn)

        return self._loop.run(collected())


class _LoopThread:
    """An event loop that runs in a thread of its own for as long as the connection is open."""

    def __init__(self) -> None:
        self._stop: asyncio.Event
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread

    def start(self) -> None:
        begun = threading.Event()

        async def wait_for_the_end() -> None:
            self._stop = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            begun.set()
            await self._stop.wait()

        self._thread = threading.Thread(
            target=lambda: asyncio.run(wait_for_the_end()), name="firstword", daemon=True
        )
        self._thread.start()
        begun.wait()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. Whoever is interrupted meanwhile stops it."""
        if self._loop is None:
            work.close()
            told = "enter it first: `with Firstword() as firstword:`"
            raise FirstwordError("not_connected", told)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()


async def _one_by_one(pieces: Iterable[str]) -> AsyncIterator[str]:
    waiting = iter(pieces)
    while (piece := await asyncio.to_thread(next, waiting, _END)) is not _END:
        yield str(piece)


async def _next(events: AsyncIterator[Event]) -> Event | None:
    return await anext(events, None)


async def _close(events: AsyncIterator[Event]) -> None:
    if (close := getattr(events, "aclose", None)) is not None:
        await close()
