"""The whole path with the real Kokoro-82M: what is heard is what was written."""

from __future__ import annotations

import numpy as np
import pytest

from firstword import messages as m
from firstword.audio import TurnAudio
from tests.doubles import ears, engines
from tests.e2e.stack import Stack

SENTENCES = ["The kettle is on the stove.", "Tea will be ready in a minute."]

pytestmark = pytest.mark.model


async def test_two_sentences_are_spoken_and_understood(redis_url: str) -> None:
    async with (
        Stack(redis_url, engines.kokoro) as stack,
        stack.firstword.session("demo") as session,
    ):
        events = await session.listener()
        await session.text(SENTENCES[0] + " Tea", "t1")
        audio = TurnAudio("t1")
        async for event in events:
            audio.feed(event.message)
            if isinstance(event.message, m.AudioChunk):
                break  # it speaks, and the second sentence is not even written
        await session.text(SENTENCES[1].removeprefix("Tea"), "t1")
        await session.end("t1")
        words = []
        async for event in events:
            if isinstance(event.message, m.SegmentDone):
                words.append(event.message.words)
            if audio.feed(event.message):
                break

    assert [len(found) for found in words] == [6, 7], "each word has its time"
    samples = np.frombuffer(audio.pcm, dtype="<i2").astype(np.float32) / 32768
    assert 2.5 < len(samples) / 24_000 < 5.5, "about four seconds"
    assert np.abs(samples).max() < 1.0, "nothing clips"
    assert ears.share_recognised(" ".join(SENTENCES), audio.pcm) >= 0.8
