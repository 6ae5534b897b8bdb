"""Listeners that stop reading: waited for, then cut off, so that none holds memory for ever."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from firstword import telemetry
from services.agent.access import TOO_SLOW, Patience

LOOKS = 8
"""How often a listener is looked at within the time that it has."""
FAREWELL_S = 1.0
LEAST_SILENCE_S = 10.0


class Watched:
    """Watches the writes to one listener. Every write happens inside `writing()`."""

    def __init__(self) -> None:
        self._writes = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        self._writes += 1
        try:
            yield
        finally:
            self._writes -= 1

    @asynccontextmanager
    async def patient(
        self,
        transport: asyncio.Transport | None,
        seconds: float,
        door: str,
        farewell: Callable[[], Awaitable[object]],
    ) -> AsyncIterator[None]:
        """While inside, cut off a listener that takes nothing for `seconds`.

        `farewell` tells it why, in case it still reads, and has a second for that.
        """
        watching = asyncio.create_task(self._watch(transport, seconds, door, farewell))
        try:
            yield
        finally:
            watching.cancel()

    async def _watch(
        self,
        transport: asyncio.Transport | None,
        seconds: float,
        door: str,
        farewell: Callable[[], Awaitable[object]],
    ) -> None:
        if transport is None:
            return
        _end_with_its_network(transport, max(LEAST_SILENCE_S, 2 * seconds))
        clock = asyncio.get_running_loop().time
        patience = Patience(seconds)
        while True:
            held = transport.get_write_buffer_size()
            if patience.is_over(clock(), waiting=self._writes > 0, held=held):
                break
            await asyncio.sleep(seconds / LOOKS)
        telemetry.cut_listeners.labels(door).inc()
        telemetry.logger().info("listener_cut", door=door, reason=TOO_SLOW.code, held_bytes=held)
        with contextlib.suppress(TimeoutError, ConnectionError, RuntimeError):
            async with asyncio.timeout(FAREWELL_S):
                await farewell()
        transport.abort()


def _end_with_its_network(transport: asyncio.Transport, seconds: float) -> None:
    """Have the system end a connection on which nothing is acknowledged for so long.

    A listener whose network is gone without a word would hold its place for a quarter of an hour:
    the little that is sent to it meanwhile finds room in the system's buffers.
    """
    option = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux has it
    line = transport.get_extra_info("socket")
    if option is not None and line is not None and line.family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):  # it is gone already
            line.setsockopt(socket.IPPROTO_TCP, option, round(seconds * 1000))
