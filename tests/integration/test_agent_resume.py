"""Coming back to a conversation after the line broke: nothing is lost, nothing is heard twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import aiohttp
import pytest

from firstword import messages as m
from services.agent.source import Ask
from tests.doubles.path import PathDouble, heard
from tests.integration.test_agent import serving
from tests.support import eventually

TEXT = "One is here. Two is here. Three is here. Four is here."
Socket = aiohttp.ClientWebSocketResponse


class Ear:
    """A caller as the documents want it: remembers the last event that it has whole."""

    def __init__(self) -> None:
        self.position = ""
        self.names: dict[str, str] = {}
        self.text: dict[str, str] = {}
        self.audio: dict[int, bytes] = {}
        self.kinds: list[str] = []
        self._at: dict[str, Any] = {}

    def take(self, frame: aiohttp.WSMessage) -> str:
        """One frame; returns the type of its event, `audio` for a binary one."""
        if frame.type is aiohttp.WSMsgType.BINARY:
            held = self.audio.get(self._at["n"], b"")
            assert len(held) == self._at["offset"] * 2, "to the sample"
            self.audio[self._at["n"]] = held + frame.data
            self.position = self._at["id"]
            return "audio"
        assert frame.type is aiohttp.WSMsgType.TEXT, frame
        event = frame.json()
        kind = str(event["type"])
        self.kinds.append(kind)
        match kind:
            case "session":
                self.names = {name: event[name] for name in ("session", "line")}
                self.position = self.position or event["id"]
            case "at":
                self._at = event
            case "text_delta":
                before = self.text.get(event["turn"], "")
                self.text[event["turn"]] = before[: event["start"]] + event["text"]
            case "agent_start":
                pass
            case _:
                self.position = event.get("id", self.position)
        return kind

    async def until(self, socket: Socket, kind: str, times: int = 1) -> None:
        while times:
            times -= self.take(await socket.receive(timeout=10)) == kind

    @property
    def where(self) -> str:
        """How it comes back."""
        query = {**self.names, "from": self.position}
        return "/ws?" + "&".join(f"{name}={value}" for name, value in query.items())

    @property
    def said(self) -> str:
        return heard(b"".join(self.audio[n] for n in sorted(self.audio)))


def cut(socket: Socket) -> None:
    """The network drops the connection: no close frame, no farewell."""
    assert socket._response.connection is not None
    transport = socket._response.connection.transport
    assert transport is not None
    transport.abort()


def cancels(path: PathDouble, session: str) -> int:
    return sum(isinstance(message, m.Cancel) for message in path.of(session))


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    async with PathDouble(redis_url) as double:
        yield double


@pytest.mark.parametrize("url", ["/ws", "/ws?session=demo"])
async def test_the_rest_is_heard_to_the_sample(redis_url: str, path: PathDouble, url: str) -> None:
    async with serving(redis_url, tokens_per_second=0) as agent:
        ear = Ear()
        async with agent.ws_connect(url) as socket:
            await socket.send_json({"type": "say", "text": TEXT, "turn": "t"})
            await ear.until(socket, "audio", 3)
            cut(socket)
        before = len(ear.kinds)
        async with agent.ws_connect(ear.where) as socket:
            await ear.until(socket, "turn_done")
            again = ear.kinds[before:]
            assert again[0] == "session" and "agent_start" not in again[2:]
            assert ear.said == TEXT
            assert cancels(path, ear.names["session"]) == 0
            await socket.send_json({"type": "say", "text": "And on.", "turn": "u"})
            await ear.until(socket, "turn_done")
        assert ear.said == TEXT + "And on."


async def test_what_was_written_meanwhile_is_told(redis_url: str, path: PathDouble) -> None:
    path.speaking.clear()
    async with serving(redis_url, tokens_per_second=50) as agent:
        ear = Ear()
        async with agent.ws_connect("/ws") as socket:
            await socket.send_json({"type": "say", "text": TEXT, "turn": "t"})
            await ear.until(socket, "text_delta", 2)
            cut(socket)
        session = ear.names["session"]
        await eventually(
            lambda: any(isinstance(message, m.End) for message in path.of(session)),
            "the turn is written to its end",
        )
        assert ear.text["t"] != TEXT
        async with agent.ws_connect(ear.where) as socket:
            await ear.until(socket, "agent_start")
            await ear.until(socket, "text_delta")
            assert ear.text["t"] == TEXT
            path.speaking.set()
            await ear.until(socket, "turn_done")
        assert ear.said == TEXT


@pytest.mark.parametrize("named", [False, True])
async def test_who_does_not_come_back_has_hung_up(
    redis_url: str, path: PathDouble, named: bool
) -> None:
    path.speaking.clear()
    async with serving(redis_url, tokens_per_second=20, resume_s=0.1) as agent:
        ear = Ear()
        async with agent.ws_connect("/ws?session=demo" if named else "/ws") as socket:
            await socket.send_json({"type": "say", "text": TEXT * 20, "turn": "t"})
            await ear.until(socket, "text_delta")
            cut(socket)
        session = ear.names["session"]
        await eventually(lambda: cancels(path, session) == 1, "its turn is cancelled")

        def closed() -> bool:
            return isinstance(path.of(session)[-1], m.Close)

        if not named:
            await eventually(closed, "its session is closed")
        # The line is not known any more: it is a new one, of the same session.
        async with agent.ws_connect(ear.where) as socket:
            line = ear.names["line"]
            await ear.until(socket, "turn_cancelled")
            assert ear.names["line"] != line
        assert not (named and closed())


async def test_a_socket_that_is_dead_without_knowing_it_is_let_go(
    redis_url: str, path: PathDouble
) -> None:
    async with serving(redis_url, tokens_per_second=0) as agent:
        ear = Ear()
        async with agent.ws_connect("/ws") as old:
            await old.send_json({"type": "say", "text": TEXT, "turn": "t"})
            await ear.until(old, "audio", 2)
            async with agent.ws_connect(ear.where) as new:
                await ear.until(new, "turn_done")
                assert ear.said == TEXT
                while (frame := await old.receive(timeout=5)).type in (
                    aiohttp.WSMsgType.TEXT,
                    aiohttp.WSMsgType.BINARY,
                ):
                    pass
                assert frame.type is aiohttp.WSMsgType.CLOSED
                await new.send_json({"type": "say", "text": "Still here.", "turn": "u"})
                await ear.until(new, "turn_done")
        await eventually(
            lambda: isinstance(path.of(ear.names["session"])[-1], m.Close), "it has hung up"
        )
        assert cancels(path, ear.names["session"]) == 0


async def test_errors_that_nobody_was_there_for_are_told(redis_url: str, path: PathDouble) -> None:
    broken = asyncio.Event()

    class Failing:
        async def stream(self, ask: Ask) -> AsyncGenerator[str, None]:
            yield "So far. "
            await broken.wait()
            raise ConnectionError("gone")

    async with serving(redis_url, Failing) as agent:
        ear = Ear()
        async with agent.ws_connect("/ws") as socket:
            await socket.send_json({"type": "say", "prompt": "Anything", "turn": "t"})
            await ear.until(socket, "text_delta")
            cut(socket)
        path.speaking.clear()
        broken.set()
        session = ear.names["session"]
        await eventually(
            lambda: any(isinstance(message, m.End) for message in path.of(session)),
            "what was written is spoken",
        )
        async with agent.ws_connect(ear.where) as socket:
            await ear.until(socket, "error")
            path.speaking.set()
            await ear.until(socket, "turn_done")


async def test_another_ones_line_is_not_given_away(redis_url: str, path: PathDouble) -> None:
    async with serving(redis_url, tokens_per_second=20) as agent:
        ear = Ear()
        async with agent.ws_connect("/ws?session=mine") as socket:
            await socket.send_json({"type": "say", "text": TEXT, "turn": "t"})
            await ear.until(socket, "text_delta")
            line = ear.names["line"]
            async with agent.ws_connect(f"/ws?session=yours&line={line}") as other:
                first = await other.receive_json()
                assert first["session"] == "yours" and first["line"] != line
            await ear.until(socket, "turn_done")


@pytest.mark.parametrize(
    "query", ["from=5-0", "session=demo&from=yesterday", "session=demo&from=", "session=a%20b"]
)
async def test_a_place_that_cannot_be_is_refused(redis_url: str, query: str) -> None:
    async with serving(redis_url) as agent:
        with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
            await agent.ws_connect(f"/ws?{query}")
    assert raised.value.status == 400


async def test_a_place_that_the_server_never_had_is_told(redis_url: str, path: PathDouble) -> None:
    async with (
        serving(redis_url) as agent,
        agent.ws_connect("/ws?session=demo&from=9999999999999-0") as socket,
    ):
        assert (await socket.receive_json())["type"] == "session"
        error = await socket.receive_json()
        assert (error["type"], error["code"]) == ("error", "state_lost")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
