"""What every service answers about itself: alive, ready, and its metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import REGISTRY

from firstword import loop_watch
from firstword.runtime import Health, HttpServer, add_routes
from firstword.supervisor import _answers
from tests.support import eventually


@pytest.fixture
async def served() -> AsyncIterator[tuple[str, Health]]:
    health = Health()
    app = web.Application()
    add_routes(app, health)
    http = HttpServer(app, "127.0.0.1", 0)
    await http.start()
    yield f"http://{http.address}", health
    await http.stop()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_what_is_red_is_told_with_its_reason_and_as_a_metric(
    served: tuple[str, Health], client: aiohttp.ClientSession
) -> None:
    url, health = served
    reason: list[str | None] = [None]
    health.add("redis", lambda: reason[0])
    async with client.get(f"{url}/readyz") as response:
        assert (response.status, await response.json()) == (200, {"ready": True, "reasons": {}})
    reason[0] = "it is away"
    async with client.get(f"{url}/readyz") as response:
        assert response.status == 503
        assert await response.json() == {"ready": False, "reasons": {"redis": "it is away"}}
    async with client.get(f"{url}/metrics") as response:
        assert 'firstword_not_ready{check="redis"} 1.0' in await response.text()
    reason[0] = None
    async with client.get(f"{url}/metrics") as response:
        assert 'firstword_not_ready{check="redis"} 0.0' in await response.text()


async def test_who_is_red_for_a_full_server_only_is_not_ended_for_it(
    served: tuple[str, Health],
) -> None:
    url, health = served
    address = url.removeprefix("http://")
    health.add("memory", lambda: "it is full")
    assert await asyncio.to_thread(_answers, address, "/readyz")
    assert not await asyncio.to_thread(_answers, address, "/nowhere")
    health.add("redis", lambda: "it is away")
    assert not await asyncio.to_thread(_answers, address, "/readyz")


async def test_metrics_are_a_route_without_a_redirect_in_the_manner_that_is_asked_for(
    served: tuple[str, Health], client: aiohttp.ClientSession
) -> None:
    url, _ = served
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    async with client.get(f"{url}/metrics", headers=accept, allow_redirects=False) as response:
        assert response.status == 200
        assert response.content_type == "application/openmetrics-text"
    async with client.get(f"{url}/metrics") as response:
        assert response.content_type == "text/plain"


async def test_a_loop_that_was_blocked_says_so(
    served: tuple[str, Health], client: aiohttp.ClientSession
) -> None:
    url, _ = served
    ticks = _sample("count")
    await eventually(lambda: _sample("count") > ticks, "its timer runs")
    before = _sample("sum")
    time.sleep(0.5)  # noqa: ASYNC251 what this test is about

    async def told() -> bool:
        async with client.get(f"{url}/livez") as response:
            body = await response.json()
            return response.status == 200 and body["live"] and body["loop_late_s"] > 0.2

    await eventually(told, "/livez tells how late the loop was")
    assert _sample("sum") > before + 0.2


def _sample(kind: str) -> float:
    """Of the measure of how late the loop was."""
    return REGISTRY.get_sample_value(f"firstword_loop_late_seconds_{kind}") or 0.0


async def test_a_loop_whose_timer_is_gone_is_not_live(
    monkeypatch: pytest.MonkeyPatch, served: tuple[str, Health], client: aiohttp.ClientSession
) -> None:
    url, _ = served
    monkeypatch.setattr(loop_watch, "DEAD_S", -1.0)
    async with client.get(f"{url}/livez") as response:
        assert (response.status, (await response.json())["live"]) == (503, False)
