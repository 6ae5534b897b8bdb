"""Sessions beside each other, turns behind each other, and turns that are taken back."""

from __future__ import annotations

import asyncio

import pytest

from firstword import messages as m
from firstword.audio import TurnAudio
from firstword.client import collect
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import QUICK, Stack, tone_pcm, until_done
from tests.support import eventually

pytestmark = pytest.mark.streams

NUMBERS = ["One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"]


def sentences(name: str) -> list[str]:
    return [f"{name} says {count}." for count in ("this first", "this second", "this last")]


async def test_ten_sessions_speak_ten_texts(stack: Stack) -> None:
    async def speak(name: str) -> TurnAudio:
        async with stack.firstword.session(name) as session:
            events = await session.listener()
            turn = await session.say(" ".join(sentences(name)))
            return await collect(events, turn)

    heard = await asyncio.gather(*(speak(name) for name in NUMBERS))
    for name, audio in zip(NUMBERS, heard, strict=True):
        assert audio.pcm == b"".join(map(tone_pcm, sentences(name))), f"session {name}"


async def test_turns_are_spoken_whole_and_in_order(stack: Stack) -> None:
    async with stack.firstword.session("demo") as session:
        events = await session.listener()
        await session.text("The first turn begins.", "a")
        await session.text("The second waits.", "b")
        await session.end("b")
        await session.text(" And goes on.", "a")
        await session.end("a")
        seen = await until_done(events) + await until_done(events)
    started = [(e.turn, e.n) for e in seen if isinstance(e, m.SegmentStarted)]
    assert started == [("a", 1), ("a", 2), ("b", 3)]


async def test_a_cancelled_turn_is_silent_at_once_and_the_session_goes_on(redis_url: str) -> None:
    slow = ToneSynthesizer(ToneOptions(ms_per_char=200, chars_per_piece=5, latency_s=0.05))
    async with Stack(redis_url, lambda: slow) as stack, stack.firstword.session("demo") as session:
        events = await session.listener()
        turn = await session.say("A long sentence that is being spoken. And one more behind it.")
        async for event in events:
            if isinstance(event.message, m.AudioChunk):
                break
        receipt = await session.cancel(turn)
        assert receipt.turn == turn
        assert not receipt.already_done
        assert receipt.sent["n"] == 1
        assert receipt.sent["samples"] > 0

        again = await session.say("Next.")
        seen = await until_done(events)
        heard = sum(len(e.data) // 2 for e in seen if isinstance(e, m.AudioChunk))
        assert isinstance(seen[-1], m.TurnCancelled)
        assert heard < receipt.sent["samples"], "the first chunk was taken before"
        audio = await collect(events, again)
        assert audio.samples == 5 * 200 * 24


async def test_a_cancel_is_answered_once_however_often_it_comes(stack: Stack) -> None:
    async with stack.firstword.session("demo") as session:
        for round_ in range(20):
            events = await session.listener()
            turn = await session.say(f"Round {round_} is spoken.")
            first = await session.cancel(turn)
            second = await session.cancel(turn)
            assert (first.turn, second.turn) == (turn, turn)
            assert second.already_done
        events = await session.listener()
        turn = await session.say("Still healthy.")
        assert (await collect(events, turn)).pcm == tone_pcm("Still healthy.")


async def test_late_tokens_of_a_cancelled_turn_are_never_spoken(stack: Stack) -> None:
    async with stack.firstword.session("demo") as session:
        events = await session.listener()
        await session.text("Something was said", "t1")
        await session.cancel("t1")
        await stack.firstword.streams.append(
            "fw:text", {"session": "demo", "turn": "t1", "text": "Too late. Much too late."}
        )
        turn = await session.say("This one counts.")
        seen = await until_done(events) + await until_done(events)
        texts = [e.text for e in seen if isinstance(e, m.SegmentStarted)]
        assert texts == ["This one counts."]
        assert isinstance(seen[-1], m.TurnDone)
        assert seen[-1].turn == turn


async def test_a_second_segmenter_and_gateway_take_their_share(stack: Stack) -> None:
    await stack.start_segmenter()
    await stack.start_gateway()

    async def workers(stage: str) -> int:
        return int(await stack.firstword.streams.commands.zcard(f"fw:{{ctl:{stage}}}:workers"))

    await eventually(lambda: _both(workers), "two workers of each stage")
    for name in NUMBERS:
        async with stack.firstword.session(name) as session:
            events = await session.listener()
            turn = await session.say(f"{name} is heard.")
            assert (await collect(events, turn)).pcm == tone_pcm(f"{name} is heard.")


async def _both(workers) -> bool:  # type: ignore[no-untyped-def]
    return bool(await workers("segmenter") == 2 and await workers("gateway") == 2)


def test_the_double_is_quick() -> None:
    assert QUICK.rtf == QUICK.latency_s == 0
