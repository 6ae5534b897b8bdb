"""What the gateway's own code breaks on costs that segment, and the session goes on."""

from __future__ import annotations

from typing import Any

import pytest

from firstword import codec, dead, keys
from firstword import messages as m
from firstword.streams import Streams
from services.tts_gateway.core import Speech
from tests.doubles.gateway_rig import Container, SessionHand, gateway, spoken
from tests.support import eventually

pytestmark = pytest.mark.streams

ONE, BAD, TWO = "The first is spoken.", "Xyzzy breaks the code.", "The last one too."


@pytest.fixture
async def hand(streams: Streams) -> SessionHand:
    return SessionHand(streams)


async def over(hand: SessionHand, turn: str) -> None:
    async def ended() -> bool:
        return turn in (await hand.hear()).turn_ends

    await eventually(ended, f"turn {turn} is over")


async def letters(streams: Streams) -> list[tuple[str, str]]:
    return [(letter.source, letter.reason) for letter in await dead.read(streams, 10)]


@pytest.mark.parametrize("part", ["begin", "connected", "receive", "lost"])
async def test_a_segment_that_breaks_the_core_ends_with_an_error(
    redis_url: str, streams: Streams, hand: SessionHand, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(Speech, part)

    def broken(speech: Speech, *args: Any) -> Any:
        in_hand = speech._work.segment.text if speech._work is not None else ""
        if BAD in (in_hand, *(getattr(arg, "text", "") for arg in args)):
            raise KeyError(BAD)
        return original(speech, *args)

    monkeypatch.setattr(Speech, part, broken)
    async with Container() as container, gateway(redis_url, container.url):
        if part == "lost":
            received = Speech.receive

            def lose(speech: Speech, *args: Any) -> Any:
                if speech._work is not None and speech._work.segment.text == BAD:
                    container.proxy.cut()
                    return []
                return received(speech, *args)

            monkeypatch.setattr(Speech, "receive", lose)
        await hand.say("t", ONE, BAD, TWO)
        await over(hand, "t")
        await hand.say("u", ONE)
        await over(hand, "u")
        ear = await hand.hear()
    assert ear.ends == {1: "done", 2: "failed", 3: "done", 4: "done"}
    assert ear.segments == {1: spoken(ONE), 3: spoken(TWO), 4: spoken(ONE)}
    assert await letters(streams) == [(keys.segments("s"), "failed")]


async def test_an_entry_that_breaks_the_codec_is_passed_over(
    redis_url: str, streams: Streams, hand: SessionHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack = codec.unpack

    def broken(data: bytes, known: Any) -> Any:
        if BAD.encode() in data and known is codec.SEGMENTS:
            raise KeyError(BAD)
        return unpack(data, known)

    monkeypatch.setattr(codec, "unpack", broken)
    async with Container() as container, gateway(redis_url, container.url):
        await hand.say("t", ONE, BAD, TWO)

        async def done() -> bool:
            return any(isinstance(event, m.TurnDone) for event in await hand.events())

        await eventually(done, "the turn is over")
        events = await hand.events()
    codes = [event.code for event in events if isinstance(event, m.ErrorEvent)]
    assert codes == ["failed"]
    assert [event.n for event in events if isinstance(event, m.SegmentDone)] == [1, 3]
    assert await letters(streams) == [(keys.segments("s"), "failed")]


async def test_a_turn_whose_end_breaks_the_core_is_told(
    redis_url: str, streams: Streams, hand: SessionHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Speech.begin

    def broken(speech: Speech, entry_id: str, message: m.Segments, now: float) -> Any:
        if isinstance(message, m.TurnEnd) and message.turn == "t":
            raise KeyError(BAD)
        return begin(speech, entry_id, message, now)

    monkeypatch.setattr(Speech, "begin", broken)
    async with Container() as container, gateway(redis_url, container.url):
        await hand.say("t", ONE)
        await hand.say("u", TWO)

        async def ends() -> list[tuple[str, str]]:
            done = [event for event in await hand.events() if isinstance(event, m.TurnDone)]
            return [(event.turn, event.reason) for event in done]

        async def both() -> bool:
            return await ends() == [("t", "failed"), ("u", "complete")]

        await eventually(both, "both turns are over")
        told = [event for event in await hand.events() if isinstance(event, m.ErrorEvent)]
    assert [(event.code, event.turn) for event in told] == [("failed", "t")]


async def test_a_stored_state_that_makes_no_sense_is_told_and_the_session_goes_on(
    redis_url: str, streams: Streams, hand: SessionHand
) -> None:
    async with Container() as container:
        async with gateway(redis_url, container.url):
            await hand.say("t", ONE)
            await over(hand, "t")
        await streams.commands.hset(keys.speech_state("s"), "turn_samples", "many")
        async with gateway(redis_url, container.url):
            await hand.say("u", TWO)

            async def told() -> bool:
                events = await hand.events()
                lost = [e for e in events if isinstance(e, m.ErrorEvent)]
                done = [e for e in events if isinstance(e, m.TurnDone)]
                return [e.code for e in lost] == ["state_lost"] and [e.turn for e in done] == [
                    "t",
                    "u",
                ]

            await eventually(told, "the loss is told, and the next turn is spoken")
    assert await letters(streams) == [(keys.speech_state("s"), "broken_state")]
