"""A server at its limit: what was taken is spoken, what is new is refused, and all heals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from redis.exceptions import OutOfMemoryError
from structlog.testing import capture_logs

from firstword import keys
from firstword import messages as m
from firstword.client import collect
from firstword.embedded import EmbeddedServer
from firstword.errors import FirstwordError
from firstword.streams import Streams
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import QUICK, Stack, tone_pcm, until_done
from tests.support import eventually

pytestmark = pytest.mark.streams

ROOM = 50_000_000


async def fill(streams: Streams) -> None:
    """The server uses more than it may from now on."""
    used = (await streams.commands.info("memory"))["used_memory"]
    await streams.commands.config_set("maxmemory", used // 2)


async def is_full(streams: Streams) -> bool:
    try:
        await streams.append("ballast", {"m": b"x"})
    except OutOfMemoryError:
        return True
    return False


async def test_running_sessions_go_on_and_new_text_is_refused(
    make_server: Callable[..., EmbeddedServer],
) -> None:
    server = await asyncio.to_thread(make_server, max_memory_bytes=ROOM)
    tone = ToneSynthesizer(ToneOptions(ms_per_char=QUICK.ms_per_char, hang=True))
    sentences = [f"Sentence {number} is spoken on a full server." for number in range(40)]
    async with Stack(server.url, lambda: tone, turn_idle_s=2) as stack:
        streams = stack.firstword.streams
        session = stack.firstword.session("demo", pace="none")
        events = await session.listener()
        await session.open()
        await session.text(" ".join(sentences), "t")
        await eventually(tone.running.is_set, "the first sentence hangs")
        await fill(streams)
        assert await is_full(streams)
        with capture_logs() as logs:
            tone.release()
            # The last sentence leaves by a timer, so the segmenter works on the full server too.
            seen = await until_done(events)
            spoken = [event.text for event in seen if isinstance(event, m.SegmentStarted)]
            assert spoken == sentences
            assert not [event for event in seen if isinstance(event, m.ErrorEvent)]
            assert await is_full(streams)
            with pytest.raises(FirstwordError, match="full") as refused:
                await session.say("There is no room for this.")
            assert (refused.value.code, refused.value.retryable) == ("busy", True)
            await stack.start_gateway()
            await stack.start_segmenter()
        assert {"heartbeat_failed", "reader_failed", "session_failed"}.isdisjoint(
            str(line["event"]) for line in logs
        )
        await streams.commands.config_set("maxmemory", ROOM)
        turn = await session.say("And there is room again.")
        assert (await collect(events, turn)).pcm == tone_pcm("And there is room again.")


async def test_what_nobody_can_use_stops_no_reader_of_a_full_server(
    make_server: Callable[..., EmbeddedServer],
) -> None:
    server = await asyncio.to_thread(make_server, max_memory_bytes=ROOM)
    streams = Streams(server.url)
    await streams.agree_on_partitions(keys.DEFAULT_PARTITIONS)
    await streams.commands.hset(keys.CONFIG, "max_queued", keys.DEFAULT_MAX_QUEUED)
    await streams.append(keys.DOOR, {"session": "demo", "text": "Hi.", "seq": "one"})
    await streams.append(keys.DOOR, {"session": "demo", "text": "Hello there.", "end": "1"})
    await fill(streams)
    with capture_logs() as logs:
        async with Stack(server.url) as stack:
            events = await stack.firstword.session("demo").listener("0-0")
            error = (await anext(events)).message
            assert isinstance(error, m.ErrorEvent)
            assert error.code == "bad_field"
            await eventually(
                lambda: [line for line in logs if line["event"] == "server_full"],
                "the segmenter knows, and refuses new sessions",
            )
    assert "reader_failed" not in [line["event"] for line in logs]
    await streams.close()
