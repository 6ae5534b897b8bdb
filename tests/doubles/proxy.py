"""A wire that can be cut: a TCP proxy on loopback, for what a real network does to clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Forwards to `target_url`; `url` is the same address through the proxy."""

    def __init__(self, target_url: str) -> None:
        parts = urlsplit(target_url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 6379
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._marked: tuple[Callable[[bytes], bool], str] | None = None
        self._fates: dict[asyncio.StreamWriter, str] = {}
        self._silent: set[asyncio.StreamWriter] = set()
        self._dark = False
        self.lost = 0
        self.connections = 0
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Close every connection, and take no new one."""
        if self._server is not None:
            self._server.close()
            self.cut()
            await self._server.wait_closed()
            self._server = None

    def cut(self) -> None:
        """Close every connection now."""
        for writer in self._writers:
            writer.close()

    def go_dark(self, *, new_too: bool = False) -> None:
        """Connections stay open and carry nothing any more, as behind a firewall that forgot them.

        With `new_too`, those that are made from now on as well, as with a host that is gone.
        """
        self._silent |= self._writers
        self._dark = new_too

    def lead_to(self, target_url: str) -> None:
        """New connections go to another server; those that are there stay."""
        parts = urlsplit(target_url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 6379

    def lose_reply_to(self, request: Callable[[bytes], bool]) -> None:
        """The next request that `request` accepts arrives; its reply does not, the wire breaks."""
        self._marked = (request, "lose")

    def hold_reply_to(self, request: Callable[[bytes], bool]) -> None:
        """The same, but the connection stays open and silent."""
        self._marked = (request, "hold")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(OSError):
            upstream, up = await asyncio.open_connection(self._host, self._port)
            self._writers |= {writer, up}
            if self._dark:
                self._silent |= {writer, up}
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._requests(reader, up, writer))
                    tasks.create_task(self._replies(upstream, writer))
            finally:
                self._writers -= {writer, up}
                self._silent -= {writer, up}
                for end in (writer, up):
                    end.close()

    async def _requests(
        self, reader: asyncio.StreamReader, up: asyncio.StreamWriter, down: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if down in self._silent:
                    continue
                if self._marked is not None and self._marked[0](data):
                    self._fates[down] = self._marked[1]
                    self._marked = None
                up.write(data)
                await up.drain()
        up.close()

    async def _replies(self, upstream: asyncio.StreamReader, down: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await upstream.read(65_536):
                if down in self._silent:
                    continue
                if fate := self._fates.pop(down, None):
                    self.lost += 1
                    if fate == "hold":
                        return
                    break
                down.write(data)
                await down.drain()
        down.close()
