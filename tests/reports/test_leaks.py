"""Areas session_leak and drain: what is left behind when things end, well or badly."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import AsyncIterator

import aiohttp
import pytest

from firstword import keys
from firstword.client import collect
from firstword.streams import Streams
from services.inference.settings import InferenceSettings
from services.tts_gateway.websocket import WebSocketLink
from tests.doubles.gateway_rig import Container, HeldTone, SessionHand, gateway, spoken
from tests.doubles.inference_client import PATH, Running, running
from tests.doubles.proxy import Proxy
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import Stack, tone_pcm
from tests.reports.hearing import begun, over
from tests.reports.scripted import ScriptedContainer
from tests.support import eventually

TEXT = "A sentence that is spoken again and again."


@pytest.fixture
async def inference() -> AsyncIterator[Running]:
    async with running(ToneSynthesizer, InferenceSettings()) as service:
        yield service


def alive(kind: type) -> int:
    """How many objects of a kind there are."""
    gc.collect()
    return sum(isinstance(each, kind) for each in gc.get_objects())


async def no_more_tasks_than(tasks: int) -> None:
    """Those of a moment, a read that is being made again, come and go."""
    await eventually(lambda: len(asyncio.all_tasks()) <= tasks, "no task is left behind")


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


# -- turns and chunks -----------------------------------------------------------------------------


async def test_a067_a_hundred_turns_leave_what_one_leaves(stack: Stack) -> None:
    commands = stack.firstword.streams.commands
    async with stack.firstword.session("demo") as session:
        events = await session.listener()

        async def turns(count: int) -> dict[str, int]:
            """What the session holds after so many."""
            for _ in range(count):
                assert (await collect(events, await session.say(TEXT))).pcm == tone_pcm(TEXT)
            return {
                "fields": await commands.hlen(keys.speech_state("demo")),
                "waiting": await commands.xlen(keys.segments("demo")),
                "connections": len(stack.inference._connections),
            }

        few, tasks = await turns(3), len(asyncio.all_tasks())
        assert few["connections"] == 1
        assert few["waiting"] == 0
        assert await turns(100) == few
        await no_more_tasks_than(tasks)


async def test_a076_chunks_leave_no_task_and_no_callback_behind(redis_url: str) -> None:
    """A minute and more of audio in hundreds of chunks, each of which is waited for."""
    tone = ToneSynthesizer(ToneOptions(ms_per_char=200))
    sentence = "On and on and on it goes, and it does not end. " * 8
    async with (
        Stack(redis_url, lambda: tone) as stack,
        stack.firstword.session("demo", pace="none") as session,
    ):
        events = await session.listener()
        await collect(events, await session.say("Short."))
        tasks, futures = len(asyncio.all_tasks()), alive(asyncio.Future)
        audio = await collect(events, await session.say(sentence))
        assert audio.samples > 60 * 24_000
        await no_more_tasks_than(tasks)
        await eventually(lambda: alive(asyncio.Future) < futures + 20, "futures are let go")


# -- connections ----------------------------------------------------------------------------------


async def test_a075_each_idle_reconnect_lets_go_of_the_connection_before(
    redis_url: str, hand: SessionHand
) -> None:
    async with ScriptedContainer() as container, gateway(redis_url, container.url):

        async def reconnects(first: int, count: int) -> None:
            for number in range(first, first + count):
                await hand.say(f"t{number}", TEXT)
                await over(hand, f"t{number}")
                await container.peers[-1].finish()
                await eventually(lambda: not container.open, "the idle connection is gone")

        await reconnects(0, 2)
        tasks = len(asyncio.all_tasks())
        await reconnects(2, 40)
        assert container.handshakes == 42
        await no_more_tasks_than(tasks)
        await eventually(lambda: alive(WebSocketLink) <= 1, "the connections are let go")


@pytest.mark.parametrize("how", ["its wire is dead", "it is frozen"])
async def test_a071_a072_a_client_that_is_gone_without_a_word_is_let_go(
    inference: Running, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("services.inference.service.HEARTBEAT_S", 0.5)
    connections = inference.service._connections
    async with Proxy(f"http://{inference.address}") as proxy, aiohttp.ClientSession() as http:
        url = proxy.url.replace("redis://", "http://") + PATH
        sockets = [await http.ws_connect(url) for _ in range(20)]
        assert connections
        if how == "it is frozen":
            for socket in sockets:
                socket._response.connection.transport.pause_reading()  # type: ignore[union-attr]
        else:
            proxy.go_dark()
        await eventually(lambda: not connections, "all are noticed")
        monkeypatch.undo()
        async with inference.connect() as client:
            assert (await client.say("1", "Next, please.")).pcm == _tone("Next, please.")


async def test_a072_a_hundred_clients_that_vanish_leave_nothing(inference: Running) -> None:
    tasks = len(asyncio.all_tasks())
    for _ in range(100):
        async with inference.http.ws_connect(f"http://{inference.address}{PATH}") as socket:
            await socket.send_str('{"text": "' + TEXT + '"}')
            socket._response.connection.transport.abort()  # type: ignore[union-attr]
    await eventually(lambda: not inference.service._connections, "all are let go")
    await eventually(lambda: not inference.speaker.busy, "no synthesis runs for nobody")
    await no_more_tasks_than(tasks)


async def test_a074_handshakes_that_are_never_finished_keep_nobody_out(inference: Running) -> None:
    host, port = inference.address.split(":")
    half_made = []
    for _ in range(50):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {PATH} HTTP/1.1\r\nHost: {host}\r\nUpgrade: web".encode())
        half_made.append(writer)
    assert not inference.service._connections, "half a handshake takes no place"
    async with inference.connect() as client:
        assert (await client.say("1", "Come in.")).pcm == _tone("Come in.")
    for writer in half_made:
        writer.transport.abort()


async def test_a077_whatever_breaks_no_task_and_no_socket_is_left(
    redis_url: str, streams: Streams
) -> None:
    """The wire breaks later each time, the session ends badly, services stop in the middle."""
    await streams.commands.ping()

    async def round_(number: int) -> None:
        tone = HeldTone()
        hand = SessionHand(streams, f"s{number}")
        async with Container(tone) as container, gateway(redis_url, container.url):
            await hand.say("t", TEXT, TEXT)
            if number % 3:
                await begun(hand, 1)
            if number % 2:
                container.proxy.cut()
                await begun(hand, 1)
            if number % 5 == 0:
                await hand.cancel("t")
            tone.go.set()

    await round_(0)
    tasks, open_files = len(asyncio.all_tasks()), descriptors()
    for number in range(1, 16):
        await round_(number)
    await no_more_tasks_than(tasks)
    assert await eventually(lambda: descriptors() <= open_files + 1, "sockets are closed")


@pytest.mark.parametrize("step", range(1, 30))
async def test_a077_a_task_cancelled_while_it_connects_leaves_no_socket(
    redis_url: str, step: int
) -> None:
    """At whichever of its awaits the cancel comes."""
    open_files = descriptors()
    streams = Streams(redis_url)
    task = asyncio.create_task(streams.append("fw:any", {"a": "b"}))
    for _ in range(step):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await streams.close()
    await eventually(lambda: descriptors() <= open_files, "every socket is closed")


def _tone(text: str) -> bytes:
    return tone_pcm(text, options=ToneOptions())


# -- drain ----------------------------------------------------------------------------------------


async def test_a144_a_session_with_much_left_to_say_is_handed_over_at_once(
    redis_url: str, hand: SessionHand
) -> None:
    """It is ahead of its listener and waits for playback: a drain does not wait along."""
    long_text = "Round and round it goes. " * 200
    async with Container() as container, gateway(redis_url, container.url, max_ahead_s=1) as leave:
        await hand.put(hand.open(pace="realtime"))
        await hand.say("t", long_text, TEXT)

        async def spoken_first() -> bool:
            return 1 in (await hand.hear()).ends

        await eventually(spoken_first, "50 seconds of audio are out, and the rest is held back")
        await leave()
        assert 2 not in (await hand.hear()).segments, "not by finishing what was left"
        state = await hand.state()
        assert "token" not in state
        async with gateway(redis_url, container.url, max_ahead_s=60):
            ear = await over(hand, "t")
    assert ear.segments == {1: spoken(long_text), 2: spoken(TEXT)}
