"""More sessions than all gateways may take: the others wait, seen and told, and are spoken."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import REGISTRY

from firstword import messages as m
from firstword.client import collect
from services.segmenter import store
from services.tts_gateway.service import GatewayService
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.websocket import WebSocketUpstream
from tests.e2e.stack import Stack, tone_pcm
from tests.support import eventually

pytestmark = pytest.mark.streams


class OneSession(Stack):
    """Its gateways take one session each."""

    async def start_gateway(self) -> None:
        settings = GatewaySettings(redis_url=self.redis_url, http_port=0, max_sessions=1)
        service = GatewayService(settings, WebSocketUpstream(self.upstream_url))
        self._services.append(asyncio.create_task(service.run(self._stop)))


def waiting() -> float:
    labels = {"stage": "gateway"}
    return REGISTRY.get_sample_value("firstword_unowned_units", labels) or 0.0


async def test_a_session_that_no_gateway_takes_is_told_once_and_spoken_in_the_end(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "NO_CAPACITY_S", 0.5)
    monkeypatch.setattr("services.segmenter.reader.KEEP_OPEN_S", 0.1)
    async with OneSession(redis_url) as stack:
        first, second = stack.firstword.session("first"), stack.firstword.session("second")
        heard = await first.listener()
        turn = await first.say("I am here.")
        assert (await collect(heard, turn)).pcm == tone_pcm("I am here.")
        await eventually(lambda: waiting() == 0, "nobody waits")
        events = await second.listener("0-0")
        turn = await second.say("I come too late.")
        told = (await anext(events)).message
        assert isinstance(told, m.ErrorEvent)
        assert (told.code, told.retryable) == ("no_capacity", True)
        await eventually(lambda: waiting() == 1, "an operator sees that one waits")
        await stack.start_gateway()
        audio = await collect(events, turn)
        assert audio.pcm == tone_pcm("I come too late.")
        assert audio.errors == []
        await eventually(lambda: waiting() == 0, "nobody waits any more")
