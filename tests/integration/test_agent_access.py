"""The agent's locks: tokens, quotas, pages of other sites, and nothing of it in the log."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from services.agent.access import AccessError
from services.agent.scripted import ScriptedSource
from services.agent.service import AgentService
from services.agent.settings import AgentSettings
from services.agent.source import TokenSource
from tests.doubles.path import PathDouble
from tests.integration.test_agent import events_of, serving, sound
from tests.support import eventually

ALICE, BOB = "secret-of-alice", "secret-of-bob"
TOKENS = ",".join(
    f"{name}:{hashlib.sha256(secret.encode()).hexdigest()}"
    for name, secret in (("alice", ALICE), ("bob", BOB))
)
SITE = "https://app.example"


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    async with PathDouble(redis_url) as double:
        yield double


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def status(agent: aiohttp.ClientSession, method: str, path: str, **how: Any) -> int:
    async with agent.request(method, path, **how) as response:
        return response.status


DOORS = [
    ("POST", "/invocations"),
    ("GET", "/ws"),
    ("GET", "/v1/sessions/demo/events"),
    ("POST", "/v1/sessions/demo/text"),
    ("POST", "/v1/sessions/demo/cancel"),
    ("POST", "/v1/audio/speech"),
    ("GET", "/v1/models"),
    ("GET", "/v1/voices"),
    ("GET", "/v1/agent"),
    ("GET", "/nothing"),
]


async def test_no_door_opens_without_a_token(redis_url: str) -> None:
    async with serving(redis_url, api_tokens=TOKENS) as agent:
        for method, path in DOORS:
            for headers in ({}, bearer("wrong"), {"Authorization": ALICE}, bearer("")):
                async with agent.request(method, path, headers=headers) as response:
                    assert response.status == 401, path
                    assert response.headers["WWW-Authenticate"] == "Bearer"
                    told = await response.json()
                assert (told.get("error") or told)["code"] == "unauthorized"
        for path in ("/", "/app.js", "/style.css", "/ping", "/livez", "/readyz", "/metrics"):
            assert await status(agent, "GET", path) in (200, 503)


async def test_a_token_opens_every_door(redis_url: str, path: PathDouble) -> None:
    async with serving(redis_url, api_tokens=TOKENS, tokens_per_second=0) as agent:
        headers = bearer(ALICE)
        async with agent.post("/invocations", json={"text": "Hi."}, headers=headers) as response:
            events = await events_of(response)
        assert sound(events) == "Hi."
        assert ":" not in events[0]["session"], "its own name for it"
        assert await status(agent, "GET", "/v1/voices", headers=headers) == 200
        assert await status(agent, "GET", "/v1/models", headers=headers) == 200
        async with agent.ws_connect("/ws?session=demo", headers=headers) as socket:
            assert (await socket.receive_json())["session"] == "demo"


async def test_browsers_show_it_as_a_subprotocol(redis_url: str, path: PathDouble) -> None:
    async with serving(redis_url, api_tokens=TOKENS) as agent:
        offered = ("firstword", f"firstword.bearer.{ALICE}")
        async with agent.ws_connect("/ws", protocols=offered) as socket:
            assert socket.protocol == "firstword", "the token stays out of the answer"
            await socket.receive_json()
        for protocols, refused in ((offered[1:], 400), (("firstword", "firstword.bearer.x"), 401)):
            with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
                await agent.ws_connect("/ws", protocols=protocols)
            assert raised.value.status == refused


async def test_nobody_hears_or_stops_anothers_session(redis_url: str, path: PathDouble) -> None:
    path.speaking.clear()
    async with serving(redis_url, api_tokens=TOKENS) as agent:
        body = {"text": "For alice only. ", "turn": "t", "seq": 0}
        where = "/v1/sessions/demo"
        assert await status(agent, "POST", f"{where}/text", json=body, headers=bearer(ALICE)) == 202
        async with (
            agent.get(f"{where}/events", headers=bearer(ALICE)) as hers,
            agent.get(f"{where}/events", headers=bearer(BOB)) as his,
            agent.ws_connect("/ws?session=alice:demo", headers=bearer(BOB)) as tricky,
        ):
            await agent.post(f"{where}/end", json={"turn": "t", "seq": 1}, headers=bearer(ALICE))
            path.speaking.set()
            assert b"turn_started" in await hers.content.readuntil(b"}\n\n")
            assert (await tricky.receive_json())["session"] == "alice:demo"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(his.content.readany(), 0.5)
            with pytest.raises(TimeoutError):
                await tricky.receive(timeout=0.1)
        assert {message.session for message in path.received} >= {"alice:demo", "bob:alice:demo"}
        assert not any(message.session == "demo" for message in path.received)


async def test_a_line_is_its_tokens(redis_url: str, path: PathDouble) -> None:
    async with serving(redis_url, api_tokens=TOKENS) as agent:
        async with agent.ws_connect("/ws?session=demo", headers=bearer(ALICE)) as socket:
            line = (await socket.receive_json())["line"]
            where = f"/ws?session=demo&line={line}"
            async with agent.ws_connect(where, headers=bearer(BOB)) as other:
                assert (await other.receive_json())["line"] != line


async def test_so_many_sessions_and_characters(redis_url: str, path: PathDouble) -> None:
    limits: dict[str, Any] = {"max_sessions": 2, "max_chars_per_minute": 60}
    async with serving(redis_url, api_tokens=TOKENS, tokens_per_second=0, **limits) as agent:
        async with (
            agent.ws_connect("/ws?session=one", headers=bearer(ALICE)) as socket,
            agent.get("/v1/sessions/two/events", headers=bearer(ALICE)),
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
                await agent.ws_connect("/ws", headers=bearer(ALICE))
            assert raised.value.status == 429
            assert raised.value.headers is not None
            assert raised.value.headers["Retry-After"] == "5"
            async with agent.ws_connect("/ws", headers=bearer(BOB)):
                pass
            async with agent.ws_connect("/ws?session=one", headers=bearer(ALICE)):
                pass
            await socket.receive_json()
            for text in ("x" * 50, "y" * 50, "z" * 70):
                await socket.send_json({"type": "say", "text": text})
            codes: list[str] = []
            while len(codes) < 2:
                event = await socket.receive()
                if event.type is aiohttp.WSMsgType.TEXT and event.json()["type"] == "error":
                    codes.append(event.json()["code"])
            assert codes == ["quota", "too_large"]
            how: dict[str, Any] = {"json": {"text": "z" * 70}, "headers": bearer(ALICE)}
            assert await status(agent, "POST", "/v1/sessions/one/text", **how) == 400
            body = {"text": "x" * 50, "turn": "t"}
            where = "/v1/sessions/one/text"
            async with agent.post(where, json=body, headers=bearer(ALICE)) as response:
                assert response.status == 429
                assert (await response.json())["code"] == "quota"
                assert 30 < int(response.headers["Retry-After"]) <= 40

        async def free() -> bool:
            return await status(agent, "POST", "/v1/sessions/3/flush", headers=bearer(ALICE)) == 202

        await eventually(free, "who hangs up makes room")


async def test_a_session_that_is_published_to_counts_for_a_while(
    redis_url: str, path: PathDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.agent.sessions.IDLE_S", 2.0)
    async with serving(redis_url, api_tokens=TOKENS, max_sessions=1) as agent:

        async def publish(session: str) -> int:
            where = f"/v1/sessions/{session}/flush"
            return await status(agent, "POST", where, headers=bearer(ALICE))

        assert await publish("one") == await publish("one") == 202
        assert await publish("two") == 429

        async def connected() -> bool:
            try:
                async with agent.ws_connect("/ws?session=two", headers=bearer(ALICE)):
                    return True
            except aiohttp.WSServerHandshakeError as error:
                assert error.status == 429
                return False

        await eventually(connected, "the other is forgotten")


async def test_a_models_reply_is_paid_for_as_it_is_written(
    redis_url: str, path: PathDouble
) -> None:
    limits: dict[str, Any] = {"max_chars_per_minute": 60}
    async with serving(redis_url, api_tokens=TOKENS, tokens_per_second=0, **limits) as agent:

        async def ask() -> int:
            body = {"prompt": "Say this again. " * 6}
            headers = bearer(ALICE)
            async with agent.post("/invocations", json=body, headers=headers) as response:
                await response.read()
                return response.status

        assert await ask() == 200
        assert await ask() == 429


async def test_pages_of_listed_sites_may_ask(redis_url: str, path: PathDouble) -> None:
    async with serving(redis_url, cors_origins=SITE, api_tokens=TOKENS) as agent:
        asking = {"Origin": SITE, "Access-Control-Request-Method": "POST"}
        async with agent.options("/v1/audio/speech", headers=asking) as response:
            assert response.status == 204
            assert response.headers["Access-Control-Allow-Origin"] == SITE
            assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
        for secret, wanted in ((ALICE, 200), ("wrong", 401)):
            headers = {"Origin": SITE, **bearer(secret)}
            async with agent.get("/v1/voices", headers=headers) as response:
                assert response.status == wanted
                assert response.headers["Access-Control-Allow-Origin"] == SITE
                assert response.headers["Vary"] == "Origin"
        other = {"Origin": "https://other.example", **bearer(ALICE)}
        async with agent.get("/v1/voices", headers=other) as response:
            assert response.status == 403
            assert "Access-Control-Allow-Origin" not in response.headers
        async with agent.ws_connect("/ws", headers={"Origin": SITE, **bearer(ALICE)}) as socket:
            await socket.receive_json()


@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:8000", ""])
async def test_without_tokens_only_this_machine_is_meant(redis_url: str, host: str) -> None:
    async with serving(redis_url) as agent:
        for method, path in DOORS:
            async with agent.request(method, path, headers={"Host": host}) as response:
                assert response.status in (400, 403), path
        assert await status(agent, "GET", "/v1/voices", headers={"Host": "localhost:1"}) == 200


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"http_host": "0.0.0.0"}, "opens the agent to other machines"),
        ({"api_tokens": "alice"}, "firstword token NAME"),
        ({"cors_origins": "*"}, "is no origin"),
    ],
)
async def test_an_agent_that_would_stand_open_does_not_start(
    settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(AccessError, match=sentence):
        await asyncio.to_thread(AgentService, AgentSettings(**settings), ScriptedSource)


async def test_neither_texts_nor_tokens_are_logged(
    redis_url: str, path: PathDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    private = "Nobody reads this."
    async with serving(redis_url, api_tokens=TOKENS, tokens_per_second=0) as agent:
        for secret in (ALICE, "wrong-secret"):
            headers = bearer(secret)
            await status(agent, "POST", "/invocations", json={"text": private}, headers=headers)
            body = {"input": private, "voice": "af_heart", "response_format": "pcm"}
            await status(agent, "POST", "/v1/audio/speech", json=body, headers=headers)
            await status(
                agent, "POST", "/v1/sessions/d/text", json={"text": private}, headers=headers
            )
            await status(agent, "GET", f"/v1/voices?token={secret}", headers=headers)
        async with agent.get("/metrics") as response:
            told = await response.text()
    captured = capsys.readouterr()
    for secret in (private, ALICE, "wrong-secret", "alice"):
        assert secret not in captured.out + captured.err + told


async def test_a_fault_of_ours_is_told_without_its_words(
    redis_url: str, path: PathDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing() -> TokenSource:
        raise RuntimeError("what somebody said")

    async with serving(redis_url, failing) as agent:
        async with agent.post("/invocations", json={"text": "Hi."}) as response:
            assert response.status == 500
            told = await response.text()
        with pytest.raises(aiohttp.WSServerHandshakeError, match="500"):
            await agent.ws_connect("/ws")
        assert await status(agent, "GET", "/livez") == 200
    captured = capsys.readouterr()
    assert "RuntimeError" in captured.out
    assert "somebody" not in captured.out + captured.err + told


@pytest.mark.parametrize(
    ("request_bytes", "wanted"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer top\x00secret\r\n\r\n", 400),
        (b"GET /x HTTP/1.1\r\nHost: localhost\r\nExpect: top\x81secret\r\n\r\n", 417),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n", 100),
        (b"GET / HTTP/1.0\r\nHost: localhost\r\nExpect: top\x81secret\r\n\r\n", 200),
    ],
)
async def test_a_request_that_is_no_http_is_not_logged(
    redis_url: str, caplog: pytest.LogCaptureFixture, request_bytes: bytes, wanted: int
) -> None:
    async with serving(redis_url) as agent:
        assert agent._base_url is not None
        reader, writer = await asyncio.open_connection(agent._base_url.host, agent._base_url.port)
        writer.write(request_bytes)
        assert (await reader.readuntil(b"\r\n")).split()[1] == str(wanted).encode()
        writer.close()
        await writer.wait_closed()
    assert "secret" not in caplog.text and "Traceback" not in caplog.text
