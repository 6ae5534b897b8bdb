"""What waits, and for how long, as services tell it."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import REGISTRY

from firstword import keys
from firstword.streams import Streams
from services.segmenter import service as segmenter
from services.segmenter.reader import DoorReader
from services.segmenter.settings import SegmenterSettings
from services.tts_gateway import service as gateway_service
from tests.doubles.gateway_rig import Container, HeldTone, SessionHand, gateway
from tests.support import eventually


def value(name: str, **labels: str) -> float:
    found = REGISTRY.get_sample_value(name, labels)
    assert found is not None
    return found


async def test_a_gateway_tells_what_waits_and_that_it_is_stuck(
    monkeypatch: pytest.MonkeyPatch, redis_url: str, streams: Streams
) -> None:
    monkeypatch.setattr(gateway_service, "MEASURE_S", 0.02)
    monkeypatch.setattr(gateway_service, "STUCK_S", 0.2)
    tone = HeldTone()
    async with Container(tone) as container, gateway(redis_url, container.url):
        hand = SessionHand(streams)
        await hand.say("t", "This is a sentence of which a part is held back.", "x" * 150)

        def waits() -> bool:
            assert value("firstword_open_sessions", stage="gateway") == 1
            assert value("firstword_unspoken_seconds") == pytest.approx((48 + 150) / 15)
            assert value("firstword_lag_seconds", stage="gateway") > 0.2
            assert value("firstword_stuck_sessions") == 1
            return True

        await eventually(waits, "what waits is told")
        tone.go.set()

        def is_done() -> bool:
            assert value("firstword_open_sessions", stage="gateway") == 0
            assert value("firstword_unspoken_seconds") == 0
            assert value("firstword_lag_seconds", stage="gateway") == 0
            assert value("firstword_stuck_sessions") == 0
            return True

        await eventually(is_done, "nothing waits")


async def test_connections_are_counted_as_they_open_and_fail(
    redis_url: str, streams: Streams
) -> None:
    opened = value("firstword_upstream_opened_total")
    lost = value("firstword_upstream_failures_total", code="upstream_lost")
    again = value("firstword_upstream_reconnects_total")
    connections = value("firstword_upstream_connections")
    async with Container() as container, gateway(redis_url, container.url):
        hand = SessionHand(streams)
        await hand.say("t", "One.", "Two.")
        await eventually(lambda: value("firstword_upstream_opened_total") == opened + 1, "once")
        assert value("firstword_upstream_connections") == connections + 1
        container.proxy.cut()
        await eventually(
            lambda: value("firstword_upstream_failures_total", code="upstream_lost") > lost,
            "the loss is counted",
        )
        await eventually(
            lambda: value("firstword_upstream_reconnects_total") > again, "it is opened again"
        )
    assert value("firstword_upstream_connections") == connections


async def test_a_segmenter_tells_how_old_what_it_has_not_read_is(
    monkeypatch: pytest.MonkeyPatch, redis_url: str, streams: Streams
) -> None:
    monkeypatch.setattr(segmenter, "WATCH_S", 0.02)

    async def reads_nothing(_self: object, stop: asyncio.Event) -> None:
        await stop.wait()

    monkeypatch.setattr(DoorReader, "run", reads_nothing)
    service = segmenter.SegmenterService(SegmenterSettings(redis_url=redis_url, http_port=0))
    stop = asyncio.Event()
    running = asyncio.create_task(service.run(stop))
    await streams.append(keys.DOOR, {"session": "s", "text": "Hello."})
    await eventually(
        lambda: value("firstword_lag_seconds", stage="segmenter") > 0.3, "the lag grows"
    )
    stop.set()
    await running


@pytest.mark.streams
async def test_nothing_waits_where_nothing_is(streams: Streams) -> None:
    assert await streams.waiting_s("no such stream", "0-0") == 0
    entry = await streams.append("a stream", {"a": "b"})
    assert await streams.waiting_s("a stream", entry) == 0
    await asyncio.sleep(0.002)
    assert await streams.waiting_s("a stream", "0-0") > 0
    assert await streams.evicted_keys() == 0
