"""A collector that takes spans by OTLP over HTTP, and keeps what comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from firstword.runtime import HttpServer


@asynccontextmanager
async def collector() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Its address for `OTEL_EXPORTER_OTLP_ENDPOINT`, and the bodies that came."""
    came: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        came.append(await request.read())
        return web.Response()

    app = web.Application()
    app.router.add_post("/v1/traces", take)
    http = HttpServer(app, "127.0.0.1", 0)
    await http.start()
    try:
        yield f"http://{http.address}", came
    finally:
        await http.stop()
