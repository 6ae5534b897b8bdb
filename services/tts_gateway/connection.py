"""A session's one connection to the backend: opened, watched, dropped; what happens is reported."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from firstword import logs, telemetry
from firstword.errors import FirstwordError
from firstword.session_protocol import Frame
from services.tts_gateway.upstream import Link, Upstream

RENEW_AGAIN_S = 5.0
"""Between tries to open a younger connection, while the old one still serves."""


@dataclass(frozen=True, slots=True)
class Opened:
    """There is a new connection."""

    link: Link


@dataclass(frozen=True, slots=True)
class Came:
    """A frame came; `text`: whether the transport says that it is text."""

    link: Link
    frame: Frame
    text: bool | None


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection broke, or (without a link) could not be opened."""

    link: Link | None
    error: FirstwordError


@dataclass(frozen=True, slots=True)
class Renewed:
    """A younger connection is ready to take the place of `old`."""

    link: Link
    old: Link


@dataclass(frozen=True, slots=True)
class Due:
    """The wait before the next try is over."""


News = Opened | Came | Lost | Renewed | Due


class Connection:
    """One link at a time, and a younger one beside it before its lifetime ends.

    `tell` is called with the news, in order; it must return at once.
    """

    def __init__(self, upstream: Upstream, tell: Callable[[News], None]) -> None:
        self._upstream = upstream
        self._tell = tell
        self._link: Link | None = None
        self._younger: Link | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._opening = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._closes: set[asyncio.Task[None]] = set()

    def holds(self, news: News) -> bool:
        """Take note of news that is to be handled; False if its link was dropped meanwhile."""
        match news:
            case Opened(link):
                self._opening = False
                self._use(link)
                self._begin(link)
                return True
            case Renewed(link, old):
                if old is not self._link:  # it was dropped meanwhile
                    _spawn(self._closes, link.close())
                    return False
                self._younger = link
                self._begin(link)
                return True
            case Lost(link=None):
                self._opening = False
                return True
            case Lost(link=link) if link is not None and link is self._younger:
                self._younger = None
                self._end(link)
                self._renew_after(RENEW_AGAIN_S)
                return False
            case Came(link=link) | Lost(link=link):
                return link is self._link
            case Due():
                return True

    def ready(self, after_s: float) -> bool:
        """Whether the link can be used now; if not, `Due`, `Opened` or `Lost` follows.

        With `after_s` it never can, and `Due` follows. Only the last call counts.
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

    def take_over(self) -> bool:
        """Let a younger link take the place of the one in use; False if there is none.

        Frames of the old one are no longer reported. No request may run on it.
        """
        old, link = self._link, self._younger
        if old is None or link is None:
            return False
        self._younger = None
        self._use(link)
        self._end(old)
        telemetry.upstream_rotations.inc()
        return True

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
        """Drop the link and a younger one; they are closed in the background."""
        links = self._link, self._younger
        self._link = self._younger = None
        for link in links:
            if link is not None:
                self._end(link)
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None

    async def close(self, untold: Iterable[News]) -> None:
        """Leave no task and no link behind; `untold` is news that will not be handled any more."""
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
        if isinstance(news, Opened | Renewed):
            _spawn(self._closes, news.link.close())

    # -- links ------------------------------------------------------------------------------------

    def _use(self, link: Link) -> None:
        self._link = link
        if link.max_age_s is not None:
            self._renew_after(link.max_age_s)

    def _begin(self, link: Link) -> None:
        telemetry.upstream_connections.inc()
        telemetry.upstream_opened.inc()
        _spawn(self._tasks, self._pump(link))

    def _end(self, link: Link) -> None:
        telemetry.upstream_connections.dec()
        _spawn(self._closes, link.close())

    def _renew_after(self, seconds: float) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
        loop = asyncio.get_running_loop()
        self._renewal = loop.call_later(seconds, self._renew)

    def _renew(self) -> None:
        if self._link is not None:
            _spawn(self._tasks, self._open_younger(self._link))

    async def _open_younger(self, old: Link) -> None:
        logs.bind(turn=None, segment=None)  # it belongs to no turn
        try:
            link = await self._upstream.connect()
        except FirstwordError as error:
            telemetry.logger().warning("upstream_not_renewed", code=error.code)
            if old is self._link:
                self._renew_after(RENEW_AGAIN_S * random.uniform(1, 1.25))  # noqa: S311
        else:
            self._tell(Renewed(link, old))

    async def _open(self) -> None:
        try:
            link = await self._upstream.connect()
        except FirstwordError as error:
            self._tell(Lost(None, error))
        else:
            self._tell(Opened(link))

    async def _pump(self, link: Link) -> None:
        """Report frames as they come, until the link ends."""
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
