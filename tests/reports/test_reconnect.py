"""Areas reconnect and idle: connections to synthesis that go, refuse, or die without a word."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from structlog.testing import capture_logs

from firstword import keys
from firstword import messages as m
from firstword.streams import Streams
from services.tts_gateway.service import GatewayService
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.websocket import WebSocketUpstream
from tests.doubles.gateway_rig import Container, HeldTone, SessionHand, gateway, spoken
from tests.reports.hearing import begun, over
from tests.reports.scripted import Peer, Request, ScriptedContainer, welcome
from tests.support import eventually

FIRST = "The first sentence is spoken while all is well."
SECOND = "The second one meets the trouble, somewhere in its middle."
THIRD = "The third does not know of it."
FOURTH = "Nor does the last."


# -- a connection that breaks ---------------------------------------------------------------------


async def test_a047_a_container_dies_in_sentence_two_of_four(
    redis_url: str, hand: SessionHand, held: tuple[Container, HeldTone]
) -> None:
    container, tone = held
    texts = (FIRST, SECOND, THIRD, FOURTH)
    with capture_logs() as logs:
        async with gateway(redis_url, container.url):
            tone.go.set()
            await hand.put(hand.open(), hand.segment("t", 1, FIRST, first=True))
            await begun(hand, 1)
            tone.go.clear()
            rest = [
                hand.segment("t", n, text, first=False) for n, text in enumerate(texts[1:], start=2)
            ]
            await hand.put(*rest, m.TurnEnd(turn="t", segments=4))
            await begun(hand, 2)
            container.proxy.cut()
            tone.go.set()
            ear = await over(hand, "t")
    assert ear.segments == {n: spoken(text) for n, text in enumerate(texts, start=1)}
    told = [line for line in logs if line["event"] == "upstream_lost"]
    assert [line["code"] for line in told] == ["upstream_lost"], "operators are told the cause"
    assert not any(isinstance(event, m.ErrorEvent) for event in await hand.events())


async def test_a052_routine_drops_are_never_fatal_however_many(
    redis_url: str, hand: SessionHand, held: tuple[Container, HeldTone]
) -> None:
    container, tone = held
    drops = 6
    async with gateway(redis_url, container.url, attempts=2):
        for number in range(1, drops + 1):
            tone.go.clear()
            await hand.say(f"t{number}", FIRST)
            await begun(hand, number)
            container.proxy.cut()
            tone.go.set()
            ear = await over(hand, f"t{number}")
    assert ear.ends == dict.fromkeys(range(1, drops + 1), "done")
    assert all(audio == spoken(FIRST) for audio in ear.segments.values())


async def _dies(peer: Peer) -> None:
    peer.abort()


async def _leaves(peer: Peer) -> None:
    await peer.finish()


async def _warns_and_leaves(peer: Peer) -> None:
    await peer.control("closing", reason="idle")
    await peer.finish(1012)


async def _complains_and_leaves(peer: Peer) -> None:
    await peer.control("error", code="idle", message="idle for too long", retryable=False)
    await peer.finish(1008)


@pytest.mark.parametrize("leave", [_dies, _leaves, _warns_and_leaves, _complains_and_leaves])
async def test_a053_a061_a062_a_connection_closed_while_idle_costs_nothing(
    redis_url: str, hand: SessionHand, leave: Callable[[Peer], Awaitable[None]]
) -> None:
    """Each turn finds its connection gone; more of them than a sentence has tries."""
    rounds = 6
    async with ScriptedContainer() as container, gateway(redis_url, container.url, attempts=2):
        for number in range(1, rounds + 1):
            await hand.say(f"t{number}", FIRST)
            ear = await over(hand, f"t{number}")
            await leave(container.peers[-1])
            await eventually(lambda: not container.open, "the idle connection is gone")
        assert container.handshakes == rounds, "made again when it is needed, and not before"
    assert ear.ends == dict.fromkeys(range(1, rounds + 1), "done")
    assert all(audio == spoken(FIRST) for audio in ear.segments.values())
    assert not any(isinstance(event, m.ErrorEvent) for event in await hand.events())


async def test_a060_a_long_pause_inside_a_turn_reopens_the_connection(
    redis_url: str, hand: SessionHand
) -> None:
    """A tool call: the turn is open, nothing is to say, everything idle is let go."""
    async with (
        ScriptedContainer() as container,
        gateway(redis_url, container.url, idle_s=1, retention_s=1, attempts=1),
    ):
        await hand.put(hand.open(), hand.segment("t", 1, FIRST, first=True))
        await begun(hand, 1)
        await eventually(lambda: not container.open, "the idle connection is closed")

        async def left() -> bool:
            return "token" not in await hand.state()

        await eventually(left, "the session is left")
        second = hand.segment("t", 2, SECOND, first=False)
        await hand.put(second, m.TurnEnd(turn="t", segments=2))

        async def ended() -> bool:
            return any(isinstance(event, m.TurnDone) for event in await hand.events())

        await eventually(ended, "the turn is over")
    events = await hand.events()
    heard = b"".join(e.data for e in events if isinstance(e, m.AudioChunk) and e.n == 2)
    assert heard == spoken(SECOND)
    assert not any(isinstance(event, m.TurnStarted) for event in events), "it is the same turn"
    assert isinstance(events[-1], m.TurnDone)
    assert events[-1].samples == len(spoken(FIRST) + spoken(SECOND)) // 2


# -- a connection that is dead and does not say so ------------------------------------------------


async def test_a056_a_sentence_written_into_a_dead_connection_is_spoken(
    redis_url: str, hand: SessionHand
) -> None:
    async with Container() as container, gateway(redis_url, container.url, first_byte_s=0.3):
        await hand.say("a", FIRST)
        await over(hand, "a")
        container.proxy.go_dark()
        await hand.say("b", SECOND)
        ear = await over(hand, "b")
    assert ear.segments == {1: spoken(FIRST), 2: spoken(SECOND)}
    assert container.connections == 2


async def test_a073_a_half_open_idle_connection_is_noticed_and_made_again(
    redis_url: str, hand: SessionHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.tts_gateway.websocket.HEARTBEAT_S", 0.5)
    with capture_logs() as logs:
        async with Container() as container, gateway(redis_url, container.url, attempts=1):
            await hand.say("a", FIRST)
            await over(hand, "a")
            container.proxy.go_dark()
            await eventually(
                lambda: any(line["event"] == "upstream_lost" for line in logs),
                "the dead connection is noticed although nothing is to say",
            )
            monkeypatch.undo()
            await hand.say("b", SECOND)
            ear = await over(hand, "b")
    assert ear.ends == {1: "done", 2: "done"}, "and not at the cost of a try"
    assert container.connections == 2


async def test_a064_a065_pings_are_on_the_wire_and_no_turn_minds_them(
    redis_url: str, hand: SessionHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are frames of the transport, not messages: none can come before another."""
    monkeypatch.setattr("services.tts_gateway.websocket.HEARTBEAT_S", 0.5)
    async with ScriptedContainer() as container, gateway(redis_url, container.url, attempts=1):
        await hand.put(hand.open())
        await eventually(
            lambda: container.peers and container.peers[0].pings >= 2,
            "pings come before there is anything to say",
        )
        await hand.say("t", FIRST, SECOND)
        ear = await over(hand, "t")
    assert ear.segments == {1: spoken(FIRST), 2: spoken(SECOND)}
    assert len(container.peers) == 1


# -- a container that will not have us ------------------------------------------------------------


async def test_a050_a_container_that_closes_at_once_is_given_up(
    redis_url: str, hand: SessionHand
) -> None:
    attempts = 3
    async with (
        ScriptedContainer(welcome=_leaves) as container,
        gateway(redis_url, container.url, attempts=attempts, idle_s=1, retention_s=1),
    ):
        await hand.say("t", FIRST, SECOND)
        ear = await over(hand, "t")
        assert ear.ends == {1: "upstream_lost", 2: "upstream_lost"}
        assert container.handshakes <= 2 * attempts + 1, "with the one that `open` asked for"
        made = container.handshakes

        async def left() -> bool:
            return "token" not in await hand.state()

        await eventually(left, "the session is left, as nothing is to say")
        assert container.handshakes == made, "and nobody knocks meanwhile"


async def test_a050_readiness_tells_of_it_and_heals_by_itself(
    redis_url: str, hand: SessionHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.tts_gateway.watched.PROBE_S", 0.05)
    monkeypatch.setattr("services.tts_gateway.watched.HOLD_S", 1.0)
    monkeypatch.setattr("services.tts_gateway.reachability.QUIET_S", 1.0)
    welcomes: list[Callable[[Peer], Awaitable[None]]] = [_leaves]

    async def greet(peer: Peer) -> None:
        await welcomes[-1](peer)

    async with ScriptedContainer(welcome=greet) as container:
        service = GatewayService(
            GatewaySettings(redis_url=redis_url, http_port=0, attempts=2),
            WebSocketUpstream(container.url),
        )
        stop = asyncio.Event()
        serving = asyncio.create_task(service.run(stop))

        async def reasons() -> dict[str, str]:
            async with aiohttp.ClientSession() as http:
                reply = await http.get(f"http://{service.address}/readyz")
                body = await reply.json()
            assert reply.status == (503 if body["reasons"] else 200)
            return dict(body["reasons"])

        async def ready() -> bool:
            return not await reasons()

        async def away() -> bool:
            return list(await reasons()) == ["upstream"]

        await eventually(lambda: service.address, "the gateway serves")
        await eventually(ready, "it has seen its backend, and nothing is wrong")
        await hand.say("t", FIRST, SECOND, THIRD)
        await over(hand, "t")
        await eventually(away, "it does not know a backend that would have it")
        assert "close code" in (await reasons())["upstream"]
        asked = container.handshakes
        await eventually(lambda: container.handshakes > asked + 1, "it looks by itself")
        assert await away()
        welcomes.append(welcome)
        await eventually(ready, "a backend that lets it stay is there")
        stop.set()
        await serving


async def test_a051_sessions_beyond_a_containers_room_leave_the_others_alone(
    redis_url: str, streams: Streams
) -> None:
    room, more, patience_s = 4, 12, 0.5
    inside = [SessionHand(streams, f"in{i}") for i in range(room)]
    outside = [SessionHand(streams, f"out{i}") for i in range(more)]
    async with (
        ScriptedContainer(capacity=room) as container,
        gateway(redis_url, container.url, patience_s=patience_s),
    ):
        for one in inside:
            await one.put(one.open())
        await eventually(lambda: len(container.open) == room, "the container is full")
        await asyncio.gather(*(one.say("t", FIRST) for one in [*outside, *inside]))
        heard = [await over(one, "t") for one in inside]
        refused = [await over(one, "t") for one in outside]
    assert [ear.segments for ear in heard] == [{1: spoken(FIRST)}] * room
    assert [ear.ends for ear in refused] == [{1: "upstream_unreachable"}] * more
    assert container.handshakes <= room + more * 5, "each asks, and waits longer each time"


async def test_a055_a058_one_connection_is_asked_for_however_often_a_session_is_opened(
    redis_url: str, hand: SessionHand
) -> None:
    async with ScriptedContainer() as container:
        container.gate.clear()
        async with gateway(redis_url, container.url, attempts=1):
            for _ in range(5):
                await hand.put(hand.open())
            await hand.say("t", FIRST)
            await eventually(lambda: container.handshakes, "a connection is asked for")
            for _ in range(5):
                await hand.ring()
            container.gate.set()
            ear = await over(hand, "t")
            await hand.say("u", SECOND)
            ear = await over(hand, "u")
    assert ear.segments == {1: spoken(FIRST), 2: spoken(SECOND)}
    assert container.handshakes == 1


# -- a request that fails -------------------------------------------------------------------------


async def _fails_in_the_middle(peer: Peer, request: Request) -> None:
    await peer.speak(request, part=0.5)
    told = {"code": "engine_failed", "message": "try again", "retryable": True}
    await peer.control("error", id=request["id"], **told)


async def _silent_in_the_middle(peer: Peer, request: Request) -> None:
    await peer.speak(request, part=0.5)


async def _nothing_at_all(peer: Peer, request: Request) -> None:
    await peer.start(request)
    await peer.complete(request, 0)


FAILURES: dict[str, tuple[Callable[[Peer, Request], Awaitable[None]], str, float]] = {
    # what is done to the second sentence -> its error, how much of it listeners have
    "A049 an error that may pass, after half of it": (_fails_in_the_middle, "engine_failed", 0.5),
    "A079 half of it and then nothing": (_silent_in_the_middle, "upstream_timeout", 0.5),
    "A081 success without a sample": (_nothing_at_all, "no_audio", 0),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_a049_a079_a081_a110_what_fails_each_time_costs_one_sentence(
    redis_url: str, hand: SessionHand, case: str
) -> None:
    failure, code, share = FAILURES[case]
    attempts = 3

    async def answer(peer: Peer, request: Request) -> None:
        await (failure if request["text"] == SECOND else Peer.speak)(peer, request)

    async with (
        ScriptedContainer(answer) as container,
        gateway(
            redis_url,
            container.url,
            attempts=attempts,
            first_byte_s=0.3,
            between_frames_s=0.3,
        ),
    ):
        await hand.say("t", FIRST, SECOND, THIRD)
        ear = await over(hand, "t")
    assert ear.ends == {1: "done", 2: code, 3: "done"}
    out = ear.segments.pop(2, b"")
    assert out == spoken(SECOND)[: round(len(spoken(SECOND)) // 2 * share) * 2]
    assert ear.segments == {1: spoken(FIRST), 3: spoken(THIRD)}
    asked = [request for request in container.requests if request["text"] == SECOND]
    assert len(asked) == attempts
    (error,) = [event for event in await hand.events() if isinstance(event, m.ErrorEvent)]
    assert (error.n, error.samples) == (2, len(out) // 2)
    assert isinstance(ear.turn_ends["t"], m.TurnDone)
    assert await hand.streams.commands.xlen(keys.segments("s")) == 0, "nothing is left behind"
