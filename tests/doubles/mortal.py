"""Streams of a worker that dies, or is held up, at the step of our choice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from firstword.streams import Entry, Streams

T = TypeVar("T")


class MortalStreams(Streams):
    """Counts the steps that change something at the server; before step `at` awaits `moment`.

    With `after`, the step is done and its reply is what does not arrive in time. Step 0 is never.
    """

    def __init__(
        self,
        url: str,
        *,
        at: int = 0,
        after: bool = False,
        moment: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(url)
        self.steps = 0
        self.reached = asyncio.Event()
        """Set when step `at` has come."""
        self._at = at
        self._after = after
        self._moment = moment or self._die
        self._dead = False

    async def script(self, name: str, key_list: list[str], args: Iterable[Any]) -> Any:
        return await self._step(lambda: super(MortalStreams, self).script(name, key_list, args))

    async def append(self, stream: str, fields: Mapping[Any, Any]) -> str:
        return await self._step(lambda: super(MortalStreams, self).append(stream, fields))

    async def dead_letter(self, source: str, entry: Entry, reason: str) -> None:
        await self._step(lambda: super(MortalStreams, self).dead_letter(source, entry, reason))

    async def _step(self, act: Callable[[], Awaitable[T]]) -> T:
        self.steps += 1
        mine = self.steps == self._at
        if self._dead or (mine and not self._after):
            await self._arrive()
        result = await act()
        if mine and self._after:
            await self._arrive()
        return result

    async def _arrive(self) -> None:
        self.reached.set()
        await self._moment()

    async def _die(self) -> None:
        """As a process that is gone: nothing more is asked, and nobody waits for an answer."""
        self._dead = True
        await asyncio.Event().wait()
