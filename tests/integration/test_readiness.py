"""What turns `/readyz` of a gateway and a segmenter red, and that it is green again after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import aiohttp
import pytest

from firstword import keys
from firstword.poison import FLOOD_PER_S, FLOOD_S
from firstword.streams import Streams
from services.segmenter.service import SegmenterService
from services.segmenter.settings import SegmenterSettings
from services.tts_gateway.service import GatewayService
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.websocket import WebSocketUpstream
from tests.doubles.gateway_rig import SessionHand
from tests.reports.scripted import Answer, Peer, Request, ScriptedContainer, speak
from tests.support import eventually

pytestmark = pytest.mark.streams

FLOOD = FLOOD_PER_S * FLOOD_S + 1
NEVER, ALWAYS = "This one is never spoken.", "This one is."


class Service(Protocol):
    address: str

    async def run(self, stop: asyncio.Event) -> None: ...


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.tts_gateway.watched.PROBE_S", 0.05)
    monkeypatch.setattr("services.tts_gateway.watched.WORD_S", 0.2)
    monkeypatch.setattr("firstword.poison.OVER_S", 1.0)


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(service.run(stop))
    try:
        await eventually(lambda: service.address, "it serves")
        yield
    finally:
        stop.set()
        await task


def gateway(redis_url: str, upstream_url: str) -> GatewayService:
    settings = GatewaySettings(redis_url=redis_url, http_port=0, first_byte_s=0.2, attempts=2)
    return GatewayService(settings, WebSocketUpstream(upstream_url))


async def reasons(service: Service) -> dict[str, str]:
    async with aiohttp.ClientSession() as http:
        reply = await http.get(f"http://{service.address}/readyz")
        body = await reply.json()
    assert reply.status == (503 if body["reasons"] else 200)
    return dict(body["reasons"])


async def red(service: Service, check: str, told: str) -> None:
    """Wait until this check is red, and only this one, and says so."""

    async def found() -> bool:
        now = await reasons(service)
        return list(now) == [check] and told in now[check]

    await eventually(found, f"{check} is red: {told}")


async def green(service: Service) -> None:
    async def ready() -> bool:
        return not await reasons(service)

    await eventually(ready, "it is ready")


async def mute(_peer: Peer, _request: Request) -> None:
    """Takes a request, and says nothing."""


async def over(hand: SessionHand, turn: str) -> None:
    async def ended() -> bool:
        return turn in (await hand.hear()).turn_ends

    await eventually(ended, f"turn {turn} is over", timeout=30)


async def test_a_gateway_is_ready_once_its_backend_was_there(redis_url: str) -> None:
    async with ScriptedContainer() as container:
        url = container.url
    service = gateway(redis_url, url)  # nobody listens there any more
    async with serving(service):
        await red(service, "upstream", "did any good yet")
        port = int(url.split(":")[2].split("/")[0])
        async with ScriptedContainer(port=port) as container:
            await green(service)
            assert not container.peers, "it took no session's place"


async def test_a_backend_that_takes_requests_and_says_nothing_is_red_until_it_speaks(
    redis_url: str, streams: Streams
) -> None:
    answers: list[Answer] = [mute]

    async def answer(peer: Peer, request: Request) -> None:
        await answers[-1](peer, request)

    async with ScriptedContainer(answer) as container:
        service = gateway(redis_url, container.url)
        async with serving(service):
            await green(service)
            hand = SessionHand(streams)
            await hand.say("t", NEVER)
            await over(hand, "t")
            await red(service, "upstream", "does not speak")
            answers.append(speak)
            await green(service)  # by itself: nobody else asks for anything


async def test_one_text_that_is_never_spoken_turns_nothing_red_where_others_are(
    redis_url: str, streams: Streams
) -> None:
    async def answer(peer: Peer, request: Request) -> None:
        if request["text"] != NEVER:
            await peer.speak(request)

    async with ScriptedContainer(answer) as container:
        service = gateway(redis_url, container.url)
        bad, good = SessionHand(streams, "bad"), SessionHand(streams, "good")
        async with serving(service):
            await green(service)
            await bad.say("t", *[NEVER] * 3)
            turn = 0
            while "t" not in (await bad.hear()).turn_ends:
                turn += 1
                await good.say(f"t{turn}", ALWAYS)
                await over(good, f"t{turn}")
                assert await reasons(service) == {}
            assert (await bad.hear()).ends == dict.fromkeys((1, 2, 3), "upstream_timeout")


async def test_a_flood_of_what_nobody_can_use_turns_the_gateway_red_that_meets_it(
    redis_url: str, streams: Streams
) -> None:
    async with ScriptedContainer() as container:
        service = gateway(redis_url, container.url)
        async with serving(service):
            hand = SessionHand(streams)
            await hand.put_raw(*[b"\xff"] * (FLOOD - 1))
            await hand.say("t", ALWAYS)
            await over(hand, "t")
            await green(service)
            await hand.put_raw(b"\xff")
            await red(service, "poison", f"{FLOOD} entries of the last {FLOOD_S} s")
            await hand.say("u", ALWAYS)
            await over(hand, "u")
            await green(service)


async def test_a_flood_at_the_door_turns_the_segmenter_red(
    redis_url: str, streams: Streams
) -> None:
    service = SegmenterService(SegmenterSettings(redis_url=redis_url, http_port=0))
    async with serving(service):
        await green(service)
        for _ in range(FLOOD):
            await streams.append(keys.DOOR, {"m": b"\xff"})
        await red(service, "poison", f"{FLOOD} entries of the last {FLOOD_S} s")
        await green(service)


async def test_a_server_that_reads_and_takes_nothing_says_why(
    redis_url: str, streams: Streams
) -> None:
    service = SegmenterService(SegmenterSettings(redis_url=redis_url, http_port=0))
    async with serving(service):
        await green(service)
        await streams.commands.config_set("min-replicas-to-write", 1)  # there is none
        try:
            await red(service, "redis", ", which answers: NOREPLICAS Not enough good replicas")
        finally:
            await streams.commands.config_set("min-replicas-to-write", 0)
        await green(service)
