"""What happens at once in one session: two publishers, a shell beside a client, a late listener."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

from firstword import keys
from firstword import messages as m
from firstword.client import Firstword, Session
from firstword.ids import START
from firstword.listener import Listener
from firstword.streams import Streams
from tests.doubles.ear import Ear
from tests.doubles.gateway_rig import Container, SessionHand, gateway, spoken
from tests.e2e.stack import Stack, tone_pcm
from tests.support import eventually

TURNS = 6


def sentences(publisher: str, turn: int) -> list[str]:
    return [f"Turn {turn} of the {publisher} begins.", f"And the {publisher} ends it here."]


async def letters(text: str) -> AsyncIterator[str]:
    for at in range(0, len(text), 5):
        yield text[at : at + 5]
        await asyncio.sleep(0)


async def hear(streams: Streams, session: str, turns: set[str]) -> tuple[Ear, list[m.Audio]]:
    """All events, once these turns have ended; fails on what is out of order."""
    events: list[m.Audio] = []
    async for event in Listener(streams, session, START):
        events.append(event.message)
        ended = Ear(events).turn_ends
        if turns <= set(ended):
            return Ear(events), events
    raise AssertionError("the session was closed")


def texts_of(events: list[m.Audio]) -> dict[str, list[str]]:
    """What was said in each turn."""
    found: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, m.SegmentStarted):
            found.setdefault(event.turn, []).append(event.text.strip())
    return found


def check(ear: Ear, events: list[m.Audio], wanted: dict[str, list[str]]) -> None:
    """Each turn whole, with its own words and no others, one behind the other."""
    assert texts_of(events) == wanted
    started = [event for event in events if isinstance(event, m.SegmentStarted)]
    order = [turn for turn, _ in itertools.groupby(event.turn for event in started)]
    assert len(order) == len(wanted), "no turn interrupts another"
    for event in started:
        assert bytes(ear.segments[event.n]) == tone_pcm(event.text.strip())


async def test_two_publishers_on_one_session(stack: Stack) -> None:
    async def publish(session: Session, publisher: str) -> None:
        for turn in range(TURNS):
            text = " ".join(sentences(publisher, turn))
            await session.stream(letters(text), turn=f"{publisher}-{turn}")

    async with Firstword(stack.redis_url) as other:
        here, there = stack.firstword.session("demo"), other.session("demo")
        await asyncio.gather(publish(here, "first"), publish(there, "second"))
    wanted = {
        f"{publisher}-{turn}": sentences(publisher, turn)
        for publisher in ("first", "second")
        for turn in range(TURNS)
    }
    check(*await hear(stack.firstword.streams, "demo", set(wanted)), wanted)


async def test_a_shell_beside_a_client(stack: Stack) -> None:
    """Through the door, which is another stream than the client's: their turns do not mix."""
    streams = stack.firstword.streams

    async def client() -> None:
        session = stack.firstword.session("demo")
        for turn in range(TURNS):
            text = " ".join(sentences("client", turn))
            await session.stream(letters(text), turn=f"client-{turn}")

    async def shell() -> None:
        for turn in range(TURNS):
            for text in sentences("shell", turn):
                fields = {"session": "demo", "turn": f"shell-{turn}", "text": f"{text} "}
                await streams.append(keys.DOOR, fields)
            end = {"session": "demo", "turn": f"shell-{turn}", "end": "1"}
            await streams.append(keys.DOOR, end)

    await asyncio.gather(client(), shell())
    wanted = {
        f"{publisher}-{turn}": sentences(publisher, turn)
        for publisher in ("client", "shell")
        for turn in range(TURNS)
    }
    check(*await hear(streams, "demo", set(wanted)), wanted)


async def test_a_listener_that_comes_after_the_trim_is_told_and_hears_whole_segments(
    redis_url: str,
) -> None:
    streams = Streams(redis_url)
    hand = SessionHand(streams)
    says = [f"This is sentence {number}." for number in range(8)]
    most = 3 * len(spoken(says[0]))
    async with Container() as container:
        async with gateway(redis_url, container.url, retention_bytes=most):
            await hand.say("t", *says)

            async def over() -> bool:
                return any(isinstance(event, m.TurnDone) for event in await hand.events())

            await eventually(over, "the turn is over")
        listener = Listener(streams, hand.name, "1-0")
        gap = await anext(listener)
        assert isinstance(gap.message, m.Gap)
        seen: list[m.Audio] = []
        async for event in listener:
            seen.append(event.message)
            if isinstance(event.message, m.TurnDone):
                break
    await streams.close()
    first = seen[0]
    assert isinstance(first, m.SegmentStarted), "from the start of a segment"
    assert 1 < first.n <= len(says)
    for n in range(first.n, len(says) + 1):
        chunks = (event for event in seen if isinstance(event, m.AudioChunk) and event.n == n)
        assert b"".join(chunk.data for chunk in chunks) == spoken(says[n - 1])
