"""Whether the Redis server answers and accepts text: for `/readyz`, and so that callers are refused
at once rather than after a timeout."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from firstword import server_errors
from firstword.client import Firstword

LOOK_S: Final = 2.0
"""Seconds between two checks."""
ANSWER_S: Final = 1.0
"""How long a caller waits for a server that did not answer the last check."""

FULL: Final = (
    "the server has used up its memory: it takes no text, and callers get `busy`. Give it more: "
    "`firstword redis CONFIG SET maxmemory BYTES`"
)
_NEED_IT: Final = ("/invocations", "/ws", "/v1/audio/speech", "/v1/sessions/")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServerWatch:
    """Checks the server every two seconds; `problem` says why it cannot be used; None if it can.

    `full` says why it takes no text; None if it does. A full server does not block callers here:
    listeners are served, and a write fails by itself, or finds room again.
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
        """Check once; takes some seconds if nothing answers at all."""
        await asyncio.wait({self._look()})

    async def need(self) -> None:
        """Raises FirstwordError if the server did not answer last time, nor does within a second.

        If it answers, the request goes on, and may retry for longer what fails then.
        """
        if self.problem is None:
            return
        await asyncio.wait({self._look()}, timeout=ANSWER_S)
        if self.problem is not None:
            raise server_errors.final(self._error) or server_errors.unreachable(
                self._firstword.streams.url, self._error
            )

    def middleware(self) -> Any:
        """Guards the routes that need the server. A caller who returns to its line is let through:
        the line itself waits for the server."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path.startswith(_NEED_IT) and "line" not in request.query:
                await self.need()
            return await handler(request)

        return guard

    async def _look_at_memory(self) -> None:
        # In a cluster this asks all nodes: one that is away is no reason to refuse callers.
        with contextlib.suppress(Exception):
            takes_none = await self._firstword.streams.refuses_text()
            self.full = FULL if takes_none else None

    def _look(self) -> asyncio.Task[None]:
        """The check that is under way, else a new one."""
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
