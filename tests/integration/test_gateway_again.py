"""Answers without a sound, and segments that listeners know in part, with a real container."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np
import pytest

from firstword import messages as m
from firstword.streams import Streams
from services.inference.synthesizer import Audio, Prepared, Stop
from tests.doubles.gateway_rig import OPTIONS, Container, SessionHand, gateway, spoken
from tests.doubles.tone_synthesizer import ToneSynthesizer
from tests.support import eventually

pytestmark = pytest.mark.streams

TEXT = "The rain had stopped."
MORE = "Nobody noticed it."


class Mute(ToneSynthesizer):
    """Makes no sound for one text, so many times."""

    def __init__(self, text: str, times: int) -> None:
        super().__init__(OPTIONS)
        self._text, self._times = text, times

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        made = super().synthesize(prepared, index, stop)
        if prepared.pieces[0].utterance.text != self._text or self._times <= 0:
            return made
        self._times -= index == len(prepared.pieces) - 1
        return Audio(np.zeros(0, np.float32))


@pytest.fixture
async def hand(redis_url: str) -> AsyncIterator[SessionHand]:
    streams = Streams(redis_url)
    yield SessionHand(streams)
    await streams.close()


async def over(hand: SessionHand, turn: str) -> None:
    async def ended() -> bool:
        events = await hand.events()
        return any(isinstance(event, m.TurnDone) and event.turn == turn for event in events)

    await eventually(ended, f"turn {turn} is over")


@pytest.mark.parametrize(("times", "ends"), [(2, "done"), (3, "no_audio")])
async def test_a_text_that_must_have_a_sound(
    redis_url: str, hand: SessionHand, times: int, ends: str
) -> None:
    async with (
        Container(Mute(TEXT, times)) as container,
        gateway(redis_url, container.url, attempts=3),
    ):
        await hand.say("t", TEXT, MORE)
        await over(hand, "t")
    ear = await hand.hear()
    assert ear.ends == {1: ends, 2: "done"}
    assert bytes(ear.segments[2]) == spoken(MORE)


@pytest.mark.parametrize("had", [1_000, 10**6])
async def test_a_segment_goes_on_where_its_listeners_are(
    redis_url: str, hand: SessionHand, had: int
) -> None:
    async with Container() as container, gateway(redis_url, container.url):
        known = replace(hand.segment("t", 1, TEXT, first=True), skip_samples=had)
        await hand.put(hand.open(), known, m.TurnEnd(turn="t", segments=1))
        await over(hand, "t")
    events = await hand.events()
    chunks = [event for event in events if isinstance(event, m.AudioChunk)]
    assert b"".join(chunk.data for chunk in chunks) == spoken(TEXT)[2 * had :]
    assert [chunk.offset for chunk in chunks][:1] == ([had] if chunks else [])
    [done] = [event for event in events if isinstance(event, m.SegmentDone)]
    assert done.samples == len(spoken(TEXT)) // 2
