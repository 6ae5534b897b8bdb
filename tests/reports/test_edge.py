"""Where callers are: the agent's two doors, in front of the whole path."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import aiohttp
import pytest

from firstword import keys
from firstword import messages as m
from firstword.client import Event, Session
from services.agent.websocket import WebSocketOutlet
from tests.doubles.gateway_rig import HeldTone
from tests.doubles.path import PathDouble
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import Stack, tone_pcm, until_done
from tests.integration.test_agent import serving
from tests.support import eventually

SENTENCES = ["The first of several sentences.", "The second of them.", "And the last"]
TEXT = " ".join(SENTENCES)
MINUTE = ToneOptions(ms_per_char=1000)
"""A minute and more of audio in `TEXT`."""


async def events_of(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """The server-sent events as they come; comments are none."""
    async for line in response.content:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def slow(transport: asyncio.BaseTransport | None) -> asyncio.ReadTransport:
    """The caller reads nothing until `resume_reading`."""
    assert isinstance(transport, asyncio.ReadTransport)
    transport.pause_reading()
    return transport


# -- to the last sound ----------------------------------------------------------------------------


async def _open_without_pace(stack: Stack) -> None:
    """By the way in that the agent takes too: two have no order between them."""
    await eventually(stack.firstword.streams.partitions, "the segmenter has started")
    await stack.firstword.session("demo", pace="none").open()


async def _finished(stack: Stack, session: str) -> None:
    """All is said and stored: a publisher that closed a connection now would be too early."""

    async def done() -> bool:
        entries = await stack.firstword.streams.range(keys.audio(session), "0-0", 10_000)
        return any(b"turn_done" in entry.fields[b"m"] for entry in entries)

    await eventually(done, "the turn is over on the stream")


async def test_a007_a008_a_slow_reader_of_events_gets_a_minute_of_speech_whole(
    redis_url: str,
) -> None:
    async with (
        Stack(redis_url, lambda: ToneSynthesizer(MINUTE)) as stack,
        serving(redis_url, tokens_per_second=0) as agent,
    ):
        body = {"text": TEXT, "session": "demo", "mode": "batch"}
        await _open_without_pace(stack)
        async with agent.post("/invocations", json=body) as response:
            assert response.connection is not None
            transport = slow(response.connection.transport)
            await _finished(stack, "demo")
            transport.resume_reading()
            events = [event async for event in events_of(response)]
    chunks = [base64.b64decode(e["data"]) for e in events if e["type"] == "audio_chunk"]
    assert b"".join(chunks) == b"".join(tone_pcm(text, options=MINUTE) for text in SENTENCES)
    assert len(b"".join(chunks)) > 60 * 48_000
    assert [event["type"] for event in events[-2:]] == ["audio_stream_end", "agent_end"]
    assert events[-1]["reason"] == "complete"


async def test_a008_a_slow_caller_is_not_hung_up_on(redis_url: str) -> None:
    async with (
        Stack(redis_url, lambda: ToneSynthesizer(MINUTE)) as stack,
        serving(redis_url, tokens_per_second=0) as agent,
        agent.ws_connect("/ws?session=demo") as socket,
    ):
        await _open_without_pace(stack)
        await socket.send_json({"type": "say", "text": TEXT, "mode": "batch"})
        assert socket._response.connection is not None
        transport = slow(socket._response.connection.transport)
        await _finished(stack, "demo")
        transport.resume_reading()
        frames = await frames_until(socket, "turn_done")
        assert not socket.closed, "the caller decides when the conversation is over"
        audio = b"".join(frame for frame in frames if isinstance(frame, bytes))
        assert audio == b"".join(tone_pcm(text, options=MINUTE) for text in SENTENCES)


async def frames_until(socket: aiohttp.ClientWebSocketResponse, kind: str) -> list[Any]:
    """Audio as bytes and events as objects, up to the first event of this type."""
    seen: list[Any] = []
    while not seen or isinstance(seen[-1], bytes) or seen[-1]["type"] != kind:
        frame = await socket.receive(timeout=20)
        assert frame.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), frame
        seen.append(frame.data if isinstance(frame.data, bytes) else frame.json())
    return seen


# -- a caller who interrupts, or is gone ----------------------------------------------------------


@pytest.mark.parametrize("named", [True, False], ids=["that turn", "all turns"])
async def test_a036_what_waits_for_a_slow_caller_is_dropped_at_its_cancel(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Seconds of audio are out, of which the line has carried a tenth when the caller cancels."""
    line_is_free = asyncio.Event()
    hand_on = WebSocketOutlet.event

    async def slowly(self: WebSocketOutlet, event: Event) -> None:
        await hand_on(self, event)
        if isinstance(event.message, m.AudioChunk):
            await line_is_free.wait()

    monkeypatch.setattr(WebSocketOutlet, "event", slowly)
    tone = ToneOptions(ms_per_char=300, chars_per_piece=20)
    async with (
        Stack(redis_url, lambda: HeldTone(tone)) as stack,
        serving(redis_url, tokens_per_second=0) as agent,
        agent.ws_connect("/ws?session=demo") as socket,
    ):
        listener = await stack.firstword.session("demo").listener()
        await socket.send_json({"type": "say", "text": TEXT, "turn": "t", "mode": "batch"})
        waiting = 0
        async for event in listener:
            waiting += isinstance(event.message, m.AudioChunk)
            if waiting == 15:
                break
        await socket.send_json({"type": "cancel", **({"turn": "t"} if named else {})})
        assert isinstance((await until_done(listener))[-1], m.TurnCancelled)
        line_is_free.set()
        frames = await frames_until(socket, "turn_cancelled")
        assert sum(isinstance(frame, bytes) for frame in frames) == 1
        await socket.send_json({"type": "say", "text": "Go on.", "turn": "u", "mode": "batch"})
        frames = await frames_until(socket, "turn_done")
    audio = b"".join(frame for frame in frames if isinstance(frame, bytes))
    assert audio == tone_pcm("Go on.", options=tone)


async def test_a039_a040_a_caller_that_hangs_up_does_not_keep_the_next_one_waiting(
    redis_url: str,
) -> None:
    """Its synthesis would never end by itself, and there is one engine for both."""
    tone = HeldTone()
    async with Stack(redis_url, lambda: tone), serving(redis_url, tokens_per_second=0) as agent:
        for caller in range(3):
            body = {"text": TEXT, "session": f"caller{caller % 2}"}
            async with agent.post("/invocations", json=body) as response:
                async for event in events_of(response):
                    if event["type"] == "audio_chunk":
                        break
            await eventually(tone.stopped.is_set, "the engine is stopped")
            tone.stopped.clear()
            body = {"text": "Next one.", "session": f"caller{caller % 2}"}
            async with agent.post("/invocations", json=body) as response:
                events = [event async for event in events_of(response)]
            chunks = [base64.b64decode(e["data"]) for e in events if e["type"] == "audio_chunk"]
            assert b"".join(chunks) == tone_pcm("Next one.", options=tone.options)


@pytest.mark.parametrize("door", ["/invocations", "/ws", "/v1/audio/speech"])
async def test_a074_a_caller_who_goes_while_its_session_opens_leaves_none_behind(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    """As each page that is loaded anew at the wrong moment would."""
    opened = asyncio.Event()
    publish = Session.open

    async def opens(session: Session) -> None:
        await publish(session)
        opened.set()
        await asyncio.Event().wait()  # its answer is on the way

    monkeypatch.setattr(Session, "open", opens)
    async with PathDouble(redis_url) as path, serving(redis_url) as agent:
        asking = asyncio.create_task(_ask(agent, door))
        await eventually(opened.is_set, "the session is opened")
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

        def closed() -> bool:
            kinds = [type(message) for message in path.received]
            return kinds == [m.Open, m.Close]

        await eventually(closed, "it is closed again")


async def _ask(agent: aiohttp.ClientSession, door: str) -> None:
    body = {"input": TEXT} if "speech" in door else {"text": TEXT}
    caller = agent.ws_connect(door) if door == "/ws" else agent.post(door, json=body)
    async with caller:
        pass


# -- a caller who waits ---------------------------------------------------------------------------


async def test_a066_a_stream_of_events_is_never_silent_for_long(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.agent.sse.KEEPALIVE_S", 0.05)
    tone = ToneSynthesizer(ToneOptions(hang=True))
    async with Stack(redis_url, lambda: tone), serving(redis_url, tokens_per_second=0) as agent:
        async with agent.post("/invocations", json={"text": TEXT}) as response:
            comments = 0
            async for line in response.content:
                assert b"audio" not in line
                comments += line.startswith(b":")
                if comments == 3:
                    break
            tone.release()
            events = [event async for event in events_of(response)]
    chunks = [base64.b64decode(e["data"]) for e in events if e["type"] == "audio_chunk"]
    assert b"".join(chunks) == b"".join(tone_pcm(text, options=ToneOptions()) for text in SENTENCES)
    assert events[-1]["reason"] == "complete"


# -- the first sound ------------------------------------------------------------------------------


async def test_a160_the_first_frame_is_small_and_they_grow(redis_url: str) -> None:
    async with (
        Stack(redis_url, lambda: ToneSynthesizer(MINUTE)) as stack,
        serving(stack.redis_url, tokens_per_second=0) as agent,
        agent.ws_connect("/ws") as socket,
    ):
        await socket.send_json({"type": "say", "text": SENTENCES[0]})
        frames = await frames_until(socket, "segment_done")
    sizes = [len(frame) // 2 for frame in frames if isinstance(frame, bytes)]
    assert sizes[0] <= 0.04 * 24_000
    assert all(later <= 2 * sooner for sooner, later in pairwise(sizes)), "never a jump"
    assert max(sizes) > 4 * sizes[0]


async def test_a166_a_listener_that_comes_late_hears_the_turn_from_its_start(
    stack: Stack,
) -> None:
    async with serving(stack.redis_url, tokens_per_second=0) as agent:
        where = "/v1/sessions/demo"
        async with agent.get(f"{where}/events") as early:
            body = {"text": TEXT, "turn": "t", "seq": 0}
            assert (await agent.post(f"{where}/text", json=body)).status == 202
            heard = events_of(early)
            async for event in heard:
                if event["type"] == "audio_chunk":
                    break  # it sounds, and is not over
            async with agent.get(f"{where}/events") as late:
                assert (
                    await agent.post(f"{where}/end", json={"turn": "t", "seq": 1})
                ).status == 202
                events = []
                async for event in events_of(late):
                    events.append(event)
                    if event["type"] == "turn_done":
                        break
    assert events[0]["type"] == "turn_started"
    chunks = [base64.b64decode(event["data"]) for event in events if event["type"] == "audio_chunk"]
    assert b"".join(chunks) == b"".join(map(tone_pcm, SENTENCES))
