"""A session's one connection to the backend: opened, watched and dropped; what happens is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from firstword import telemetry
from firstword.errors import FirstwordError
from firstword.session_protocol import Frame
from services.tts_gateway.upstream import Link, Upstream


@dataclass(frozen=True, slots=True)
class Opened:
    """There is a new connection."""

    link: Link


@dataclass(frozen=True, slots=True)
class Came:
    """A frame came; `text` is what the transport says of it."""

    link: Link
    frame: Frame
    text: bool | None


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection broke, or (without a link) could not be had."""

    link: Link | None
    error: FirstwordError


@dataclass(frozen=True, slots=True)
class Due:
    """The wait before the next try is over."""


News = Opened | Came | Lost | Due


class Connection:
    """At most one link at a time. `tell` is called with the news, in order; it returns at once."""

    def __init__(self, upstream: Upstream, tell: Callable[[News], None]) -> None:
        self._upstream = upstream
        self._tell = tell
        self._link: Link | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._opening = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._closes: set[asyncio.Task[None]] = set()

    def holds(self, news: News) -> bool:
        """Take note of news when it is handled; False if it is of a link dropped meanwhile."""
        match news:
            case Opened(link):
                self._opening = False
                self._link = link
                telemetry.upstream_connections.inc()
                _spawn(self._tasks, self._pump(link))
                return True
            case Lost(link=None):
                self._opening = False
                return True
            case Came(link=link) | Lost(link=link):
                return link is self._link
            case Due():
                return True

    def ready(self, after_s: float) -> bool:
        """Whether the link can be used now; if not, `Due` or `Opened` or `Lost` will be told.

        With `after_s` it never can: `Due` follows then. The last call counts.
        """
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if after_s > 0:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(after_s, self._tell, Due())
            return False
        if self._link is None and not self._opening:
            self._opening = True
            _spawn(self._tasks, self._open())
        return self._link is not None

    async def send(self, frame: str) -> None:
        """Send on the link; nothing happens without one."""
        link = self._link
        if link is None:
            return
        try:
            await link.send(frame)
        except FirstwordError as error:
            self._tell(Lost(link, error))

    def drop(self) -> None:
        """Let go of the link; it is closed in the background."""
        link, self._link = self._link, None
        if link is not None:
            telemetry.upstream_connections.dec()
            _spawn(self._closes, link.close())

    async def close(self, untold: Iterable[News]) -> None:
        """Leave no task and no link behind; `untold` is news that nobody will handle any more."""
        self._tell = self._discard
        for news in untold:
            self._discard(news)
        if self._waiting is not None:
            self._waiting.cancel()
        self.drop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*self._closes, return_exceptions=True)

    def _discard(self, news: News) -> None:
        if isinstance(news, Opened):
            _spawn(self._closes, news.link.close())

    async def _open(self) -> None:
        try:
            link = await self._upstream.connect()
        except FirstwordError as error:
            self._tell(Lost(None, error))
        else:
            self._tell(Opened(link))

    async def _pump(self, link: Link) -> None:
        """Frames as they come, until the link ends."""
        try:
            while True:
                frame, text = await link.receive()
                self._tell(Came(link, frame, text))
        except FirstwordError as error:
            self._tell(Lost(link, error))


def _spawn(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
