"""An agent whose Redis server is full: `/readyz` says so, callers are refused with `busy`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiohttp
import pytest

from firstword.embedded import EmbeddedServer
from firstword.streams import Streams
from services.agent import server_watch
from tests.doubles.path import PathDouble
from tests.integration.test_agent import invoke, serving, sound
from tests.support import eventually

pytestmark = pytest.mark.streams

ROOM = 50_000_000


async def test_a_server_that_takes_no_text_is_red_and_green_after(
    make_server: Callable[..., EmbeddedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "LOOK_S", 0.05)
    server = await asyncio.to_thread(make_server, max_memory_bytes=ROOM)
    streams = Streams(server.url)
    async with PathDouble(server.url), serving(server.url, tokens_per_second=0) as agent:
        await eventually(lambda: _is(agent, {}), "it is ready")
        used = (await streams.commands.info("memory"))["used_memory"]
        await streams.commands.config_set("maxmemory", used // 2)
        await eventually(lambda: _is(agent, {"memory": server_watch.FULL}), "it is red")
        async with agent.post("/v1/sessions/demo/text", json={"text": "Hello."}) as response:
            assert (response.status, (await response.json())["code"]) == (429, "busy")
        async with agent.get("/ping") as response:
            assert response.status == 200  # a new process would find the server as full
        await streams.commands.config_set("maxmemory", ROOM)
        await eventually(lambda: _is(agent, {}), "it is green by itself")
        assert sound(await invoke(agent, text="Hello.")) == "Hello."
    await streams.close()


async def test_a_server_that_does_not_say_is_not_full(redis_url: str) -> None:
    admin = Streams(redis_url)
    rules = ["on", ">word", "~*", "&*", "+@all", "-info"]
    await admin.commands.execute_command("ACL", "SETUSER", "guest", *rules)
    guest = Streams(redis_url.replace("redis://", "redis://guest:word@"))
    try:
        assert not await guest.refuses_text()
    finally:
        await guest.close()
        await admin.commands.execute_command("ACL", "DELUSER", "guest")
        await admin.close()


async def _is(agent: aiohttp.ClientSession, wanted: dict[str, str]) -> bool:
    async with agent.get("/readyz") as response:
        reasons = dict((await response.json())["reasons"])
    return reasons == wanted and response.status == (503 if wanted else 200)
