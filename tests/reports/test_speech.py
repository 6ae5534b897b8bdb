"""Areas tail_flush, ordering, stuck and segmentation: what is written is what is heard."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import numpy as np
import pytest

from firstword import keys
from firstword import messages as m
from firstword.client import collect
from firstword.streams import Streams
from services.inference.synthesizer import Audio, Prepared, Stop
from tests.doubles.ear import Ear
from tests.doubles.gateway_rig import OPTIONS, Container, SessionHand, gateway, spoken
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import Stack, tone_pcm, until_done
from tests.reports.hearing import over

SENTENCES = (
    "The last word of a reply is heard.",
    "It is the easiest one to lose.",
    "So listen for the word",  # without a mark
)
TEXT = " ".join(SENTENCES)


async def tokens(text: str) -> AsyncIterator[str]:
    """As a language model writes: a word, or a part of one, at a time."""
    for at in range(0, len(text), 4):
        yield text[at : at + 4]


async def heard_of(stack: Stack, *pieces: str) -> list[str]:
    """The segments that are spoken for a turn published in these pieces."""
    async with stack.firstword.session("demo") as session:
        events = await session.listener()
        for piece in pieces:
            await session.text(piece, "t")
        await session.end("t")
        seen = await until_done(events)
    started = [event for event in seen if isinstance(event, m.SegmentStarted)]
    ear = Ear(seen)
    for event in started:
        assert ear.segments[event.n], "a segment that begins makes a sound"
    return [event.text for event in started]


# -- tail_flush -----------------------------------------------------------------------------------


async def test_a003_the_last_word_is_there_when_the_text_comes_token_by_token(
    stack: Stack,
) -> None:
    async with stack.firstword.session("demo") as session:
        events = await session.listener()
        whole = await collect(events, await session.say(TEXT))
        streamed = await collect(events, await session.stream(tokens(TEXT)))
    assert streamed.pcm == whole.pcm
    assert whole.pcm == b"".join(map(tone_pcm, SENTENCES))
    tail = np.frombuffer(streamed.pcm, "<i2")[-24_000 * 3 // 10 :].astype(np.float64)
    assert np.sqrt(np.mean(tail**2)) > 1000, "the last 300 ms are no silence"


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "not ended"])
@pytest.mark.parametrize("door", ["door", "partition"])
async def test_a009_a012_a_session_closed_right_behind_its_text_says_it_first(
    stack: Stack, ended: bool, door: str
) -> None:
    partition = keys.ingress(keys.partition_of("demo", keys.DEFAULT_PARTITIONS))
    target = keys.DOOR if door == "door" else partition
    events = await stack.firstword.session("demo").listener()
    said = {"session": "demo", "text": "Thank you for calling. Goodbye"}
    await stack.firstword.streams.append(target, {**said, "end": "1"} if ended else said)
    await stack.firstword.streams.append(target, {"session": "demo", "close": "1"})
    seen = [event.message async for event in events]
    assert isinstance(seen[-1], m.Closed)
    assert isinstance(seen[-2], m.TurnDone)
    ear = Ear(seen)
    assert b"".join(ear.segments.values()) == tone_pcm("Thank you for calling.") + tone_pcm(
        "Goodbye"
    )


async def test_a011_a085_every_sentence_of_a_turn_is_whole_and_needs_nothing_to_follow(
    stack: Stack,
) -> None:
    sentences = [f"This is sentence {name}." for name in ("one", "two", "three", "four", "five")]
    events = await stack.firstword.session("demo").listener()
    await stack.firstword.streams.append(
        keys.DOOR, {"session": "demo", "text": " ".join(sentences), "end": "1"}
    )
    seen = await until_done(events)
    ear = Ear(seen)
    assert list(ear.ends.values()) == ["done"] * 5
    assert list(ear.segments.values()) == [tone_pcm(sentence) for sentence in sentences]


# -- ordering -------------------------------------------------------------------------------------


class Crowd(ToneSynthesizer):
    """Knows how many syntheses ran at once at most."""

    def __init__(self) -> None:
        super().__init__(ToneOptions(ms_per_char=10, chars_per_piece=20, latency_s=0.02))
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            return super().synthesize(prepared, index, stop)
        finally:
            with self._lock:
                self._now -= 1


async def test_a023_several_gateways_and_still_one_synthesis_at_a_time(
    redis_url: str, streams: Streams
) -> None:
    texts = [f"Sentence number {number} is spoken by one alone." for number in range(6)]
    crowd = Crowd()
    hand = SessionHand(streams)
    async with AsyncExitStack() as stack:
        container = await stack.enter_async_context(Container(crowd))
        for _ in range(3):
            await stack.enter_async_context(gateway(redis_url, container.url))
        await hand.say("t", *texts)
        ear = await over(hand, "t")
    assert list(ear.segments.values()) == [spoken(text) for text in texts]
    assert crowd.most == 1
    assert container.connections == 1


async def test_a025_a069_quick_turns_are_spoken_one_after_the_other_and_whole(
    redis_url: str,
) -> None:
    words = [f"Word{number}." for number in range(10)]
    tone = ToneSynthesizer(ToneOptions(ms_per_char=10, chars_per_piece=20, latency_s=0.02))
    async with Stack(redis_url, lambda: tone) as stack, stack.firstword.session("demo") as session:
        events = await session.listener()
        for word in words:
            await session.say(word)
        seen: list[m.Audio] = []
        for _ in words:
            seen += await until_done(events)
        assert len(stack.inference._connections) == 1
    ear = Ear(seen)  # fails when a turn begins before the one before it is over
    assert list(ear.segments.values()) == [tone_pcm(word, options=OPTIONS) for word in words]
    assert list(ear.turn_ends) == ear.turns


# -- stuck ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", ["\U0001f600\U0001f389", "**\n\n", "\n\n---\n\n", "[]()"])
async def test_a082_what_has_nothing_to_say_does_not_hold_up_the_next_sentence(
    stack: Stack, nothing: str
) -> None:
    async with stack.firstword.session("demo") as session:
        events = await session.listener()
        for piece in ("Before. ", nothing, " After that."):
            await session.text(piece, "t")
            await session.flush("t")
        await session.end("t")
        audio = await collect(events, "t")
    assert isinstance(audio.end, m.TurnDone)
    assert audio.errors == []
    assert audio.pcm == tone_pcm("Before.") + tone_pcm("After that.")


# -- segmentation ---------------------------------------------------------------------------------


async def test_a014_a_sentence_before_a_pause_is_spoken_in_the_pause(stack: Stack) -> None:
    async with stack.firstword.session("demo") as session:
        events = await session.listener()
        await session.text("Let me look that up.", "t")
        async for event in events:  # nothing more is published
            if isinstance(event.message, m.SegmentDone):
                break
        await session.text(" Here it is.", "t")
        await session.end("t")
        assert [e.text for e in await until_done(events) if isinstance(e, m.SegmentStarted)] == [
            "Here it is."
        ]


@pytest.mark.parametrize(
    ("pieces", "sentences"),
    [
        pytest.param(
            ["This is one.Two comes next.", "Then three."],
            ["This is one.", "Two comes next.", "Then three."],
            id="A014",
        ),
        pytest.param(["98", ".", "6°F today."], ["98.6°F today."], id="A015"),
        pytest.param(
            ["It costs 3", ".", "50", " today", ". ", "Or 4", ",", "20 tomorrow."],
            ["It costs 3.50 today.", "Or 4,20 tomorrow."],
            id="A015-prices",
        ),
    ],
)
async def test_a014_a015_sentences_end_where_they_end(
    stack: Stack, pieces: list[str], sentences: list[str]
) -> None:
    assert await heard_of(stack, *pieces) == sentences


async def test_a021_with_a_least_length_no_fragment_but_the_first_is_shorter(
    redis_url: str,
) -> None:
    text = (
        "Yes. No. Well, it depends. On what? On you, I think. Really. Ask me again tomorrow then."
    )
    async with Stack(redis_url) as stack:
        meta = {"segmenter": {"min_chars": 20}}
        async with stack.firstword.session("demo", meta=meta) as session:
            events = await session.listener()
            await session.say(text)
            seen = await until_done(events)
    texts = [event.text for event in seen if isinstance(event, m.SegmentStarted)]
    assert texts[0] == "Yes."
    assert all(len(part) >= 20 for part in texts[1:-1])
    assert " ".join(texts) == text
