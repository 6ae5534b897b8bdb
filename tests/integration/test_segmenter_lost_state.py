"""A segmenter whose server forgets tells the listeners, also where nobody else is left to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from firstword import codec, keys
from firstword import messages as m
from firstword.streams import BLOCK_MS, Entry, Streams
from services.segmenter.reader import CursorKeeper
from services.segmenter.service import SegmenterService
from services.segmenter.settings import SegmenterSettings
from tests.support import eventually

pytestmark = pytest.mark.streams

UNIT = str(keys.partition_of("s", SegmenterSettings().partitions))


@asynccontextmanager
async def segmenter(redis_url: str) -> AsyncIterator[SegmenterService]:
    service = SegmenterService(SegmenterSettings(redis_url=redis_url, http_port=0))
    stop = asyncio.Event()
    task = asyncio.create_task(service.run(stop))
    try:
        yield service
    finally:
        stop.set()
        await task


async def told(streams: Streams) -> list[str]:
    entries = await streams.range(keys.audio("s"), "0-0")
    events = [codec.unpack(entry.fields[b"m"], codec.AUDIO) for entry in entries]
    return [event.code for event in events if isinstance(event, m.ErrorEvent)]


async def stored(streams: Streams) -> bool:
    return bool(await streams.commands.hexists(keys.text_state("s"), "state"))


async def passed(streams: Streams) -> bool:
    return bool(await streams.commands.hexists(keys.ingress_state(UNIT), "cursor"))


async def test_open_turns_are_told_of(redis_url: str, streams: Streams) -> None:
    async with segmenter(redis_url):
        await streams.append(keys.DOOR, {"session": "s", "text": "Not a whole sentence"})
        await eventually(lambda: stored(streams), "the session is stored")
        await streams.commands.flushall()
        await eventually(lambda: told(streams), "its listeners are told")
    assert set(await told(streams)) == {"state_lost"}


async def test_a_loss_between_a_sessions_commit_and_the_cursors_is_told(
    redis_url: str, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cursor's commit finds no token then, as if the partition were another worker's."""
    store, forgotten = CursorKeeper.store, asyncio.Event()

    async def forget_then_store(
        self: CursorKeeper, cursor: str, opened: list[str], done: list[str]
    ) -> None:
        if opened and not forgotten.is_set():
            forgotten.set()
            await streams.commands.flushall()
        await store(self, cursor, opened, done)

    monkeypatch.setattr(CursorKeeper, "store", forget_then_store)
    async with segmenter(redis_url):
        await streams.append(keys.DOOR, {"session": "s", "text": "Not a whole sentence"})
        await eventually(lambda: told(streams), "its listeners are told")
    assert set(await told(streams)) == {"state_lost"}


async def test_a_segmenter_whose_server_came_back_empty_tells_of_open_turns(
    redis_url: str, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader only sees a connection break; the next one finds nothing to go on from."""
    wait, restarted = CursorKeeper.wait, asyncio.Event()

    async def break_off(
        self: CursorKeeper, stop: asyncio.Event, block_ms: int = BLOCK_MS
    ) -> list[Entry]:
        if restarted.is_set() and self.stream == keys.ingress_stream(UNIT):
            restarted.clear()
            await streams.commands.flushall()
            raise ConnectionError
        return await wait(self, stop, block_ms)

    monkeypatch.setattr(CursorKeeper, "wait", break_off)
    async with segmenter(redis_url):
        await streams.append(keys.DOOR, {"session": "s", "text": "Not a whole sentence"})
        await eventually(lambda: passed(streams), "the session and the cursor are stored")
        restarted.set()
        await eventually(lambda: told(streams), "its listeners are told")
    assert set(await told(streams)) == {"state_lost"}


async def test_a_partition_that_another_has_is_no_loss(redis_url: str, streams: Streams) -> None:
    async with segmenter(redis_url) as service:
        await streams.append(keys.DOOR, {"session": "s", "text": "Not a whole sentence"})
        await eventually(lambda: stored(streams), "the session is stored")
        for unit in list(service._running):
            service._abandon(unit)
        await eventually(lambda: not service._farewells, "it has said what it had to")
    assert await told(streams) == []


async def test_a_server_that_is_away_is_left_alone(
    redis_url: str, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with segmenter(redis_url) as service:
        await streams.append(keys.DOOR, {"session": "s", "text": "Not a whole sentence"})
        await eventually(lambda: stored(streams), "the session is stored")

        async def away(_session: str, _event: m.Audio) -> None:
            raise ConnectionError

        monkeypatch.setattr(service._streams, "tell", away)
        await streams.commands.delete(keys.text_state("s"))
        for unit in list(service._running):
            service._abandon(unit)
        await eventually(lambda: not service._farewells, "it has tried")
    assert await told(streams) == []
