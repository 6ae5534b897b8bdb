"""A publisher waits while much of its session waits to be spoken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from firstword import keys, room
from firstword.client import Firstword, Session
from firstword.errors import FirstwordError
from firstword.room import CHECK_SEGMENTS, estimate
from firstword.streams import Streams

pytestmark = pytest.mark.streams

MUCH = "Yes. " * CHECK_SEGMENTS


@pytest.fixture
async def firstword(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Firstword]:
    monkeypatch.setattr(room, "LOOK_S", 0.01)
    async with Firstword(redis_url) as connected:
        yield connected


@pytest.fixture
def streams(firstword: Firstword) -> Streams:
    return firstword.streams


async def queue(streams: Streams, *, queued: int = 0, waiting: int = 0, limit: int = 10) -> None:
    """So much waits before the gateway, and behind earlier turns."""
    await streams.commands.hset(keys.CONFIG, "max_queued", limit)
    await streams.commands.hset(keys.text_state("s"), "waiting", waiting)
    await streams.commands.delete(keys.segments("s"))
    for _ in range(queued):
        await streams.append(keys.segments("s"), {"m": b""})


async def refused(session: Session) -> FirstwordError:
    with pytest.raises(FirstwordError) as raised:
        await session.text("More.", "t", wait=False)
    return raised.value


@pytest.mark.parametrize(("queued", "waiting"), [(6, 0), (0, 6), (3, 3)])
async def test_who_does_not_want_to_wait_is_told(
    firstword: Firstword, streams: Streams, queued: int, waiting: int
) -> None:
    await queue(streams, queued=queued, waiting=waiting)
    session = firstword.session("s")
    await session.text(MUCH, "t", wait=False)
    error = await refused(session)
    assert (error.code, error.retryable) == ("busy", True)
    assert "6 segments" in error.message
    with pytest.raises(FirstwordError, match="of 10 that may"):
        await session.check_room()
    await queue(streams, queued=5)
    await session.check_room()
    await session.text("More.", "t", wait=False)
    assert await streams.commands.xlen(keys.DOOR) == 2


async def test_who_waits_goes_on_when_there_is_room(firstword: Firstword, streams: Streams) -> None:
    await queue(streams, queued=6)
    session = firstword.session("s")
    await session.say(MUCH, turn="t")
    waiting = asyncio.create_task(session.say("More.", turn="u"))
    others = firstword.session("s")
    assert not waiting.done()
    await others.text("Of another publisher.", "v")
    assert not waiting.done()
    await queue(streams, queued=5)
    await waiting
    assert await streams.commands.xlen(keys.DOOR) == 5


async def test_the_limit_is_the_default_where_none_is_known(
    firstword: Firstword, streams: Streams
) -> None:
    session = firstword.session("s")
    await queue(streams, queued=keys.DEFAULT_MAX_QUEUED // 2 + 1)
    await streams.commands.delete(keys.CONFIG)
    with pytest.raises(FirstwordError, match=f"of {keys.DEFAULT_MAX_QUEUED} that may"):
        await session.check_room()


async def test_what_the_segmenter_has_not_read_is_waited_for(
    firstword: Firstword, streams: Streams
) -> None:
    await queue(streams)
    await streams.commands.hset(keys.text_state("s"), "position", "1-0")
    session = firstword.session("s")
    read_up_to = await session.text(MUCH, "t")
    waiting = asyncio.create_task(session.text("More.", "t", wait=False))
    await asyncio.sleep(0)
    assert not waiting.done()
    await streams.commands.hset(keys.text_state("s"), "position", str(read_up_to))
    await waiting


async def test_a_segmenter_that_is_gone_is_not_waited_for(
    firstword: Firstword, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "CATCH_UP_S", 0)
    await queue(streams)
    await streams.commands.hset(keys.text_state("s"), "position", "1-0")
    session = firstword.session("s")
    for _ in range(3):
        await session.text(MUCH, "t")
    assert await streams.commands.xlen(keys.DOOR) == 3


async def test_tokens_cost_no_look(firstword: Firstword, streams: Streams) -> None:
    session = firstword.session("s")
    await session.text("Yes", "t")

    async def looks() -> int:
        info = await streams.commands.info("commandstats")
        return int(info.get("cmdstat_xlen", {}).get("calls", 0))

    before = await looks()
    for _ in range(100):
        await session.text(" yes", "t")  # two segments at most
    assert await looks() == before
    await session.text(MUCH, "t")
    await session.text(MUCH, "t")
    assert await looks() > before


def test_what_a_piece_may_become() -> None:
    assert estimate("Hello") < 0.1
    assert estimate("Hello. There! Why? ") == pytest.approx(3, abs=0.2)
    assert estimate("x" * 2_000) == 10


async def test_a_sentence_that_is_being_written_is_not_held_up(
    firstword: Firstword, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The segmenter says how far it has read once a second: that alone is no reason to wait."""
    await queue(streams, limit=200)
    await streams.commands.hset(keys.text_state("s"), "position", "0-1")
    monkeypatch.setattr(room, "LOOK_S", 3600)
    session = firstword.session("s")
    async with asyncio.timeout(30):  # a single wait would take minutes
        for _ in range(CHECK_SEGMENTS + 4):
            await session.text("Yes. ", "t")
