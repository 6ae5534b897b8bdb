"""More text than can be spoken: publishers wait or are refused, and what was taken is spoken."""

from __future__ import annotations

import asyncio

import pytest

from firstword import keys
from firstword import messages as m
from firstword.client import collect
from firstword.errors import FirstwordError
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import Stack, tone_pcm, until_done
from tests.support import eventually

pytestmark = pytest.mark.streams

SOME = ToneOptions(ms_per_char=1, latency_s=0.01)


def sentences(count: int) -> list[str]:
    return [f"Sentence number {n}." for n in range(count)]


async def test_the_client_waits_and_all_is_spoken(redis_url: str) -> None:
    """Two hundred sentences through a queue of forty."""
    said = sentences(200)
    async with Stack(redis_url, lambda: ToneSynthesizer(SOME), max_queued=40) as stack:
        commands = stack.firstword.streams.commands
        longest = 0
        async with stack.firstword.session("demo", pace="none") as session:

            async def measure() -> None:
                nonlocal longest
                while True:
                    longest = max(longest, int(await commands.xlen(keys.segments("demo"))))
                    await asyncio.sleep(0.005)

            measuring = asyncio.create_task(measure())
            events = await session.listener()
            for sentence in said:
                await session.text(f"{sentence} ", "t")
            await session.end("t")
            audio = await collect(events, "t")
            measuring.cancel()
    assert isinstance(audio.end, m.TurnDone)
    assert (audio.end.reason, audio.errors) == ("complete", [])
    assert audio.pcm == b"".join(tone_pcm(sentence, options=SOME) for sentence in said)
    assert 20 < longest < 80


async def test_who_does_not_wait_is_refused_and_what_was_taken_is_spoken(redis_url: str) -> None:
    slow = ToneSynthesizer(ToneOptions(ms_per_char=1, latency_s=0.2))
    async with Stack(redis_url, lambda: slow, max_queued=6) as stack:
        streams = stack.firstword.streams
        events = await stack.firstword.session("demo").listener()
        for sentence in sentences(40):
            fields = {"session": "demo", "turn": "t", "text": f"{sentence} "}
            await streams.append(keys.DOOR, fields)
        seen = await until_done(events)
        end = seen[-1]
        assert isinstance(end, m.TurnDone)
        assert end.reason == "overloaded"
        errors = [event for event in seen if isinstance(event, m.ErrorEvent)]
        assert [(error.code, error.turn, error.retryable) for error in errors] == [
            ("overloaded", "t", True)
        ]
        spoken = [event.text for event in seen if isinstance(event, m.SegmentStarted)]
        assert spoken == sentences(40)[: len(spoken)]
        assert end.segments == len(spoken) >= 3

        more = {"session": "demo", "turn": "u", "text": "And on.", "end": 1}
        await streams.append(keys.DOOR, more)
        seen = await until_done(events)
        assert [event.text for event in seen if isinstance(event, m.SegmentStarted)] == ["And on."]


async def test_a_caller_that_does_not_wait_is_told(redis_url: str) -> None:
    stuck = ToneSynthesizer(ToneOptions(hang=True))
    async with Stack(redis_url, lambda: stuck, max_queued=4) as stack:
        async with stack.firstword.session("demo") as session:
            await session.say(" ".join(sentences(5)))

            async def full() -> bool:
                try:
                    await session.check_room()
                except FirstwordError as error:
                    return error.code == "busy"
                return False

            await eventually(full, "the queue is full")
        stuck.release()
