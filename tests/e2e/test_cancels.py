"""Every cancel has exactly one answer, whatever it meets, and says what was heard when asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from firstword import codec, keys
from firstword import messages as m
from firstword.client import Listener, Session, collect
from firstword.streams import Streams
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import Stack
from tests.support import eventually

pytestmark = pytest.mark.streams

OPTIONS = ToneOptions(ms_per_char=20, chars_per_piece=10)
PER_CHARACTER = 480


@pytest.fixture
async def stack(redis_url: str) -> AsyncIterator[Stack]:
    async with Stack(redis_url, lambda: ToneSynthesizer(OPTIONS)) as running:
        yield running


@pytest.fixture
async def held_stack(redis_url: str) -> AsyncIterator[Stack]:
    """Whose voice takes its time: a turn is never done before it is cancelled."""
    slow = ToneOptions(ms_per_char=20, chars_per_piece=5, rtf=4)
    async with Stack(redis_url, lambda: ToneSynthesizer(slow)) as running:
        yield running


class Line:
    """A publisher that does not use the client, and all that comes back."""

    def __init__(self, stack: Stack) -> None:
        self.streams: Streams = stack.firstword.streams
        self._stack = stack

    async def put(self, *messages: m.Ingress) -> None:
        """In one go, so that they meet in one batch."""
        partitions = await self.streams.partitions()
        for message in messages:
            await self.streams.publish(message, partitions)

    async def answers(self) -> list[m.TurnCancelled]:
        entries = await self.streams.range(keys.audio("demo"), "0-0", 5_000)
        events = [codec.unpack(entry.fields[b"m"], codec.AUDIO) for entry in entries]
        return [event for event in events if isinstance(event, m.TurnCancelled)]

    async def answered(self, count: int) -> list[m.TurnCancelled]:
        """Exactly so many, also after another turn has been spoken."""

        async def all_there() -> bool:
            return len(await self.answers()) >= count

        await eventually(all_there, f"{count} answers")
        session = self._stack.firstword.session("demo")
        events = await session.listener()
        turn = await session.say("Yes?")
        async with asyncio.timeout(20):
            audio = await collect(events, turn)
        assert isinstance(audio.end, m.TurnDone)
        found = await self.answers()
        assert len(found) == count
        return found


@pytest.fixture
def line(stack: Stack) -> Line:
    return Line(stack)


def text(turn: str | None, said: str = "Something to say. And more") -> m.Text:
    return m.Text(session="demo", turn=turn, text=said)


def cancel(turn: str | None = None, **played: Any) -> m.Cancel:
    return m.Cancel(session="demo", turn=turn, played=played or None)


# -- one answer each ------------------------------------------------------------------------------


async def test_a_turn_that_never_was(line: Line) -> None:
    await line.put(m.Open(session="demo"), cancel("never"), text("never"))
    [answer] = await line.answered(1)
    assert (answer.turn, answer.already_done, answer.sent["samples"]) == ("never", True, 0)


async def test_a_session_that_never_was(line: Line) -> None:
    await line.put(cancel())
    [answer] = await line.answered(1)
    assert (answer.turn, answer.already_done) == ("", True)


async def test_a_turn_that_was_spoken(stack: Stack, line: Line) -> None:
    session = stack.firstword.session("demo")
    events = await session.listener()
    await session.say("Short.", turn="t")
    await collect(events, "t")
    await line.put(cancel("t"), cancel("t"))
    answers = await line.answered(2)
    assert [(answer.turn, answer.already_done) for answer in answers] == [("t", True)] * 2


async def test_the_text_in_the_same_batch(line: Line) -> None:
    await line.put(text("t"), cancel("t"), text("t"), m.End(session="demo", turn="t"))
    [answer] = await line.answered(1)
    assert (answer.turn, answer.already_done) == ("t", False)


async def test_twice_in_the_same_batch(line: Line) -> None:
    await line.put(text("t"), cancel("t"), cancel("t"), cancel())
    answers = await line.answered(3)
    assert [(answer.turn, answer.already_done) for answer in answers] == [
        ("t", False),
        ("t", True),
        ("t", True),
    ]


async def test_a_turn_that_waits(held_stack: Stack) -> None:
    line = Line(held_stack)
    await line.put(text("t"), text("u"), cancel("u"), cancel("t"))
    answers = await line.answered(2)
    assert [(answer.turn, answer.already_done) for answer in answers] == [
        ("u", False),
        ("t", False),
    ]


async def test_several_turns_and_no_name(held_stack: Stack) -> None:
    line = Line(held_stack)
    await line.put(text("t"), m.End(session="demo", turn="t"), text("u"), text("v"), cancel())
    [answer] = await line.answered(1)
    assert (answer.turn, answer.already_done) == ("t", False)
    assert answer.turns == ["t", "u", "v"]
    starts = await line.streams.range(keys.audio("demo"), "0-0", 5_000)
    spoken = [codec.unpack(entry.fields[b"m"], codec.AUDIO) for entry in starts]
    turns = {event.turn for event in spoken if isinstance(event, m.TurnStarted)}
    assert not turns & {"u", "v"}


# -- what was heard -------------------------------------------------------------------------------


async def until(events: Listener, kind: type[m.Audio], count: int) -> list[m.Audio]:
    seen: list[m.Audio] = []
    async for event in events:
        seen.append(event.message)
        if sum(isinstance(message, kind) for message in seen) == count:
            break
    return seen


def played(n: int, characters: float) -> dict[str, Any]:
    return {"turn": "t", "n": n, "samples": round(characters * PER_CHARACTER)}


async def cancelled(session: Session, **heard: Any) -> Any:
    receipt = await session.cancel("t", heard)
    assert receipt.turn == "t"
    return receipt.heard


async def test_after_its_end_it_is_still_known(stack: Stack) -> None:
    """The usual barge-in: all is sent, and the listener is in the middle of hearing it."""
    session = stack.firstword.session("demo", pace="none")
    events = await session.listener()
    await session.open()
    await session.say("First of **all**, this. Then a longer sentence follows.", turn="t")
    await until(events, m.TurnDone, 1)
    assert await cancelled(session, **played(2, 14)) == {
        "turn": "t",
        "text": "First of **all**, this. Then a longer",
        "samples": (19 + 14) * PER_CHARACTER,
    }


async def test_in_its_middle(held_stack: Stack) -> None:
    """The second sentence is still being made: its words are placed by a usual pace."""
    session = held_stack.firstword.session("demo")
    events = await session.listener()
    await session.say("One two. Three four five six seven eight nine ten.", turn="t")
    await until(events, m.SegmentStarted, 2)
    samples = 24_000 * 11 // 15
    heard = await cancelled(session, turn="t", n=2, samples=samples)
    assert heard == {
        "turn": "t",
        "text": "One two. Three four",
        "samples": 8 * PER_CHARACTER + samples,
    }


async def test_what_was_heard_cannot_be_read(stack: Stack) -> None:
    session = stack.firstword.session("demo")
    events = await session.listener()
    await session.say("One two.", turn="t")
    await until(events, m.TurnDone, 1)
    assert await cancelled(session, turn="t", n="two", samples=1) is None
    seen = await until(events, m.TurnCancelled, 1)
    errors = [event for event in seen if isinstance(event, m.ErrorEvent)]
    assert [(error.code, error.turn) for error in errors] == [("bad_field", "t")]


async def test_of_a_turn_long_gone_nothing_is_known(stack: Stack) -> None:
    session = stack.firstword.session("demo")
    events = await session.listener()
    for turn in ("t", "u", "v"):
        await session.say("One two.", turn=turn)
    await until(events, m.TurnDone, 3)
    assert await cancelled(session, **played(1, 8)) is None
