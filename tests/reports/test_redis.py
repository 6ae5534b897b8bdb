"""Area redis: what a server trims, forgets, evicts or repeats."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from firstword import keys
from firstword import messages as m
from firstword.client import Firstword, collect
from firstword.embedded import EmbeddedServer
from firstword.streams import BLOCK_MS, READ_TIMEOUT_S, Streams
from tests.doubles.ear import Ear
from tests.doubles.gateway_rig import HeldTone
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import QUICK, Stack, tone_pcm, until_done
from tests.support import eventually

pytestmark = pytest.mark.streams

PARTITION = keys.ingress(keys.partition_of("demo", keys.DEFAULT_PARTITIONS))
Logs = Sequence[Mapping[str, Any]]
HOT_LOOP = 30
"""Lines that one part of a service may log while a server is away for seconds; a loop without a
pause writes thousands."""


async def speaks(firstword: Firstword, text: str, session: str = "demo") -> None:
    """A new turn is published once and heard whole."""
    async with firstword.session(session) as opened:
        events = await opened.listener()
        turn = await opened.say(text)
        assert (await collect(events, turn)).pcm == tone_pcm(text)


# -- work that is waiting -------------------------------------------------------------------------


async def test_a097_a105_a116_no_stream_has_a_list_of_pending_entries(redis_url: str) -> None:
    """So nothing can stay in one: a stage's position is all that is kept, with the session."""
    async with Stack(redis_url, HeldTone) as stack, stack.firstword.session("demo") as session:
        await session.say("A long sentence of which the end is held back. And one behind it.")
        commands = stack.firstword.streams.commands

        async def sounding() -> bool:
            return bool(await commands.xlen(keys.audio("demo")) > 2)

        await eventually(sounding, "the sentence is being spoken")
        names = [key async for key in commands.scan_iter(_type="stream")]
        assert {keys.segments("demo").encode(), keys.audio("demo").encode()} <= set(names)
        for name in names:
            assert await commands.xinfo_groups(name) == []
        await session.cancel()


async def test_a098_a_burst_waits_for_a_stalled_synthesis_and_is_spoken_whole(
    redis_url: str,
) -> None:
    sentences = [f"Sentence {number} of the burst." for number in range(150)]
    tone = ToneSynthesizer(ToneOptions(ms_per_char=QUICK.ms_per_char, hang=True))
    async with (
        Stack(redis_url, lambda: tone) as stack,
        stack.firstword.session("demo", pace="none") as session,
    ):
        events = await session.listener()
        await session.say(" ".join(sentences))
        await eventually(tone.running.is_set, "the first sentence hangs")
        waiting = await stack.firstword.streams.range(keys.segments("demo"), "0-0", count=1000)
        assert len(waiting) >= len(sentences), "nothing is trimmed before it is spoken"
        tone.release()
        ear = Ear(await until_done(events))
        assert list(ear.segments.values()) == [tone_pcm(sentence) for sentence in sentences]

        async def trimmed() -> bool:
            return not await stack.firstword.streams.commands.xlen(keys.segments("demo"))

        await eventually(trimmed, "and then it goes")


async def test_a098_what_was_published_before_anyone_ran_is_spoken(redis_url: str) -> None:
    tokens = [f"token{number} " for number in range(2000)]
    text = "".join(tokens)
    async with Firstword(redis_url) as publisher:
        await publisher.streams.agree_on_partitions(keys.DEFAULT_PARTITIONS)
        session = publisher.session("demo", pace="none")
        await session.open()
        for token in tokens:
            await session.text(token, "t")
        await session.end("t")
        events = await session.listener("0-0")
        async with Stack(redis_url):
            seen = await until_done(events)
    started = [event.text for event in seen if isinstance(event, m.SegmentStarted)]
    assert " ".join(started).split() == text.split()
    Ear(seen)


# -- a server that forgets ------------------------------------------------------------------------


async def test_a101_a102_a_server_that_was_emptied_is_used_again_without_a_restart(
    stack: Stack,
) -> None:
    await speaks(stack.firstword, "Before it was emptied.")
    with capture_logs() as logs:
        await stack.firstword.streams.commands.flushall()
        await speaks(stack.firstword, "And after.", "another")
        await speaks(stack.firstword, "And after that.")
    assert _loudest(logs) < HOT_LOOP


async def test_a102_a_server_that_is_away_fills_no_log(
    make_server: Callable[..., EmbeddedServer],
) -> None:
    server = await asyncio.to_thread(make_server)
    async with Stack(server.url) as stack:
        await speaks(stack.firstword, "All is well.")
        with capture_logs() as logs:
            await asyncio.to_thread(server.kill)
            await eventually(lambda: _heartbeats(logs) >= 6, "a few have failed", timeout=30)
            await asyncio.to_thread(server.restart)
            await speaks(stack.firstword, "All is well again.", "another")
    assert _loudest(logs) < HOT_LOOP


EVICTED = {
    "audio": [keys.audio("demo")],
    "segments": [keys.segments("demo")],
    "the gateway's state": [keys.speech_state("demo")],
    "the segmenter's state": [keys.text_state("demo")],
    "the ingress": [PARTITION],
    "all of the session": [
        *(keys.audio("demo"), keys.segments("demo")),
        *(keys.speech_state("demo"), keys.text_state("demo")),
    ],
}


@pytest.mark.parametrize("what", EVICTED)
async def test_a103_what_was_evicted_while_idle_breaks_no_later_turn(
    stack: Stack, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.tts_gateway.runner.SWEEP_S", 0.2)
    await speaks(stack.firstword, "Said before the session was idle.")
    with capture_logs() as logs:
        assert await stack.firstword.streams.commands.delete(*EVICTED[what])
        await speaks(stack.firstword, "Said after it was evicted.")
    assert _loudest(logs) < HOT_LOOP


async def test_a104_what_is_published_to_a_deleted_stream_is_not_skipped(stack: Stack) -> None:
    async with stack.firstword.session("demo") as session:
        events = await session.listener()
        await session.say("One.")
        await until_done(events)
        await stack.firstword.streams.commands.delete(PARTITION, keys.DOOR)
        for text in ("Two.", "Three.", "Four."):
            await session.say(text)
        seen = [event for _ in range(3) for event in await until_done(events)]
    assert list(Ear(seen).segments.values()) == [tone_pcm(t) for t in ("Two.", "Three.", "Four.")]


def _heartbeats(logs: Logs) -> int:
    """Of both services, that failed."""
    return _counted(logs)["heartbeat_failed", ""]


def _counted(logs: Logs) -> Counter[tuple[str, str]]:
    """Lines by what they tell and of which part."""
    return Counter(
        (str(line["event"]), str(line.get("unit", line.get("session", "")))) for line in logs
    )


def _loudest(logs: Logs) -> int:
    return max(_counted(logs).values(), default=0)


# -- the client -----------------------------------------------------------------------------------


async def test_a112_every_connection_has_timeouts_of_its_own_and_repeats_nothing(
    streams: Streams,
) -> None:
    await streams.commands.ping()
    await streams.append("fw:any", {"a": "b"})
    assert await streams.wait({"fw:any": "$"}) == {}, "an idle read ends, and is no error"
    pools = [
        client._client.connection_pool
        for client in (streams._commands, streams._once, streams._blocking)
    ]
    for pool in pools:
        options = pool.connection_kwargs
        assert options["socket_timeout"] and options["socket_connect_timeout"]
        assert options["retry"]._retries == 0
        assert options["protocol"] == 2
    assert pools[2].connection_kwargs["socket_timeout"] == READ_TIMEOUT_S > BLOCK_MS / 1000
