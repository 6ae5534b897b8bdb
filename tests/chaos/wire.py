"""The wire between gateways and inference: spreads connections, and can be cut anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from types import TracebackType
from typing import Self

START = b'"synthesis_start"'


class Wire:
    """A TCP balancer on loopback. `backends()` names those that live now, host:port each."""

    def __init__(self, backends: Callable[[], list[str]]) -> None:
        self.address = ""
        self.cuts = 0
        self._backends = backends
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._cut_at: list[int] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
            self.cut()
            await self._server.wait_closed()

    def cut(self) -> None:
        """Cut every connection now."""
        for writer in list(self._open):
            writer.transport.abort()

    def cut_within_segments(self, at_bytes: list[int]) -> None:
        """Cut one connection for each of these, when so much of a segment has passed on it."""
        self._cut_at += at_bytes

    @property
    def cuts_left(self) -> int:
        """How many of the ordered cuts have not been made."""
        return len(self._cut_at)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            backend, up = await self._connect()
            self._open |= {writer, up}
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(_copy(reader, up))
                    tasks.create_task(self._answer(backend, writer))
            finally:
                self._open -= {writer, up}
                for end in (writer, up):
                    end.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To any that accepts, as a balancer with health checks would."""
        backends = self._backends()
        for address in random.sample(backends, len(backends)):
            host, _, port = address.rpartition(":")
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(host, int(port))
        raise ConnectionRefusedError("no backend lives")

    async def _answer(self, backend: asyncio.StreamReader, down: asyncio.StreamWriter) -> None:
        """Copy, and count how much of a segment has passed, to cut where it was ordered."""
        passed = 0
        with contextlib.suppress(OSError):
            while data := await backend.read(4096):
                begun = data.rfind(START)
                passed = len(data) - begun if begun >= 0 else passed + len(data)
                if self._cut_at and passed >= self._cut_at[0]:
                    self._cut_at.pop(0)
                    self.cuts += 1
                    down.transport.abort()
                    return
                down.write(data)
                await down.drain()
        down.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
