"""A segmenter dies, or sleeps and wakes, at every single step it makes at the server.

No process-level run can force these moments. Each run is a session and a partition of its own, and
all runs of a test go on at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

import pytest

from firstword import codec, keys
from firstword import messages as m
from firstword.errors import LeaseLost
from firstword.ids import id_key
from firstword.streams import Streams
from services.segmenter import reader
from services.segmenter.admission import Memory
from services.segmenter.reader import PartitionReader
from services.segmenter.settings import SegmenterSettings
from services.segmenter.store import GATEWAY
from tests.doubles.mortal import MortalStreams
from tests.support import eventually

SETTINGS = SegmenterSettings(stall_s=0.05, turn_idle_s=60)
BEFORE = ("One is said. Two follows", " it, ")
AFTER = ("as ever. Three is", " the tail.")
AT_ONCE = "as ever. Three is the tail."
SENTENCES = ["One is said.", "Two follows it, as ever.", "Three is the tail."]
ROOM = Memory(1.0)
MOST = 24
"""More steps than any of these runs makes."""


@pytest.fixture(autouse=True)
def store_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that every step comes soon."""
    monkeypatch.setattr(reader, "KEEP_OPEN_S", 0.05)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two dozen runs at once, on a busy machine: a reply that is late is no test of anything."""
    monkeypatch.setattr("firstword.streams.COMMAND_TIMEOUT_S", 20.0)


@dataclass
class Run:
    """One session on a partition of its own, and the workers that come after each other."""

    streams: Streams
    step: int
    after: bool
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    last_id: str = "0-0"

    @property
    def name(self) -> str:
        return f"s{self.step}"

    @property
    def unit(self) -> str:
        return str(self.step)

    async def publish(self, *texts: str, **fields: str) -> None:
        for text in texts:
            entry = {"session": self.name, "turn": "t", "text": text, **fields}
            self.last_id = await self.streams.append(keys.ingress(self.step), entry)

    async def put(self, **fields: str) -> None:
        entry = {"session": self.name, **fields}
        self.last_id = await self.streams.append(keys.ingress(self.step), entry)

    def start(
        self, streams: Streams, worker: str, settings: SegmenterSettings = SETTINGS
    ) -> asyncio.Task[None]:
        """A worker that is told to leave when the partition is another's."""
        reader = PartitionReader(streams, self.unit, worker, settings, ROOM)
        task = asyncio.create_task(reader.run(asyncio.Event()))
        self.tasks.append(task)
        return task

    def succeed(self, worker: str, settings: SegmenterSettings = SETTINGS) -> None:
        """A worker that owns the partition, as the ownership sees it: fenced off, it begins anew,
        as the service does."""

        async def work() -> None:
            while True:
                with contextlib.suppress(LeaseLost):
                    await PartitionReader(self.streams, self.unit, worker, settings, ROOM).run(
                        asyncio.Event()
                    )

        self.tasks.append(asyncio.create_task(work()))

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def segments(self) -> list[m.Segments]:
        entries = await self.streams.range(keys.segments(self.name), "0-0", count=1000)
        found = [codec.unpack(entry.fields[b"m"], codec.SEGMENTS) for entry in entries]
        return [message for message in found if message is not None]

    async def said(self) -> list[str]:
        return [each.spoken for each in await self.segments() if isinstance(each, m.Segment)]

    async def events(self) -> list[m.Audio]:
        entries = await self.streams.range(keys.audio(self.name), "0-0", count=1000)
        found = [codec.unpack(entry.fields[b"m"], codec.AUDIO) for entry in entries]
        return [message for message in found if message is not None]

    async def all_read(self) -> bool:
        """Whether the cursor has passed everything that was published."""
        state = await self.streams.state(keys.ingress_state(self.unit))
        return id_key(state.get("cursor", b"0-0").decode()) >= id_key(self.last_id)

    async def offered(self) -> bool:
        return await self.streams.commands.zscore(keys.free(GATEWAY), self.name) is not None

    async def forget_offer(self) -> None:
        """As if a gateway had taken the session, found nothing to do and left."""
        await self.streams.commands.zrem(keys.free(GATEWAY), self.name)


async def speak(run: Run, mortal: MortalStreams, *, at_once: bool) -> None:
    """Publish a turn whose end never comes, or comes with the rest of it, so that all of that is
    one step. A gateway comes and goes in between."""

    async def first() -> bool:
        return mortal.reached.is_set() or bool(await run.said())

    async def over() -> bool:
        return mortal.reached.is_set() or (await run.said() == SENTENCES and await run.all_read())

    await run.publish(*BEFORE)
    await eventually(first, "its first sentence, or its end")
    await run.forget_offer()
    if at_once:
        await run.publish(AT_ONCE, end="1")
    else:
        await run.publish(*AFTER)
    await eventually(over, "its last sentence, or its end")


async def check(run: Run) -> None:
    """The successor has spoken the tail, although no more text came; nothing was said twice."""

    async def whole() -> bool:
        return await run.said() == SENTENCES and await run.all_read()

    await eventually(whole, f"every sentence once, dead at step {run.step}")
    await eventually(run.offered, f"a gateway is asked, dead at step {run.step}")
    numbers = [each.n for each in await run.segments() if isinstance(each, m.Segment)]
    assert numbers == [1, 2, 3]


async def die_at(streams: Streams, step: int, after: bool, at_once: bool) -> bool:
    """One run; whether the step ever came."""
    run = Run(streams, step, after)
    mortal = MortalStreams(streams.url, at=step, after=after)
    try:
        first = run.start(mortal, "first")
        await speak(run, mortal, at_once=at_once)
        if mortal.reached.is_set():
            first.cancel()
            run.succeed("second")
        await check(run)
        return mortal.reached.is_set()
    finally:
        await run.stop()
        await mortal.close()


async def sleep_at(streams: Streams, step: int, after: bool) -> bool:
    """One run in which the first worker wakes when the second has done everything."""
    run = Run(streams, step, after)
    woke = asyncio.Event()

    async def sleep() -> None:
        await woke.wait()

    mortal = MortalStreams(streams.url, at=step, after=after, moment=sleep)
    try:
        first = run.start(mortal, "first")
        await speak(run, mortal, at_once=False)
        if mortal.reached.is_set():
            run.succeed("second")
            await check(run)
        woke.set()
        await run.publish(" Four comes", " later. And")

        async def said_once() -> bool:
            return await run.said() == [*SENTENCES, "Four comes later."]

        await eventually(said_once, f"the next sentence once, asleep at step {step}")
        if first.done():
            assert isinstance(first.exception(), LeaseLost)
        return mortal.reached.is_set()
    finally:
        await run.stop()
        await mortal.close()


def every_step_came(came: list[bool], least: int = 6) -> bool:
    """Whether there were no more steps than runs. How many there are depends on how time falls."""
    return all(came[:least]) and not came[-1]


@pytest.mark.parametrize("at_once", [False, True], ids=["open", "at once"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "reply lost"])
async def test_a_segmenter_dies_at_any_step_and_no_more_text_comes(
    streams: Streams, after: bool, at_once: bool
) -> None:
    runs = (die_at(streams, step, after, at_once) for step in range(1, MOST))
    assert every_step_came(await asyncio.gather(*runs))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_segmenter_that_wakes_at_any_step_changes_nothing(
    streams: Streams, after: bool
) -> None:
    runs = (sleep_at(streams, step, after) for step in range(1, MOST))
    assert every_step_came(await asyncio.gather(*runs))


async def cancel_and_die_at(streams: Streams, step: int, after: bool) -> bool:
    """A turn is cancelled behind its first sentence; the worker dies at the step."""
    run = Run(streams, step, after)
    mortal = MortalStreams(streams.url, at=step, after=after)
    try:
        first = run.start(mortal, "first")
        await run.publish(*BEFORE)
        await run.put(type="cancel", turn="t")
        await run.publish(*AFTER)
        await run.put(turn="u", text="Another turn.", end="1")

        async def over() -> bool:
            return mortal.reached.is_set() or await run.all_read()

        await eventually(over, "all is read, or its end")
        if mortal.reached.is_set():
            first.cancel()
            run.succeed("second")
        await eventually(run.all_read, f"all is read, dead at step {step}")
        await eventually(run.offered, f"a gateway is asked, dead at step {step}")
        receipts = [event for event in await run.events() if isinstance(event, m.TurnCancelled)]
        assert [(receipt.turn, receipt.already_done) for receipt in receipts] == [("t", False)]
        assert await run.said() in (["Another turn."], ["One is said.", "Another turn."])
        assert await streams.commands.hkeys(keys.speech_state(run.name)) == [b"cancelled:t"]
        return mortal.reached.is_set()
    finally:
        await run.stop()
        await mortal.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "reply lost"])
async def test_a_cancel_has_one_answer_whenever_the_segmenter_dies(
    streams: Streams, after: bool
) -> None:
    runs = (cancel_and_die_at(streams, step, after) for step in range(1, MOST))
    assert every_step_came(await asyncio.gather(*runs), least=4)


async def test_a_turn_that_nobody_ends_is_ended_by_the_successor(streams: Streams) -> None:
    run = Run(streams, 1, after=False)
    quick = SegmenterSettings(stall_s=0.05, turn_idle_s=0.3)
    try:
        first = run.start(streams, "first")
        await run.publish("One is said. And then")
        await eventually(run.said, "its first sentence")
        await eventually(run.all_read, "the rest is stored")
        first.cancel()
        run.succeed("second", quick)

        async def ended() -> list[m.TurnEnd]:
            return [each for each in await run.segments() if isinstance(each, m.TurnEnd)]

        ends = await eventually(ended, "the turn is ended")
        assert [(end.turn, end.reason, end.segments) for end in ends] == [("t", "abandoned", 2)]
        assert await run.said() == ["One is said.", "And then"]
    finally:
        await run.stop()


async def test_a_session_that_is_spoken_is_offered_to_nobody(streams: Streams) -> None:
    run = Run(streams, 1, after=False)
    try:
        first = run.start(streams, "first")
        await run.publish("One is said.", end="1")
        await run.put(type="close")
        await eventually(run.all_read, "all is read")
        await streams.commands.xtrim(keys.segments(run.name), maxlen=0)  # a gateway has said it
        await run.forget_offer()
        first.cancel()
        run.succeed("second")
        await run.put(session="other", text="Another session speaks.", end="1")
        await eventually(run.all_read, "the second has looked at all that the first had")
        assert not await run.offered()
    finally:
        await run.stop()
