"""What a deployment runs with is recorded for as long as a segmenter runs, whatever is lost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from firstword import keys
from firstword.cli.doctor import look_at_redis
from firstword.embedded import EmbeddedServer
from firstword.errors import FirstwordError
from firstword.ownership import Ownership
from firstword.server_check import Finding
from firstword.streams import Streams
from services.segmenter import service
from services.segmenter.service import SegmenterService
from services.segmenter.settings import SegmenterSettings
from tests.support import eventually

pytestmark = pytest.mark.streams


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "WATCH_S", 0.05)
    monkeypatch.delenv("FIRSTWORD_PARTITIONS", raising=False)


@asynccontextmanager
async def segmenter(redis_url: str, **settings: Any) -> AsyncIterator[SegmenterService]:
    """One that has joined."""
    made = SegmenterService(SegmenterSettings(redis_url=redis_url, http_port=0, **settings))
    stop = asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    try:
        await eventually(
            lambda: running.done() or made._ownership.problem() is None, "it takes part, or ends"
        )
        if running.done():
            running.result()  # why it did not
        yield made
    finally:
        stop.set()
        await running


async def recorded(streams: Streams) -> dict[str, bytes]:
    return await streams.state(keys.CONFIG)


async def reasons(made: SegmenterService) -> dict[str, str]:
    async with aiohttp.ClientSession() as http:
        reply = await http.get(f"http://{made.address}/readyz")
        return dict((await reply.json())["reasons"])


async def test_a_server_that_lost_its_data_is_told_again(redis_url: str, streams: Streams) -> None:
    async with segmenter(redis_url, partitions=8, max_queued=50) as made:
        await streams.commands.flushall()

        async def told() -> bool:
            return await recorded(streams) == {"partitions": b"8", "max_queued": b"50"}

        await eventually(told, "recorded again")
        with pytest.raises(FirstwordError, match="has 8 ingress partitions") as refused:
            async with segmenter(redis_url, partitions=4):
                pass
        assert refused.value.code == "partitions_differ"
        assert "partitions" not in await reasons(made)


async def test_a_loss_that_is_noticed_is_mended_at_once(
    redis_url: str, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "WATCH_S", 3600.0)
    async with segmenter(redis_url, partitions=8) as made:
        await eventually(lambda: len(made._ownership.held) == 9, "all is its own")
        await streams.commands.flushall()

        async def told() -> bool:
            return await streams.partitions() == 8

        await eventually(told, "recorded again, long before it looks by itself")


async def test_whoever_runs_beside_another_number_is_red_until_one_is_left(
    redis_url: str, streams: Streams
) -> None:
    with capture_logs() as logs:
        async with segmenter(redis_url, partitions=8) as made:
            await streams.commands.hset(keys.CONFIG, "partitions", 4)

            async def red() -> bool:
                told = (await reasons(made)).get("partitions", "")
                return all(each in told for each in ("with 4 ", "has 8", "FIRSTWORD_PARTITIONS=4"))

            await eventually(red, "it says so, and what to do")
            assert await recorded(streams) == {"partitions": b"4", "max_queued": b"200"}
            await streams.commands.hset(keys.CONFIG, "partitions", 8)  # as it told

            async def green() -> bool:
                return not await reasons(made)

            await eventually(green, "all is well again")
    told = [line for line in logs if str(line["event"]).startswith("partitions_")]
    assert [line["event"] for line in told] == ["partitions_differ", "partitions_agree"]
    assert (told[0]["recorded"], told[0]["ours"]) == (4, 8)


@pytest.mark.parametrize("recorded_as", ["abc", "0", "-3", "1.5", "", "99999"])
async def test_what_is_no_number_of_partitions_is_told_by_whoever_meets_it(
    redis_url: str, streams: Streams, recorded_as: str
) -> None:
    await streams.commands.hset(keys.CONFIG, "partitions", recorded_as)
    told = (
        rf"{keys.CONFIG} has '{recorded_as}' .* `firstword redis HSET {keys.CONFIG} partitions N`"
    )
    for ask in (streams.partitions(), streams.agree_on_partitions(8)):
        with pytest.raises(FirstwordError, match=told) as refused:
            await ask
        assert refused.value.code == "partitions_differ"
    found = [each async for each in look_at_redis(redis_url, None)][-1]
    assert (found.name, found.level) == ("partitions", "fatal")
    assert re.match(told, found.message)


async def test_a_record_that_is_spoilt_turns_who_runs_red_and_stops_nothing(
    redis_url: str, streams: Streams
) -> None:
    async with segmenter(redis_url, partitions=8) as made:
        await streams.commands.hset(keys.CONFIG, "partitions", "abc")

        async def red() -> bool:
            return "has 'abc'" in (await reasons(made)).get("partitions", "")

        await eventually(red, "it says so")
        await streams.commands.hset(keys.CONFIG, "partitions", 8)  # as it told

        async def green() -> bool:
            return not await reasons(made)

        await eventually(green, "it went on")


async def test_what_a_newer_segmenter_records_of_its_limit_stays(
    redis_url: str, streams: Streams
) -> None:
    async with segmenter(redis_url, max_queued=50), segmenter(redis_url, max_queued=60):
        await streams.commands.hdel(keys.CONFIG, "partitions")

        async def told() -> bool:
            return "partitions" in await recorded(streams)

        await eventually(told, "one of them has looked")
        assert (await recorded(streams))["max_queued"] == b"60"


async def test_a_server_that_is_full_takes_the_record(
    make_server: Callable[..., EmbeddedServer],
) -> None:
    server = await asyncio.to_thread(make_server, max_memory_bytes=50_000_000)
    streams = Streams(server.url)
    used = (await streams.commands.info("memory"))["used_memory"]
    await streams.commands.config_set("maxmemory", used // 2)
    assert await streams.record(8, max_queued=50) == 8
    assert await streams.record(4, max_queued=60) == 8
    assert await recorded(streams) == {"partitions": b"8", "max_queued": b"50"}
    await streams.limit_queues(60)
    assert await recorded(streams) == {"partitions": b"8", "max_queued": b"60"}
    await streams.close()


async def test_the_doctor_knows_whether_a_segmenter_runs(redis_url: str, streams: Streams) -> None:
    async def line() -> Finding:
        found = {each.name: each async for each in look_at_redis(redis_url, None)}
        return found["partitions"]

    found = await line()
    assert (found.level, found.message[:12]) == ("ok", "not recorded")
    assert "no segmenter runs" in found.message
    units: list[str] = []
    # One that has not come to record it, or is too old to do so again.
    silent = Ownership(streams, "segmenter", acquired=units.append, lost=units.append)
    beating = asyncio.create_task(silent.run())
    await eventually(lambda: silent.problem() is None, "it takes part")
    found = await line()
    assert (found.level, found.remedy[:10]) == ("warning", "look again")
    assert "though segmenters run (1)" in found.message
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)

    async def over() -> bool:
        return await streams.workers("segmenter") == 0

    await eventually(over, "its lease is over")
