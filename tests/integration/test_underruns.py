"""Listeners that run dry are counted, where it is the synthesis that came too late."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from firstword.streams import Streams
from tests.doubles.gateway_rig import Container, SessionHand, gateway
from tests.doubles.tone_synthesizer import SAMPLE_RATE, ToneOptions, ToneSynthesizer
from tests.support import eventually

pytestmark = pytest.mark.streams


def counted() -> tuple[float, float]:
    """Times, and seconds."""
    times = REGISTRY.get_sample_value("firstword_underruns_total")
    seconds = REGISTRY.get_sample_value("firstword_underrun_seconds_total")
    return times or 0.0, seconds or 0.0


@pytest.mark.parametrize("pace", ["realtime", "none"])
async def test_a022_a_tiny_first_piece_before_a_slow_second_is_counted(
    redis_url: str, streams: Streams, pace: str
) -> None:
    """The first is a tenth of a second of sound; the second takes longer than that to make."""
    hand = SessionHand(streams)
    slow = ToneSynthesizer(ToneOptions(ms_per_char=10, latency_s=0.6))
    before, before_s = counted()
    async with Container(slow) as container, gateway(redis_url, container.url):
        await hand.put(hand.open(pace=pace))
        await hand.say("t", "Well, yes.", "And a second one.")

        async def over() -> bool:
            return "t" in (await hand.hear()).turn_ends

        await eventually(over, "the turn is over")
    times, seconds = counted()
    assert times - before == (1 if pace == "realtime" else 0)
    assert (seconds - before_s > 0.05) == (pace == "realtime")


async def test_seconds_of_speech_are_counted_whatever_makes_them(
    redis_url: str, streams: Streams
) -> None:
    """By the gateway, so that they are known where the backend is no target of Prometheus."""
    hand = SessionHand(streams)
    name = "firstword_speech_seconds_total"
    before = REGISTRY.get_sample_value(name) or 0.0
    async with Container(ToneSynthesizer(ToneOptions())) as container:
        async with gateway(redis_url, container.url):
            await hand.put(hand.open())
            await hand.say("t", "Well, yes.", "And a second one.")

            async def over() -> bool:
                return "t" in (await hand.hear()).turn_ends

            await eventually(over, "the turn is over")
    heard_s = sum(map(len, (await hand.hear()).segments.values())) / 2 / SAMPLE_RATE
    counted_s = (REGISTRY.get_sample_value(name) or 0.0) - before
    assert heard_s > 1
    assert counted_s == pytest.approx(heard_s)
