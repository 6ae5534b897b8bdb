"""An ingress stream that is deleted and begun again with lower ids, as under a clock set back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from firstword import keys
from firstword import messages as m
from firstword.client import Listener, collect
from firstword.errors import StateLost
from firstword.ids import START
from firstword.streams import Streams
from services.segmenter import reader
from tests.e2e.stack import Stack, tone_pcm, until_done

pytestmark = pytest.mark.streams

PARTITION = keys.ingress(keys.partition_of("demo", keys.DEFAULT_PARTITIONS))


async def test_what_was_not_read_is_not_trimmed(redis_url: str) -> None:
    streams = Streams(redis_url)
    keeper = reader.CursorKeeper(streams, "3", "w1")
    await keeper.acquire()
    await streams.commands.xadd(keeper.stream, {"a": "b"}, id="7-1")
    await keeper.store("7-1", ["demo"], [])
    assert await streams.range(keeper.stream, START) == [], "it was read"
    await keeper.store("7-2", [], [])

    await streams.commands.delete(keeper.stream)
    for entry_id in ("5-1", "9-1"):
        await streams.commands.xadd(keeper.stream, {"a": "b"}, id=entry_id)
    with pytest.raises(StateLost):
        await keeper.store("9-1", [], [])
    assert len(await streams.range(keeper.stream, START)) == 2
    assert await keeper.acquire() == ["demo"]
    assert keeper.read == START
    await keeper.store("5-1", [], [])
    assert [entry.id for entry in await streams.range(keeper.stream, START)] == ["9-1"]
    await streams.close()


@pytest.fixture
async def stack(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stack]:
    monkeypatch.setattr(reader, "CHECK_S", 0.1)
    async with Stack(redis_url) as running:
        yield running


async def begin_again(stack: Stack, stream: str, entry_id: str, **fields: str) -> None:
    """Replace a stream by one whose only entry has this id."""
    await stack.firstword.streams.commands.delete(stream)
    await add(stack, stream, entry_id, **fields)


async def add(stack: Stack, stream: str, entry_id: str, **fields: str) -> None:
    await stack.firstword.streams.commands.xadd(stream, {"session": "demo", **fields}, id=entry_id)


async def said(events: Listener) -> list[str]:
    """The segments up to the end of a turn."""
    spoken = await until_done(events)
    return [event.text for event in spoken if isinstance(event, m.SegmentStarted)]


async def test_a_partition_that_begins_again_is_read_on(stack: Stack) -> None:
    session = stack.firstword.session("demo")
    events = await session.listener()
    assert (await collect(events, await session.say("Before."))).pcm == tone_pcm("Before.")
    await begin_again(stack, PARTITION, "5-1", text="After it.", end="1")
    assert await said(events) == ["After it."]
    await add(stack, PARTITION, "6-1", text="And then.", end="1")
    assert await said(events) == ["And then."]


async def test_a_turn_that_was_open_is_told(stack: Stack) -> None:
    session = stack.firstword.session("demo")
    events = await session.listener()
    await session.text("It was said. And this is", "t")
    await anext(events)
    await begin_again(stack, PARTITION, "5-1", turn="t", text=" the end.", end="1")
    seen = await until_done(events)
    assert [event.code for event in seen if isinstance(event, m.ErrorEvent)] == ["state_lost"]
    assert isinstance(seen[-1], m.TurnDone)


async def test_a_door_that_begins_again_is_read_on(stack: Stack) -> None:
    events = await stack.firstword.session("demo").listener()
    line = {"session": "demo", "text": "Before.", "end": "1"}
    await stack.firstword.streams.append(keys.DOOR, line)
    assert await said(events) == ["Before."]
    await begin_again(stack, keys.DOOR, "5-1", text="After it.", end="1")
    assert await said(events) == ["After it."]
