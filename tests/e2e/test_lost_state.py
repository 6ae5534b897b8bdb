"""The server forgets, or goes back in time, in the middle of a turn: every word is heard once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from firstword import codec, keys
from firstword import messages as m
from firstword.audio import TurnAudio
from firstword.client import Event, Firstword, Listener, Session, collect
from firstword.embedded import EmbeddedServer
from firstword.streams import Streams
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import Stack, tone_pcm
from tests.support import eventually

SENTENCES = [
    "The first sentence of this turn is spoken.",
    "The second one is not done when it happens.",
    "The third has not begun by then.",
]
TEXT = " ".join(SENTENCES)
SLOW = ToneOptions(ms_per_char=30, chars_per_piece=4, latency_s=0.02)
WHOLE = b"".join(tone_pcm(sentence, options=SLOW) for sentence in SENTENCES)


def slow() -> ToneSynthesizer:
    return ToneSynthesizer(SLOW)


@pytest.fixture
async def stack(redis_url: str) -> AsyncIterator[Stack]:
    async with Stack(redis_url, slow) as running:
        yield running


class Ear:
    """Hears one turn in the background, event by event."""

    def __init__(self, events: Listener, turn: str = "t") -> None:
        self.audio = TurnAudio(turn)
        self.seen: list[Event] = []
        self._task = asyncio.create_task(self._hear(events))

    async def _hear(self, events: Listener) -> TurnAudio:
        async for event in events:
            self.seen.append(event)
            if self.audio.feed(event.message):
                break
        return self.audio

    async def has(self, samples: int) -> None:
        await eventually(lambda: self.audio.samples >= samples, f"{samples} samples are heard", 30)

    async def whole(self) -> TurnAudio:
        async with asyncio.timeout(60):
            return await self._task

    def of(self, kind: type[m.Audio]) -> list[m.Audio]:
        return [event.message for event in self.seen if isinstance(event.message, kind)]


def second_sentence() -> int:
    """Samples up to the middle of the second sentence."""
    return len(tone_pcm(SENTENCES[0], options=SLOW)) // 2 + 10_000


def check(ear: Ear) -> None:
    """All of the turn, each sample once, and nothing announced twice."""
    assert ear.audio.pcm == WHOLE
    assert ear.audio.errors == []
    chunks = sum(len(e.data) for e in ear.of(m.AudioChunk) if isinstance(e, m.AudioChunk))
    assert chunks == len(WHOLE)
    assert len(ear.of(m.TurnStarted)) == 1
    starts = [e.text for e in ear.of(m.SegmentStarted) if isinstance(e, m.SegmentStarted)]
    assert starts == SENTENCES


async def spoken_again(stack: Stack, session: str) -> int:
    """Samples of the turn that were published after the loss."""
    entries = await stack.firstword.streams.range(keys.audio(session), "0-0", 10_000)
    assert len(entries) < 10_000
    messages = [codec.unpack(entry.fields[b"m"], codec.AUDIO) for entry in entries]
    return sum(len(e.data) // 2 for e in messages if isinstance(e, m.AudioChunk))


async def test_a_server_that_forgets_everything_in_the_middle_of_a_turn(stack: Stack) -> None:
    async with stack.firstword.session("demo") as session:
        ear = Ear(await session.listener())
        await session.say(TEXT, turn="t")
        await ear.has(second_sentence())
        had = ear.audio.samples
        await stack.firstword.streams.commands.flushall()
        await ear.whole()
        check(ear)
        assert [e.code for e in ear.of(m.ErrorEvent) if isinstance(e, m.ErrorEvent)] == [
            "state_lost"
        ]
        # What was heard was not spoken again, but for what was under way when it happened.
        assert await spoken_again(stack, "demo") <= len(WHOLE) // 2 - had + 24_000
        numbers = [e.n for e in ear.of(m.SegmentStarted) if isinstance(e, m.SegmentStarted)]
        assert numbers == [1, 2, 3]


async def test_a_server_that_forgets_while_the_turn_is_still_written(stack: Stack) -> None:
    async with stack.firstword.session("demo", voice="am_adam") as session:
        ear = Ear(await session.listener())
        forgotten = asyncio.Event()

        async def pieces() -> AsyncIterator[str]:
            yield f"{SENTENCES[0]} "
            yield SENTENCES[1]
            await forgotten.wait()
            yield f" {SENTENCES[2]}"

        speaking = asyncio.create_task(session.stream(pieces(), turn="t"))
        await ear.has(20_000)
        await stack.firstword.streams.commands.flushall()
        forgotten.set()
        await speaking
        audio = await ear.whole()
        said = [tone_pcm(sentence, "am_adam", SLOW) for sentence in SENTENCES]
        assert audio.pcm == b"".join(said)


async def test_turns_that_wait_are_published_again_in_their_order(stack: Stack) -> None:
    async with stack.firstword.session("demo") as session:
        first, second = Ear(await session.listener()), Ear(await session.listener(), "u")
        await session.say(TEXT, turn="t")
        await session.say("Another one behind it.", turn="u")
        await first.has(second_sentence())
        await stack.firstword.streams.commands.flushall()
        await first.whole()
        check(first)
        audio = await second.whole()
        assert audio.pcm == tone_pcm("Another one behind it.", options=SLOW)
        turns = [e.turn for e in second.of(m.TurnStarted) if isinstance(e, m.TurnStarted)]
        assert turns == ["t", "u"]


@pytest.mark.parametrize("before", [0, 1])
async def test_a_server_that_dies_without_its_data_and_comes_back(
    make_server: Callable[..., EmbeddedServer], before: int
) -> None:
    server = await asyncio.to_thread(make_server)
    async with Stack(server.url, slow) as stack, stack.firstword.session("demo") as session:
        ear = Ear(await session.listener())
        await session.say(TEXT, turn="t")
        if before:
            await ear.has(second_sentence())
        await asyncio.to_thread(server.restart)
        await ear.whole()
        check(ear)


async def test_an_older_copy_of_the_server_takes_over(stack: Stack) -> None:
    """What a failover to a replica that lags behind does: state and streams go back together."""
    commands = stack.firstword.streams.commands
    async with stack.firstword.session("demo") as session:
        ear = Ear(await session.listener())
        await session.say(TEXT, turn="t")
        await ear.has(20_000)
        copy = {key: await commands.dump(key) for key in await commands.keys("fw:{demo}:*")}
        await ear.has(second_sentence())
        await commands.eval(GO_BACK, len(copy), *copy, *copy.values())
        await ear.whole()
        check(ear)


GO_BACK = """
for i, key in ipairs(KEYS) do redis.call('RESTORE', key, 0, ARGV[i], 'REPLACE') end
"""


async def test_the_listener_with_the_least_decides_and_others_drop_what_they_have(
    stack: Stack,
) -> None:
    async with stack.firstword.session("demo") as session:
        ear = Ear(await session.listener())
        await session.say(TEXT, turn="t")
        await ear.has(second_sentence())
        await stack.firstword.streams.commands.flushall()
        # Another listener, as slow as can be, has heard one second.
        resume = m.Resume(session="demo", turn="t", start=0, samples=24_000, end=42)
        await stack.firstword.streams.publish(resume, await stack.firstword.partitions())
        late = await collect_all(stack.firstword, session)
        await ear.whole()
        check(ear)
        assert late.pcm[48_000:] == WHOLE[48_000:]
        assert not any(late.pcm[:48_000]), "what another listener had is left out"


async def collect_all(firstword: Firstword, session: Session) -> TurnAudio:
    """What a listener gets that begins after the loss."""
    return await collect(session.listen("0-0"), "t")


async def test_publishers_without_the_client_are_told(stack: Stack) -> None:
    streams: Streams = stack.firstword.streams
    events = await stack.firstword.session("demo").listener()
    await streams.append(keys.DOOR, {"session": "demo", "turn": "t", "text": TEXT})
    async for event in events:
        if isinstance(event.message, m.AudioChunk):
            break
    await streams.commands.flushall()
    async with asyncio.timeout(30):
        async for event in events:
            if isinstance(event.message, m.ErrorEvent):
                break
    assert isinstance(event.message, m.ErrorEvent)
    assert (event.message.code, event.message.retryable) == ("state_lost", True)
