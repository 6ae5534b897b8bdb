"""A load like that of voice agents: sessions that answer now and then, each with a listener."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from benchmarks.answers import Answer
from benchmarks.figures import FirstSentence
from firstword import messages as m
from firstword.client import Event, Firstword, Session
from firstword.ids import START, id_key
from firstword.session_messages import BYTES_PER_SAMPLE, DEFAULT_SAMPLE_RATE

TOKENS_PER_S = 50.0
PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Load:
    """`sessions` are open all the time. Each begins an answer every `cycle_s` seconds (a fifth
    more or less, but never before the last is published), the first after a part of that.
    """

    sessions: int
    seconds: float
    cycle_s: float
    opening: bool = False
    """Say the first sentence of an answer and little more: many first sentences in little time."""


@dataclass(slots=True)
class _Turn:
    """What is known of a turn while it is spoken; times as in `FirstSentence`."""

    answer: Answer
    entries: list[int] = field(default_factory=list)
    given_at: float = 0.0
    committed: int = 0
    ttfb: float = 0.0
    audio: int | None = None
    heard_at: float = 0.0

    def sentence(self) -> FirstSentence:
        assert self.audio is not None
        return FirstSentence(
            mark=self.entries[self.answer.mark],
            certain=self.entries[self.answer.certain],
            committed=self.committed,
            audio=self.audio,
            ttfb=self.ttfb,
            heard=(self.heard_at - self.given_at) * 1000,
        )


@dataclass(slots=True)
class Tally:
    """What the load came to."""

    sentences: list[FirstSentence] = field(default_factory=list)
    publishing: list[float] = field(default_factory=list)
    """Milliseconds that the client took to publish each token."""
    tokens: int = 0
    segments: int = 0
    chunks: int = 0
    audio_s: float = 0.0
    writing_s: float = 0.0
    """Time in which answers were written, over all sessions."""
    writing: int = 0
    """Sessions whose answer is being written now."""
    most_writing: int = 0
    seconds: float = 0.0


class Talk:
    """Runs one load, in sessions of its own. It is the same at every run."""

    def __init__(self, firstword: Firstword, load: Load, answers: Sequence[Answer]) -> None:
        self.tally = Tally()
        self._load = load
        chance = random.Random(1)
        self._conversations = [
            _Conversation(
                firstword.session(),
                answers,
                self.tally,
                random.Random(chance.random()),
            )
            for _ in range(load.sessions)
        ]

    @property
    def names(self) -> list[str]:
        """The sessions."""
        return [conversation.name for conversation in self._conversations]

    async def open(self) -> None:
        """Open every session, and listen to it."""
        for conversation in self._conversations:
            await conversation.open()

    async def run(self) -> Tally:
        """All answers of the load, until the last one is heard.

        Raises TimeoutError when one is not, RuntimeError when a listener is told of an error.
        """
        begun = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for conversation in self._conversations:
                tasks.create_task(conversation.talk(self._load))
        self.tally.seconds = time.monotonic() - begun
        return self.tally

    async def close(self) -> None:
        for conversation in self._conversations:
            await conversation.close()


class _Conversation:
    """One session: its answers, and what its listener hears of them."""

    def __init__(
        self, session: Session, answers: Sequence[Answer], tally: Tally, chance: random.Random
    ) -> None:
        self.name = session.name
        self._session = session
        self._tally = tally
        self._chance = chance
        first = chance.randrange(len(answers))
        self._answers = itertools.cycle([*answers[first:], *answers[:first]])
        self._turns: dict[str, _Turn] = {}
        self._news = asyncio.Event()
        self._turn_names = (f"t{number}" for number in itertools.count())
        self._following: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._session.open()
        self._following = asyncio.create_task(self._follow())
        self._following.add_done_callback(lambda _: self._news.set())

    async def talk(self, load: Load) -> None:
        """Answer until the time is up, and wait until all of it is heard."""
        begun = time.monotonic()
        due = begun + self._chance.uniform(0, load.cycle_s)
        while due < begun + load.seconds:
            await asyncio.sleep(due - time.monotonic())
            started = time.monotonic()
            await self._answer()
            pause_s = load.cycle_s * self._chance.uniform(0.8, 1.2)
            due = max(started + pause_s, time.monotonic())
        await self._all_heard()

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def _all_heard(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self._turns:
                if self._following is not None and self._following.done():
                    self._following.result()
                self._news.clear()
                await self._news.wait()

    async def _answer(self) -> None:
        turn, name = _Turn(next(self._answers)), next(self._turn_names)
        self._turns[name] = turn
        tally = self._tally
        tally.writing += 1
        tally.most_writing = max(tally.most_writing, tally.writing)
        begun = time.monotonic()

        def published(_piece: str, entry_id: str) -> None:
            turn.entries.append(id_key(entry_id)[0])
            tally.tokens += 1

        await self._session.stream(_written(turn, tally), turn=name, on_published=published)
        tally.writing -= 1
        tally.writing_s += time.monotonic() - begun

    async def _follow(self) -> None:
        async for event in await self._session.listener(START):
            self._hear(event)

    def _hear(self, event: Event) -> None:
        match event.message:
            case m.SegmentStarted(turn=name) as started:
                self._tally.segments += 1
                turn = self._turns[name]
                if turn.audio is None:
                    turn.committed = id_key(started.committed_at)[0]
                    turn.ttfb = started.ttfb_ms
            case m.AudioChunk(turn=name, data=data):
                self._tally.chunks += 1
                self._tally.audio_s += len(data) / BYTES_PER_SAMPLE / DEFAULT_SAMPLE_RATE
                turn = self._turns[name]
                if turn.audio is None:
                    turn.audio, turn.heard_at = id_key(event.id)[0], time.monotonic()
            case m.TurnDone(turn=name):
                self._tally.sentences.append(self._turns.pop(name).sentence())
                self._news.set()
            case m.ErrorEvent(code=code):
                raise RuntimeError(f"a session was told of an error: {code}")
            case _:
                pass


async def _written(turn: _Turn, tally: Tally) -> AsyncIterator[str]:
    """The pieces at the pace of a model; a late one does not delay those after it."""
    begun = time.monotonic()
    for number, piece in enumerate(turn.answer.pieces):
        await asyncio.sleep(max(0.0, begun + number / TOKENS_PER_S - time.monotonic()))
        given_at = time.monotonic()
        if number == turn.answer.certain:
            turn.given_at = given_at
        yield piece
        # Whoever takes the next piece has published this one.
        tally.publishing.append((time.monotonic() - given_at) * 1000)
