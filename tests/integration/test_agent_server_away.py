"""An agent whose Redis server is away, and knows it: callers are told without a wait."""

from __future__ import annotations

import aiohttp
import pytest
from structlog.testing import capture_logs

from firstword import server_errors
from firstword.streams import Streams
from services.agent import server_watch
from tests.doubles.path import PathDouble
from tests.doubles.proxy import Proxy
from tests.integration.test_agent import invoke, serving, sound
from tests.support import eventually

SPEECH = {"model": "kokoro", "input": "Hello.", "voice": "af_heart", "response_format": "pcm"}


@pytest.fixture(autouse=True)
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tries as long as for a server that may come back does so for this test's life."""
    monkeypatch.setattr(server_errors, "PATIENCE_S", 1e6)


async def test_every_door_tells_at_once() -> None:
    async with serving("redis://127.0.0.1:1") as agent:
        for path, body in (
            ("/invocations", {"text": "Hello."}),
            ("/v1/audio/speech", SPEECH),
            ("/v1/sessions/demo/text", {"text": "Hello."}),
        ):
            async with agent.post(path, json=body) as response:
                assert response.status == 503, path
                assert response.headers["Retry-After"] == "5"
                assert "no Redis server answers" in await response.text()
        async with agent.get("/v1/sessions/demo/events") as response:
            assert response.status == 503
        with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
            await agent.ws_connect("/ws")
        async with agent.get("/v1/models") as response:
            assert response.status == 200  # needs no server


async def test_one_that_takes_connections_and_says_nothing_is_away_too(redis_url: str) -> None:
    async with Proxy(redis_url) as proxy:
        proxy.go_dark(new_too=True)
        async with (
            serving(proxy.url) as agent,
            agent.post("/invocations", json={"text": "Hello."}) as response,
        ):
            assert response.status == 503


async def test_a_server_that_is_back_is_used_before_the_next_look(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "LOOK_S", 1e6)
    async with PathDouble(redis_url), Proxy(redis_url) as proxy:
        proxy.go_dark(new_too=True)
        async with serving(proxy.url, tokens_per_second=0) as agent:

            async def is_there() -> bool:
                async with agent.get("/v1/sessions/demo/events") as response:
                    return response.status == 200

            assert not await is_there()
            proxy.go_dark(new_too=False)
            await eventually(is_there, "it is asked whenever somebody comes")
            assert sound(await invoke(agent, text="Hello.")) == "Hello."


async def test_what_the_server_says_is_told(redis_url: str) -> None:
    """A user who is none any more is no absence."""
    admin = Streams(redis_url)
    await admin.commands.execute_command("ACL", "SETUSER", "guest", "on", ">word", "~*", "+@all")
    with capture_logs() as logs:
        async with serving(redis_url.replace("redis://", "redis://guest:word@")) as agent:
            # Before that it would end, as for a wrong password.
            await eventually(lambda: "ready" in [line["event"] for line in logs], "it has started")
            await admin.commands.execute_command("ACL", "DELUSER", "guest")  # and its connections

            async def refused() -> bool:
                async with agent.post("/invocations", json={"text": "Hello."}) as response:
                    return response.status == 503 and (await response.json())["code"] == "refused"

            await eventually(refused, "callers are told what the server says")
    await admin.close()
