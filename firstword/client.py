"""Firstword from Python: publish text as it is written, follow the speech as it is made.

    async with Firstword() as firstword, firstword.session(voice="af_heart") as session:
        turn = await session.stream(tokens)
        audio = await collect(session.listen(), turn)

Every method raises FirstwordError, which says what to do and whether trying again can help. Its
`code` is `unreachable`, `busy` or `refused` because of the server, `bad_name`, `bad_text` or
`turn_over` because of the call.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self

from firstword import keys, runfile, server_errors
from firstword import messages as m
from firstword.audio import TurnAudio
from firstword.errors import FirstwordError
from firstword.listener import Event, Listener
from firstword.pieces import PIECE_CHARACTERS, Manner, TurnCut, TurnOver
from firstword.session import Session
from firstword.streams import Streams

__all__ = [
    "PIECE_CHARACTERS",
    "Event",
    "Firstword",
    "Listener",
    "Manner",
    "Session",
    "TurnCut",
    "TurnOver",
    "collect",
]


class Firstword:
    """A connection to the deployment; an async context manager. Sessions share it.

    `url` None means FIRSTWORD_REDIS_URL, else the `firstword up` that runs on this machine.
    """

    def __init__(self, url: str | None = None, *, environ: Mapping[str, str] = os.environ) -> None:
        self._url = url
        self._environ = environ
        self._streams: Streams | None = None
        self._known_partitions: int | None = None
        self._attending: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        url = self._url or await asyncio.to_thread(runfile.resolve_url, self._environ)
        if url is None:
            raise FirstwordError(
                "no_server",
                "no Redis server to use: start one with `firstword up`, or set "
                f"{runfile.URL_VARIABLE} to the URL of yours",
            )
        try:
            self._streams = Streams(url)
        except ValueError as error:
            raise FirstwordError(
                "bad_url", f"{server_errors.without_password(url)} is no Redis URL: {error}"
            ) from error
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for task in list(self._attending):
            task.cancel()
        await asyncio.gather(*self._attending, return_exceptions=True)
        if self._streams is not None:
            await self._streams.close()
            self._streams = None

    @property
    def streams(self) -> Streams:
        """The connection underneath."""
        if self._streams is None:
            raise FirstwordError(
                "not_connected", "enter it first: `async with Firstword() as firstword:`"
            )
        return self._streams

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
        """A session by its name, or a new one. Settings that are None stay as they are.

        `pace` is `realtime` (a few seconds ahead of playback) or `none` (as fast as it can).
        """
        opening = m.Open(
            session=keys.check_name("session", name or f"s-{secrets.token_hex(8)}"),
            voice=voice,
            speed=speed,
            lang=lang,
            sample_rate=sample_rate,
            pace=pace,
            meta=meta,
        )
        return Session(self, opening)

    def attend(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run this in the background, until it is done or the connection is closed."""
        task = asyncio.create_task(work)
        self._attending.add(task)
        task.add_done_callback(self._attending.discard)
        return task

    async def partitions(self) -> int | None:
        """How many ingress partitions there are; None until the first segmenter has started."""
        if self._known_partitions is None:
            self._known_partitions = await self.streams.partitions()
        return self._known_partitions


async def collect(events: AsyncIterator[Event], turn: str) -> TurnAudio:
    """The complete audio of one turn: reads until the turn is over."""
    audio = TurnAudio(turn)
    async for event in events:
        if audio.feed(event.message):
            break
    return audio
