"""Whether the Redis server answers, and takes what callers say: for `/readyz`, and so that callers
need not wait to be told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from firstword import server_errors
from firstword.client import Firstword

LOOK_S: Final = 2.0
"""Between two looks."""
ANSWER_S: Final = 1.0
"""So long a server that did not answer last time is given, while a caller waits."""

FULL: Final = (
    "the server has used up its memory: it takes no text, and callers get `busy`. Give it more: "
    "`firstword redis CONFIG SET maxmemory BYTES`"
)
_NEED_IT: Final = ("/invocations", "/ws", "/v1/audio/speech", "/v1/sessions/")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServerWatch:
    """Asks the server every two seconds; `problem` says why it is no use now, None when it is.

    `full` says why it takes no text. Then callers are refused by what they want to write: one who
    only listens is served, and the next who writes may find room.
    """

    def __init__(self, firstword: Firstword) -> None:
        self.problem: str | None = "the server has not answered yet"
        self.full: str | None = None
        self._firstword = firstword
        self._error: Exception = TimeoutError()
        self._looking: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await self.look()
                if self.problem is None:
                    await self._look_at_memory()
                await asyncio.sleep(LOOK_S)
        finally:
            if self._looking is not None:
                self._looking.cancel()

    async def look(self) -> None:
        """Ask once, however long that takes: some seconds where nothing answers at all."""
        await asyncio.wait({self._look()})

    async def need(self) -> None:
        """Raises FirstwordError if the server did not answer last time, nor does within a second.

        One that answers is left to whoever calls it: what fails then may be tried for longer.
        """
        if self.problem is None:
            return
        await asyncio.wait({self._look()}, timeout=ANSWER_S)
        if self.problem is not None:
            raise server_errors.final(self._error) or server_errors.unreachable(
                self._firstword.streams.url, self._error
            )

    def middleware(self) -> Any:
        """Stands before the doors that need the server. A caller who comes back to its line has
        one that waits for the server, too."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path.startswith(_NEED_IT) and "line" not in request.query:
                await self.need()
            return await handler(request)

        return guard

    async def _look_at_memory(self) -> None:
        # Of a cluster it asks all nodes: one that is away is no reason to refuse callers.
        with contextlib.suppress(Exception):
            takes_none = await self._firstword.streams.refuses_text()
            self.full = FULL if takes_none else None

    def _look(self) -> asyncio.Task[None]:
        """The look that is under way, else a new one."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._ask())
        return self._looking

    async def _ask(self) -> None:
        try:
            await self._firstword.streams.commands.ping()
        except Exception as error:  # redis-py raises more kinds than its own
            self._error = error
            self.problem = f"the server does not answer ({type(error).__name__})"
        else:
            self.problem = None
