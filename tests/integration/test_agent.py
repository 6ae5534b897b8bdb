"""The agent's HTTP doors, on a real server; the path between is a double."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from firstword import keys, telemetry
from firstword import messages as m
from firstword.client import Firstword
from services.agent.scripted import ScriptedSource
from services.agent.service import AgentService
from services.agent.settings import AgentSettings
from services.agent.source import Ask
from services.agent.talk import MakeSource
from tests.doubles.path import PathDouble, heard
from tests.doubles.proxy import Proxy
from tests.support import eventually

TEXT = "The rain had stopped. Nobody noticed."


class Failing:
    """A model that breaks off."""

    async def stream(self, _ask: Ask) -> AsyncGenerator[str, None]:
        yield "So far"
        raise ConnectionError("a secret of the prompt")


@asynccontextmanager
async def serving(
    redis_url: str, source: MakeSource = ScriptedSource, **settings: Any
) -> AsyncIterator[aiohttp.ClientSession]:
    """An agent, and a caller to talk to it."""
    given = AgentSettings(redis_url=redis_url, http_port=0, **settings)
    service = await asyncio.to_thread(AgentService, given, source)  # it reads the page's files
    stop = asyncio.Event()
    running = asyncio.create_task(service.run(stop))
    await eventually(lambda: service.address or running.done(), "the agent serves")
    async with aiohttp.ClientSession(f"http://{service.address}") as caller:
        yield caller
    stop.set()
    await running


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    async with PathDouble(redis_url) as double:
        yield double


@pytest.fixture
async def agent(redis_url: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(redis_url, tokens_per_second=0) as caller:
        yield caller


async def events_of(response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
    """Every event, as a caller reads them."""
    assert response.status == 200, await response.text()
    assert response.content_type == "text/event-stream"
    lines = [line async for line in response.content]
    assert set(lines[1::2]) == {b"\n"}
    return [json.loads(line.removeprefix(b"data: ")) for line in lines[0::2]]


async def invoke(agent: aiohttp.ClientSession, **body: Any) -> list[dict[str, Any]]:
    async with agent.post("/invocations", json=body) as response:
        return await events_of(response)


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Types in order, repeats once."""
    types = [event["type"] for event in events]
    return [kind for at, kind in enumerate(types) if at == 0 or types[at - 1] != kind]


def sound(events: list[dict[str, Any]]) -> str:
    chunks = [event for event in events if event["type"] == "audio_chunk"]
    return heard(b"".join(base64.b64decode(chunk["data"]) for chunk in chunks))


def written(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["type"] == "text_delta")


def count(outcome: str) -> float:
    value = telemetry.caller_turns.labels(outcome)._value.get()
    return float(value)


# -- speaking -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["stream", "batch"])
async def test_a_text_is_written_and_spoken(
    path: PathDouble, agent: aiohttp.ClientSession, mode: str
) -> None:
    complete = count("complete")
    events = await invoke(agent, text=TEXT, mode=mode, voice="am_adam", speed=1.5)
    assert events[0]["type"] == "agent_start"
    assert events[0]["mode"] == mode
    assert written(events) == TEXT
    assert sound(events) == TEXT
    assert kinds(events)[-2:] == ["audio_stream_end", "agent_end"]
    assert events[-1]["reason"] == "complete"
    assert count("complete") == complete + 1
    pieces = [x for x in path.of(events[0]["session"]) if isinstance(x, m.Text)]
    assert len(pieces) == (1 if mode == "batch" else len(events_with_text(events)))
    assert (pieces[0].voice, pieces[0].speed) == ("am_adam", 1.5)


def events_with_text(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "text_delta"]


async def test_its_own_session_is_closed_and_a_named_one_stays(
    path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    own = (await invoke(agent, text="One."))[0]["session"]
    await eventually(lambda: isinstance(path.of(own)[-1], m.Close), "the session is closed")
    for _ in range(2):
        events = await invoke(agent, text="Two.", session="kept")
        assert sound(events) == "Two."
    assert not any(isinstance(message, m.Close) for message in path.of("kept"))


async def test_a_first_audio_is_measured(path: PathDouble, agent: aiohttp.ClientSession) -> None:
    name = 'firstword_client_first_audio_seconds_count{mode="batch"}'

    async def measured() -> float:
        async with agent.get("/metrics") as response:
            lines = (await response.text()).splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(name)))

    before = await measured()
    await invoke(agent, text="One. Two.", mode="batch")
    assert await measured() == before + 1


async def test_a_caller_that_hangs_up_cancels_its_turn(
    path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    gone = count("gone")
    async with agent.post(
        "/invocations", json={"text": "Long " * 50, "tokens_per_second": 20, "session": "hung-up"}
    ) as response:
        await response.content.readline()
    await eventually(
        lambda: any(isinstance(message, m.Cancel) for message in path.of("hung-up")),
        "the turn is cancelled",
    )
    assert count("gone") == gone + 1


async def test_a_turn_that_is_cancelled_by_another_ends(
    redis_url: str, path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    async with Firstword(redis_url) as firstword:
        asking = asyncio.create_task(
            invoke(agent, text="Long " * 50, tokens_per_second=20, session="shared")
        )
        await eventually(
            lambda: any(isinstance(message, m.Text) for message in path.of("shared")), "it is said"
        )
        await firstword.session("shared").cancel()
        events = await asking
    assert events[-1]["reason"] == "cancelled"


async def test_two_callers_in_one_session_hear_their_own_turn(
    path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    path.speaking.clear()
    asking = [
        asyncio.create_task(invoke(agent, text=text, session="shared"))
        for text in ("For one.", "For two.")
    ]
    await eventually(
        lambda: sum(isinstance(message, m.End) for message in path.of("shared")) == 2, "both said"
    )
    path.speaking.set()
    assert [sound(events) for events in await asyncio.gather(*asking)] == ["For one.", "For two."]


# -- what goes wrong ------------------------------------------------------------------------------


async def test_a_source_that_fails_is_told_and_spoken_so_far(
    redis_url: str, path: PathDouble
) -> None:
    failures = telemetry.model_failures.labels("other")
    before = failures._value.get()
    async with serving(redis_url, Failing) as agent:
        events = await invoke(agent, prompt="Anything")
    assert failures._value.get() == before + 1
    errors = [event for event in events if event["type"] == "error"]
    assert [error["code"] for error in errors] == ["source_failed"]
    assert "secret" not in json.dumps(events)
    assert sound(events) == "So far"
    assert events[-1]["reason"] == "complete"


async def test_a_path_that_is_silent_is_told(redis_url: str) -> None:
    lost = count("lost")
    async with serving(redis_url, patience_s=0.1, tokens_per_second=0) as agent:
        events = await invoke(agent, text="Hello?")
    assert [event["code"] for event in events if event["type"] == "error"] == ["no_speech"]
    assert events[-1] == {"type": "agent_end", "turn": events[0]["turn"], "reason": "failed"}
    assert count("lost") == lost + 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"not json", "bad_json"),
        (b'{"voice": "af_heart"}', "missing_text"),
        (b'{"text": "' + b"x" * 20_001 + b'"}', "too_large"),
        (b'{"text": "' + b"x" * 2_000_000 + b'"}', "too_large"),
    ],
)
async def test_a_bad_request_is_refused(
    agent: aiohttp.ClientSession, body: bytes, code: str
) -> None:
    async with agent.post("/invocations", data=io.BytesIO(body)) as response:
        assert response.status == (413 if len(body) > 1_048_576 else 400)
        told = await response.json()
    assert (told["type"], told["code"]) == ("error", code)
    assert told["message"]


async def test_a_server_that_is_away_is_told(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstword.server_errors.PATIENCE_S", 0)
    async with serving("redis://127.0.0.1:1") as agent:
        async with agent.post("/invocations", json={"text": "Hello."}) as response:
            assert response.status == 503
            assert (await response.json())["code"] == "unreachable"
        with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
            await agent.ws_connect("/ws")
        async with agent.get("/ping") as response:
            assert response.status == 503
        async with agent.get("/readyz") as response:
            assert "redis" in (await response.json())["reasons"]


async def test_a_server_that_goes_away_meanwhile_is_told(
    redis_url: str, path: PathDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = count("failed")
    async with Proxy(redis_url) as proxy, serving(proxy.url) as agent:
        body = {"text": "Long " * 50, "tokens_per_second": 50, "session": "cut-off"}
        async with agent.post("/invocations", json=body) as response:
            await eventually(
                lambda: any(isinstance(x, m.Text) for x in path.of("cut-off")), "it is said"
            )
            monkeypatch.setattr("firstword.server_errors.PATIENCE_S", 0)
            await proxy.stop()
            events = await events_of(response)
    assert [event["code"] for event in events if event["type"] == "error"] == ["unreachable"]
    assert events[-1]["reason"] == "failed"
    assert count("failed") == failed + 1


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null"])
async def test_pages_of_other_sites_are_refused(agent: aiohttp.ClientSession, origin: str) -> None:
    headers = {"Origin": origin}
    async with agent.post("/invocations", json={"text": "Hi."}, headers=headers) as response:
        assert response.status == 403
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await agent.ws_connect("/ws", headers=headers)


# -- the rest -------------------------------------------------------------------------------------


async def test_it_says_that_it_is_well(agent: aiohttp.ClientSession) -> None:
    async def status(path: str) -> int:
        async with agent.get(path) as response:
            return response.status

    await eventually(lambda: _equal(status("/readyz"), 200), "it is ready")
    assert await status("/ping") == 200
    assert await status("/livez") == 200


async def test_the_page_and_what_it_needs(agent: aiohttp.ClientSession) -> None:
    found = {}
    for path in ("/", "/app.js", "/player.js", "/player-worklet.js", "/style.css"):
        async with agent.get(path) as response:
            assert response.status == 200
            found[path] = response.content_type
            policy = response.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert set(found.values()) == {"text/html", "text/javascript", "text/css"}
    async with agent.get("/v1/voices") as response:
        voices = (await response.json())["voices"]
    assert {"id": "af_heart", "language": "en-us"} in voices


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, {"source": "scripted", "answers": False}),
        ({"script": "replies.txt"}, {"source": "scripted", "answers": True}),
    ],
)
async def test_a_caller_can_learn_whether_prompts_are_answered(
    redis_url: str, settings: dict[str, Any], told: dict[str, Any]
) -> None:
    async with serving(redis_url, **settings) as agent, agent.get("/v1/agent") as response:
        assert await response.json() == told


async def _equal(answer: Any, wanted: int) -> bool:
    return bool(await answer == wanted)


async def test_a_session_with_enough_to_say_takes_no_more(
    redis_url: str, path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    async with Firstword(redis_url) as firstword:
        commands = firstword.streams.commands
        await commands.hset(keys.text_state("demo"), "waiting", 101)
        async with agent.post("/invocations", json={"text": TEXT, "session": "demo"}) as response:
            assert response.status == 429
            assert response.headers["Retry-After"] == "5"
            body = await response.json()
        assert (body["code"], body["retryable"]) == ("busy", True)
        await commands.hset(keys.text_state("demo"), "waiting", 100)
        assert sound(await invoke(agent, text=TEXT, session="demo")) == TEXT
