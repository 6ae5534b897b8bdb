"""What doubles that are reached over HTTP share: a real server on a free port of loopback."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from firstword.runtime import HttpServer


class Served:
    """Listens from `async with` on, until it is left. Subclasses set `_http`."""

    _http: HttpServer

    async def __aenter__(self) -> Self:
        await self._http.start()
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self._http.stop()
