"""A server whose memory runs short: new sessions are refused with a reason, running ones go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from prometheus_client import REGISTRY

from firstword import keys
from firstword import messages as m
from firstword.client import Listener, collect
from firstword.embedded import EmbeddedServer
from firstword.ids import START
from firstword.streams import Streams
from services.segmenter import service
from tests.e2e.stack import Stack, tone_pcm
from tests.support import eventually

pytestmark = pytest.mark.streams


@pytest.fixture
async def stack(
    make_server: Callable[..., EmbeddedServer], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stack]:
    """The path on a server of its own, whose memory is looked at all the time."""
    monkeypatch.setattr(service, "WATCH_S", 0.05)
    server = await asyncio.to_thread(make_server, max_memory_bytes=20_000_000)
    async with Stack(server.url) as running:
        yield running


def noticed() -> float:
    """What the segmenter thinks of the server's memory."""
    return REGISTRY.get_sample_value("firstword_server_memory_share") or 0.0


async def next_error(events: Listener) -> m.ErrorEvent:
    event = (await anext(events)).message
    assert isinstance(event, m.ErrorEvent), event
    return event


async def test_new_sessions_are_refused_and_running_ones_go_on(stack: Stack) -> None:
    streams = stack.firstword.streams
    running, late = stack.firstword.session("running"), stack.firstword.session("late")
    heard = await running.listener()
    turn = await running.say("There is room.")
    assert (await collect(heard, turn)).pcm == tone_pcm("There is room.")

    ballast: list[str] = []
    while await streams.memory_share() < 0.83:
        ballast.append(f"ballast-{len(ballast)}")
        await streams.commands.set(ballast[-1], b"x" * 100_000)
    await eventually(lambda: noticed() > 0.8, "the segmenter has noticed")
    events = await late.listener("0-0")
    await late.open()
    event = await next_error(events)
    assert (event.code, event.retryable, event.turn) == ("server_full", True, None)
    turn = await late.say("This is not spoken. Nor is this.")
    event = await next_error(events)
    assert (event.code, event.turn) == ("server_full", turn)
    turn = await running.say("Those who were there go on.")
    assert (await collect(heard, turn)).pcm == tone_pcm("Those who were there go on.")
    assert await streams.last_id(keys.segments("late")) == START

    await streams.commands.delete(*ballast)
    await eventually(lambda: noticed() < 0.8, "the segmenter has noticed")
    turn = await late.say("Now there is room.")
    assert (await collect(events, turn)).pcm == tone_pcm("Now there is room.")


async def test_memory_without_a_limit_never_runs_short(redis_url: str) -> None:
    streams = Streams(redis_url)
    limit = (await streams.commands.config_get("maxmemory"))["maxmemory"]
    await streams.commands.config_set("maxmemory", "0")
    try:
        assert await streams.memory_share() == 0.0
    finally:
        await streams.commands.config_set("maxmemory", limit)
        await streams.close()
