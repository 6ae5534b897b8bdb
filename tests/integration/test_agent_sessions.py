"""Listening and publishing over HTTP, for programs that have no Redis; the path is a double."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from firstword import codec, keys
from firstword import messages as m
from firstword.client import Firstword
from tests.doubles.deaf import deaf, rest_of
from tests.doubles.path import PathDouble, heard
from tests.doubles.proxy import Proxy
from tests.integration.test_agent import serving
from tests.support import eventually


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    async with PathDouble(redis_url) as double:
        yield double


@pytest.fixture
async def agent(redis_url: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(redis_url) as caller:
        yield caller


class Listening:
    """A reader of server-sent events: `event` is the next one, `position` the id of the last."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.position = ""
        self._response = response

    async def event(self) -> dict[str, Any]:
        fields: dict[str, str] = {}
        while True:
            line = (await self._response.content.readline()).decode()
            assert line, "the stream has ended"
            if line == "\n" and "data" in fields:
                self.position = fields.get("id", self.position)
                return dict(json.loads(fields["data"]))
            name, _, value = line.removesuffix("\n").partition(": ")
            fields[name] = value

    async def until(self, kind: str) -> list[dict[str, Any]]:
        seen = [await self.event()]
        while seen[-1]["type"] != kind:
            seen.append(await self.event())
        return seen


@asynccontextmanager
async def listening(
    agent: aiohttp.ClientSession, session: str = "demo", **headers: str
) -> AsyncIterator[Listening]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with agent.get(f"/v1/sessions/{session}/events", headers=named) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        yield Listening(response)


async def post(
    agent: aiohttp.ClientSession, kind: str, session: str = "demo", **body: Any
) -> tuple[int, dict[str, Any]]:
    async with agent.post(f"/v1/sessions/{session}/{kind}", json=body) as response:
        return response.status, await response.json()


def said(events: list[dict[str, Any]]) -> str:
    chunks = [event for event in events if event["type"] == "audio_chunk"]
    return heard(b"".join(base64.b64decode(chunk["data"]) for chunk in chunks))


# -- listening ------------------------------------------------------------------------------------


async def test_what_is_published_is_heard(path: PathDouble, agent: aiohttp.ClientSession) -> None:
    async with listening(agent) as listener:
        status, told = await post(agent, "text", text="One. ", turn="t", seq=0)
        assert (status, told["session"]) == (202, "demo")
        assert int(told["id"].partition("-")[0]) > 0
        await post(agent, "text", text="Two.", turn="t", seq=1, end=True)
        events = await listener.until("turn_done")
        assert said(events) == "One. Two."
        assert all(event["id"] for event in events)
        assert listener.position == events[-1]["id"]
        await post(agent, "close")
        assert (await listener.event())["type"] == "closed"


async def test_who_comes_back_goes_on_behind_the_last_event(
    path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    async with listening(agent) as listener:
        await post(agent, "text", text="One. Two. Three.", turn="t", seq=0, end=True)
        first = [await listener.event() for _ in range(3)]
        position = listener.position
    async with listening(agent, Last_Event_ID=position) as listener:
        rest = await listener.until("turn_done")
    assert said(first + rest) == "One. Two. Three."
    async with agent.get("/v1/sessions/demo/events", params={"from": position}) as response:
        assert await Listening(response).event() == rest[0]


async def test_a_place_that_cannot_be_is_refused(agent: aiohttp.ClientSession) -> None:
    for where in ({"from": "yesterday"}, {"from": "-1"}):
        async with agent.get("/v1/sessions/demo/events", params=where) as response:
            assert response.status == 400
            assert (await response.json())["code"] == "bad_id"


async def test_a_place_that_the_server_never_had_is_told_and_not_asked_for_again(
    agent: aiohttp.ClientSession,
) -> None:
    async with listening(agent, Last_Event_ID="9999999999999-0") as listener:
        assert (await listener.event())["code"] == "state_lost"
        assert listener.position == ""


async def test_silence_is_told_to_what_stands_between(
    agent: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.agent.sse.KEEPALIVE_S", 0.02)
    async with agent.get("/v1/sessions/demo/events") as response:
        assert await response.content.readline() == b": still here\n"


@pytest.mark.parametrize("door", ["events", "ws"])
async def test_a_listener_that_takes_nothing_is_cut_and_the_others_are_not(
    redis_url: str, door: str
) -> None:
    chunks = [m.AudioChunk(turn="t", n=0, offset=n * 8000, data=bytes(16_000)) for n in range(500)]
    target = "/ws?session=demo" if door == "ws" else "/v1/sessions/demo/events"
    async with serving(redis_url, stall_s=0.5) as agent, listening(agent) as well:
        before = await cut_off(agent, door)
        async with (
            deaf(f"{agent._base_url}{target}", websocket=door == "ws") as slow,
            Firstword(redis_url) as firstword,
        ):
            await eventually(lambda: connected(agent, door), "it listens")
            for message in [*chunks, m.TurnDone(turn="t", segments=1, samples=0, reason="failed")]:
                packed = codec.pack(message, "demo")
                await firstword.streams.append(keys.audio("demo"), {"m": packed})
            events = await asyncio.wait_for(well.until("turn_done"), 60)
            assert [event["offset"] for event in events[:-1]] == [c.offset for c in chunks]

            async def is_cut() -> bool:
                return await cut_off(agent, door) == before + 1

            await eventually(is_cut, "it is cut off")
            assert len(await rest_of(slow)) < 500 * 16_000


async def cut_off(agent: aiohttp.ClientSession, door: str) -> float:
    return await metric(agent, f'firstword_agent_cut_listeners_total{{door="{door}"}}')


async def connected(agent: aiohttp.ClientSession, door: str) -> bool:
    others = door == "events"  # the one who listens well
    return await metric(agent, f'firstword_agent_callers{{door="{door}"}}') > others


async def metric(agent: aiohttp.ClientSession, name: str) -> float:
    async with agent.get("/metrics") as response:
        lines = (await response.text()).splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(name)))


# -- publishing -----------------------------------------------------------------------------------


async def test_what_is_numbered_may_be_sent_again(
    path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    async with listening(agent) as listener:
        for _ in range(3):
            assert (await post(agent, "text", text="Once.", turn="t", seq=0))[0] == 202
        for _ in range(2):
            await post(agent, "end", turn="t", seq=1)
        assert said(await listener.until("turn_done")) == "Once."


async def test_a_number_is_passed_on_as_it_is(
    path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    await post(agent, "open", voice="af_bella", pace="none")
    await post(agent, "text", text="Hi.", turn="t", seq=7, voice="am_adam", speed=1.5)
    await post(agent, "flush", turn="t", seq=8)
    await post(agent, "end", turn="t", seq=9)
    await eventually(lambda: len(path.of("demo")) == 4, "all has come")
    assert path.of("demo") == [
        m.Open(session="demo", voice="af_bella", pace="none"),
        m.Text(session="demo", text="Hi.", turn="t", seq=7, voice="am_adam", speed=1.5),
        m.Flush(session="demo", turn="t", seq=8),
        m.End(session="demo", turn="t", seq=9),
    ]


async def test_a_segmenter_that_starts_in_the_middle_changes_no_order(
    redis_url: str, agent: aiohttp.ClientSession
) -> None:
    """Before the first one there is the door alone: an end at a partition would overtake."""
    async with Firstword(redis_url) as firstword:
        await post(agent, "text", text="Hi.", turn="t")
        assert await firstword.streams.record(16, max_queued=200) == 16
        await post(agent, "end", turn="t")
        await post(agent, "text", text="Hi.", turn="t", session="another")
        commands = firstword.streams.commands
        assert await commands.xlen(keys.DOOR) == 2
        assert await commands.xlen(keys.ingress_of("another", 16)) == 1, "others go straight"


async def test_many_publishers_of_a_session_keep_their_order(
    path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    async def speak(turn: str) -> None:
        for seq in range(10):
            await post(agent, "text", text=f"{seq}", turn=turn, seq=seq)
        await post(agent, "end", turn=turn, seq=10)

    async with listening(agent) as listener:
        await asyncio.gather(speak("a"), speak("b"))
        events = await listener.until("turn_done") + await listener.until("turn_done")
    for turn in ("a", "b"):
        assert said([e for e in events if e.get("turn") == turn]) == "0123456789"


async def test_a_cancel_answers_its_receipt(path: PathDouble, agent: aiohttp.ClientSession) -> None:
    path.speaking.clear()
    await post(agent, "text", text="Never heard. ", turn="t", seq=0)
    played = {"turn": "t", "n": 0, "samples": 0}
    status, receipt = await post(agent, "cancel", turn="t", played=played)
    assert status == 200
    assert (receipt["type"], receipt["turn"]) == ("turn_cancelled", "t")
    cancel = next(message for message in path.of("demo") if isinstance(message, m.Cancel))
    assert cancel.played == played


async def test_a_cancel_that_nobody_answers_is_told(
    agent: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstword.session.RECEIPT_TIMEOUT_S", 0.1)
    monkeypatch.setattr("firstword.session.Session.cancel.__kwdefaults__", {"timeout_s": 0.1})
    async with agent.post("/v1/sessions/demo/cancel") as response:
        assert response.status == 503
        assert (await response.json())["code"] == "no_receipt"
        assert response.headers["Retry-After"] == "5"


async def test_a_session_with_enough_to_say_takes_no_more(
    redis_url: str, path: PathDouble, agent: aiohttp.ClientSession
) -> None:
    async with Firstword(redis_url) as firstword:
        commands = firstword.streams.commands
        await commands.hset(keys.text_state("demo"), "waiting", 101)
        statuses = []
        for seq in range(20):
            body = {"text": "One. Two. Three.", "turn": "t", "seq": seq}
            async with agent.post("/v1/sessions/demo/text", json=body) as response:
                statuses.append(response.status)
                told = await response.json()
                waits = response.headers.get("Retry-After")
            if response.status == 429:
                break
        assert statuses[-1] == 429 and waits == "5"
        assert (told["code"], told["retryable"]) == ("busy", True)
        await commands.hset(keys.text_state("demo"), "waiting", 0)
        assert (await post(agent, "text", text="It fits.", turn="t", seq=seq))[0] == 202


@pytest.mark.parametrize(
    ("kind", "body", "status", "code"),
    [
        ("text", b"{", 400, "bad_json"),
        ("text", b"{}", 400, "missing_text"),
        ("text", b'{"text": "x", "seq": 0}', 400, "bad_field"),
        ("open", b'{"pace": "slow"}', 400, "bad_field"),
        ("events", b"{}", 405, "bad_method"),
        ("text", b'{"text": "' + b"x" * 20_001 + b'"}', 400, "too_large"),
        ("text", b'{"text": "' + b"x" * 5_000 + b'", "turn": "t", "seq": 0}', 400, "too_large"),
        ("text", b'{"text": "' + b"x" * 2_000_000 + b'"}', 413, "too_large"),
        ("sing", b"{}", 404, "no_such_path"),
    ],
)
async def test_what_cannot_be_is_refused(
    agent: aiohttp.ClientSession, kind: str, body: bytes, status: int, code: str
) -> None:
    async with agent.post(f"/v1/sessions/demo/{kind}", data=io.BytesIO(body)) as response:
        assert response.status == status
        assert (await response.json())["code"] == code
        assert response.headers.get("Allow") == ("GET, HEAD" if status == 405 else None)


async def test_a_session_that_cannot_be_is_refused(agent: aiohttp.ClientSession) -> None:
    assert (await post(agent, "text", "a b", text="x"))[1]["code"] == "bad_name"
    async with agent.get("/v1/sessions/a%20b/events") as response:
        assert response.status == 400


@pytest.mark.parametrize("numbered", [True, False])
async def test_a_server_that_is_away_is_told(
    redis_url: str, numbered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Proxy(redis_url) as proxy, serving(proxy.url) as agent:
        body: dict[str, Any] = {"text": "Hello.", "turn": "t", **({"seq": 0} if numbered else {})}
        assert (await post(agent, "text", **body))[0] == 202
        monkeypatch.setattr("firstword.server_errors.PATIENCE_S", 0)
        await proxy.stop()
        status, told = await post(agent, "text", **body)
        assert (status, told["code"], told["retryable"]) == (503, "unreachable", True)
