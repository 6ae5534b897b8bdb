"""The agent's WebSocket, on a real server; the path between is a double."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from firstword import keys
from firstword import messages as m
from firstword.client import Firstword
from tests.doubles.path import PathDouble, heard
from tests.doubles.proxy import Proxy
from tests.integration.test_agent import serving
from tests.support import eventually

Socket = aiohttp.ClientWebSocketResponse
TORN = b'{"type": "say", "text": "\xff"}'
"""A text frame that is no UTF-8: a client cut a text in the middle of a character."""


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    async with PathDouble(redis_url) as double:
        yield double


@pytest.fixture
async def socket(redis_url: str, path: PathDouble) -> AsyncIterator[Socket]:
    async with (
        serving(redis_url, tokens_per_second=0, max_turns=2, max_text_chars=1000) as agent,
        agent.ws_connect("/ws?session=demo") as connected,
    ):
        first = await connected.receive_json()
        assert (first["type"], first["session"]) == ("session", "demo")
        yield connected


async def until(socket: Socket, kind: str) -> list[dict[str, Any] | bytes]:
    """Frames up to the first event of a type."""
    seen: list[dict[str, Any] | bytes] = []
    async for frame in socket:
        if frame.type is aiohttp.WSMsgType.BINARY:
            seen.append(frame.data)
        else:
            event = frame.json()
            seen.append(event)
            if event["type"] == kind:
                return seen
    raise AssertionError(f"hung up before {kind}: {seen}")


def events(frames: list[dict[str, Any] | bytes], *types: str) -> list[dict[str, Any]]:
    found = [frame for frame in frames if isinstance(frame, dict)]
    return [event for event in found if event["type"] in types]


def spoken_by_segment(frames: list[dict[str, Any] | bytes]) -> dict[int, str]:
    """What a caller makes of the frames by the documented layout."""
    segment, audio = -1, dict[int, bytes]()
    for frame in frames:
        if isinstance(frame, bytes):
            audio[segment] = audio.get(segment, b"") + frame
        elif frame["type"] == "segment_started":
            segment = frame["n"]
    return {n: heard(pcm) for n, pcm in audio.items()}


@pytest.mark.parametrize("mode", ["stream", "batch"])
async def test_a_turn_is_written_and_spoken(socket: Socket, mode: str) -> None:
    await socket.send_json({"type": "say", "text": "One. Two.", "mode": mode})
    frames = await until(socket, "turn_done")
    (start,) = events(frames, "agent_start")
    assert (start["session"], start["mode"]) == ("demo", mode)
    assert "".join(e["text"] for e in events(frames, "text_delta")) == "One. Two."
    segments = events(frames, "segment_started")
    assert spoken_by_segment(frames) == {s["n"]: s["text"] for s in segments}
    assert {e["turn"] for e in events(frames, "text_delta", "turn_started", "turn_done")} == {
        start["turn"]
    }


async def test_turns_follow_each_other(socket: Socket) -> None:
    for text in ("First.", "Second."):
        await socket.send_json({"type": "say", "text": text})
    frames = await until(socket, "turn_done") + await until(socket, "turn_done")
    assert list(spoken_by_segment(frames).values()) == ["First.", "Second."]


async def test_a_cancel_is_answered_and_the_session_goes_on(
    socket: Socket, path: PathDouble
) -> None:
    path.speaking.clear()
    await socket.send_json({"type": "say", "text": "Long " * 100, "tokens_per_second": 20})
    (delta,) = events(await until(socket, "text_delta"), "text_delta")
    played = {"turn": delta["turn"], "n": 0, "samples": 0}
    await socket.send_json({"type": "cancel", "turn": delta["turn"], "played": played})
    (receipt,) = events(await until(socket, "turn_cancelled"), "turn_cancelled")
    assert receipt["turn"] == delta["turn"]
    cancel = next(message for message in path.of("demo") if isinstance(message, m.Cancel))
    assert cancel.played == played
    path.speaking.set()
    await socket.send_json({"type": "say", "text": "Go on."})
    frames = await until(socket, "turn_done")
    assert list(spoken_by_segment(frames).values()) == ["Go on."]


@pytest.mark.parametrize("mode", ["stream", "batch"])
async def test_a_cancel_stops_the_writing(socket: Socket, path: PathDouble, mode: str) -> None:
    text = "word " * 100
    await socket.send_json({"type": "say", "text": text, "tokens_per_second": 50, "mode": mode})
    await until(socket, "text_delta")
    await socket.send_json({"type": "cancel"})
    await until(socket, "turn_cancelled")
    await socket.send_json({"type": "say", "text": "After."})
    frames = await until(socket, "turn_done")
    assert len(events(frames, "text_delta")) < 10
    assert events(frames, "error") == []
    texts = [message.text for message in path.of("demo") if isinstance(message, m.Text)]
    assert len("".join(texts)) < len(text)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", "bad_json"),
        ('{"type": "sing"}', "bad_type"),
        ('{"type": "say"}', "missing_text"),
        ('{"type": "say", "text": "' + "x" * 1001 + '"}', "too_large"),
        (b"{}", "bad_frame"),
        (TORN, "bad_json"),
    ],
)
async def test_a_bad_frame_is_told_and_the_session_goes_on(
    socket: Socket, frame: str | bytes, code: str
) -> None:
    if frame == TORN:
        await socket.send_frame(TORN, aiohttp.WSMsgType.TEXT)
    else:
        await (socket.send_bytes(frame) if isinstance(frame, bytes) else socket.send_str(frame))
    (error,) = await until(socket, "error")
    assert isinstance(error, dict)
    assert error["code"] == code
    await socket.send_json({"type": "say", "text": "Still here."})
    assert list(spoken_by_segment(await until(socket, "turn_done")).values()) == ["Still here."]


async def test_a_caller_may_name_its_turns(socket: Socket, path: PathDouble) -> None:
    path.speaking.clear()
    for _ in range(2):
        await socket.send_json({"type": "say", "text": "Named.", "turn": "mine"})
    (error,) = events(await until(socket, "error"), "error")
    assert error["code"] == "turn_taken"
    path.speaking.set()
    (done,) = events(await until(socket, "turn_done"), "turn_done")
    assert done["turn"] == "mine"


async def test_too_many_turns_are_refused(socket: Socket, path: PathDouble) -> None:
    path.speaking.clear()
    for _ in range(3):
        await socket.send_json({"type": "say", "text": "Wait."})
    (error,) = events(await until(socket, "error"), "error")
    assert error["code"] == "busy"


async def test_a068_what_is_said_right_behind_a_cancel_has_the_room_of_what_it_stopped(
    socket: Socket, path: PathDouble
) -> None:
    slow = {"text": "It takes a while until this is written.", "tokens_per_second": 1}
    for _ in range(5):
        for _ in range(2):
            await socket.send_json({"type": "say", "mode": "batch", **slow})
        await socket.send_json({"type": "cancel"})
    await socket.send_json({"type": "say", "text": "Now this."})
    frames = await until(socket, "turn_done")
    assert list(spoken_by_segment(frames).values()) == ["Now this."]
    assert events(frames, "error") == []


async def test_hanging_up_cancels_what_is_open(socket: Socket, path: PathDouble) -> None:
    path.speaking.clear()
    await socket.send_json({"type": "say", "text": "Never heard", "tokens_per_second": 20})
    await until(socket, "text_delta")
    await socket.close()
    await eventually(
        lambda: any(isinstance(message, m.Cancel) for message in path.of("demo")), "it is cancelled"
    )


async def test_a_call_without_a_name_has_a_session_that_ends_with_it(
    redis_url: str, path: PathDouble
) -> None:
    async with serving(redis_url) as agent:
        async with agent.ws_connect("/ws") as socket:
            name = (await socket.receive_json())["session"]
        await eventually(
            lambda: path.of(name) and isinstance(path.of(name)[-1], m.Close), "it is closed"
        )


async def test_a_session_that_is_closed_ends_the_call(socket: Socket, redis_url: str) -> None:
    async with Firstword(redis_url) as firstword:
        await firstword.session("demo").close()
    (closed,) = await until(socket, "closed")
    assert isinstance(closed, dict)
    assert (closed["type"], closed["reason"]) == ("closed", "closed")
    assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_a_server_that_forgot_everything_is_told(
    socket: Socket, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstword.listener.CHECK_S", 0)
    await socket.send_json({"type": "say", "text": "Before."})
    await until(socket, "turn_done")
    async with Firstword(redis_url) as firstword:
        await firstword.streams.commands.delete(keys.audio("demo"))
    (error,) = events(await until(socket, "error"), "error")
    assert error["code"] == "state_lost"


async def test_a_session_with_enough_to_say_takes_no_more(socket: Socket, redis_url: str) -> None:
    async with Firstword(redis_url) as firstword:
        commands = firstword.streams.commands
        await commands.hset(keys.text_state("demo"), "waiting", 101)
        await socket.send_json({"type": "say", "text": "Too much.", "turn": "t"})
        (error,) = events(await until(socket, "error"), "error")
        assert (error["code"], error["turn"], error["retryable"]) == ("busy", "t", True)
        await commands.hset(keys.text_state("demo"), "waiting", 0)
    await socket.send_json({"type": "say", "text": "This fits.", "turn": "u"})
    await until(socket, "turn_done")


async def test_a_server_that_is_away_is_told(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        Proxy(redis_url) as proxy,
        serving(proxy.url) as agent,
        agent.ws_connect("/ws") as socket,
    ):
        await until(socket, "session")
        monkeypatch.setattr("firstword.server_errors.PATIENCE_S", 0)
        await proxy.stop()
        for request in ({"type": "say", "text": "Hello."}, {"type": "cancel"}):
            await socket.send_json(request)
            (error,) = events(await until(socket, "error"), "error")
            assert (error["code"], error["retryable"]) == ("unreachable", True)


async def test_a_session_that_cannot_be_is_refused(redis_url: str) -> None:
    async with serving(redis_url) as agent:
        with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
            await agent.ws_connect("/ws?session=with%20a%20space")
    assert raised.value.status == 400
