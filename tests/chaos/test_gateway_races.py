"""A gateway dies, sleeps and wakes, or meets a cancel, at every single step it makes at the server.

Each run is a session of its own, and all runs of a test go on at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from firstword import keys
from firstword import messages as m
from firstword.errors import LeaseLost
from firstword.streams import Streams
from services.segmenter.admission import Memory
from services.segmenter.reader import PartitionReader
from services.segmenter.settings import SegmenterSettings
from services.tts_gateway import runner
from services.tts_gateway.runner import SessionRunner
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Upstream
from services.tts_gateway.websocket import WebSocketUpstream
from tests.doubles.gateway_rig import Container, SessionHand, spoken
from tests.doubles.mortal import MortalStreams
from tests.support import eventually

LONG = "The rain had stopped, and nobody noticed it at first, for it had been quiet rain."
SHORT = "Then everybody did."
MOST = 24
"""More steps than any of these runs makes."""
LEAST = 8
SETTINGS = GatewaySettings()
WHEN = pytest.mark.parametrize("after", [False, True], ids=["before", "reply lost"])

Moment = Callable[[], Awaitable[None]]


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no ownership here to ring a bell."""
    monkeypatch.setattr(runner, "SWEEP_S", 0.1)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two dozen runs at once, on a busy machine: a reply that is late is no test of anything."""
    monkeypatch.setattr("firstword.streams.COMMAND_TIMEOUT_S", 20.0)


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with Container() as container:
        backend = WebSocketUpstream(container.url)
        yield backend
        await backend.close()


@dataclass
class Run:
    """One session, and the workers that come after each other."""

    streams: Streams
    upstream: Upstream
    step: int
    after: bool
    tasks: list[asyncio.Task[bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.hand = SessionHand(self.streams, f"s{self.step}")

    def start(self, streams: Streams, worker: str) -> asyncio.Task[bool]:
        work = SessionRunner(self.hand.name, streams, self.upstream, worker, SETTINGS)
        task = asyncio.create_task(work.run())
        self.tasks.append(task)
        return task

    def succeed(self) -> None:
        """A worker that owns the session, as the ownership sees it: fenced off, it begins anew,
        as the service does."""

        async def work() -> bool:
            while True:
                with contextlib.suppress(LeaseLost):
                    return await SessionRunner(
                        self.hand.name, self.streams, self.upstream, "second", SETTINGS
                    ).run()

        self.tasks.append(asyncio.create_task(work()))

    async def over(self, turn: str) -> bool:
        kinds = (m.TurnDone, m.TurnCancelled)
        return any(isinstance(e, kinds) and e.turn == turn for e in await self.hand.events())

    async def until_over(self, turn: str) -> None:
        async def is_over() -> bool:
            return await self.over(turn)

        await eventually(is_over, f"turn {turn} is over, step {self.step}")

    async def until_over_or(self, reached: asyncio.Event, turn: str) -> None:
        async def there() -> bool:
            return reached.is_set() or await self.over(turn)

        await eventually(there, f"turn {turn} is over or step {self.step} has come")

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def every_step_came(came: list[bool]) -> bool:
    """Whether there were no more steps than runs. How many there are depends on how time falls."""
    return all(came[:LEAST]) and not came[-1]


async def check(run: Run) -> None:
    """Every sample once, in order; `hear` fails on whatever came twice, or out of order."""
    ear = await run.hand.hear()
    assert ear.segments == {1: spoken(LONG), 2: spoken(SHORT)}, f"step {run.step}"
    assert ear.ends == {1: "done", 2: "done"}
    assert isinstance(ear.turn_ends["t"], m.TurnDone)


async def die_at(streams: Streams, upstream: Upstream, step: int, after: bool) -> bool:
    """One run, of a turn and a close; whether the step ever came."""
    run = Run(streams, upstream, step, after)
    mortal = MortalStreams(streams.url, at=step, after=after)

    async def left() -> bool:
        state = await run.hand.state()
        return "position" in state and "token" not in state

    async def left_or_dead() -> bool:
        return mortal.reached.is_set() or await left()

    try:
        await run.hand.say("t", LONG, SHORT)
        await run.hand.put(m.SessionClose())
        first = run.start(mortal, "first")
        await eventually(left_or_dead, f"the session is left, or step {step} has come")
        if mortal.reached.is_set():
            first.cancel()
            run.succeed()
        await eventually(left, f"the session is left, dead at step {step}")
        await check(run)
        assert (await run.hand.events())[-1] == m.Closed(reason="closed")
        return mortal.reached.is_set()
    finally:
        await run.stop()
        await mortal.close()


@WHEN
async def test_a_gateway_dies_at_any_step(
    streams: Streams, upstream: Upstream, after: bool
) -> None:
    runs = (die_at(streams, upstream, step, after) for step in range(1, MOST))
    assert every_step_came(await asyncio.gather(*runs))


async def sleep_at(streams: Streams, upstream: Upstream, step: int, after: bool) -> bool:
    """One run in which the first worker wakes when the second has spoken the turn."""
    run = Run(streams, upstream, step, after)
    woke = asyncio.Event()

    async def sleep() -> None:
        await woke.wait()

    mortal = MortalStreams(streams.url, at=step, after=after, moment=sleep)
    try:
        await run.hand.say("t", LONG, SHORT)
        first = run.start(mortal, "first")
        await run.until_over_or(mortal.reached, "t")
        if mortal.reached.is_set():
            run.succeed()
        await run.until_over("t")
        woke.set()
        await run.hand.say("u", SHORT)
        await run.until_over("u")
        ear = await run.hand.hear()
        assert ear.segments == {1: spoken(LONG), 2: spoken(SHORT), 3: spoken(SHORT)}
        if first.done():
            assert isinstance(first.exception(), LeaseLost)
        return mortal.reached.is_set()
    finally:
        await run.stop()
        await mortal.close()


@WHEN
async def test_a_gateway_that_wakes_at_any_step_changes_nothing(
    streams: Streams, upstream: Upstream, after: bool
) -> None:
    runs = (sleep_at(streams, upstream, step, after) for step in range(1, MOST))
    assert every_step_came(await asyncio.gather(*runs))


# -- a cancel at every step -----------------------------------------------------------------------


async def cancel_at(streams: Streams, upstream: Upstream, step: int, after: bool) -> bool:
    """One run in which the gateway's step waits until a segmenter has answered a cancel."""
    run = Run(streams, upstream, step, after)
    name, hand = run.hand.name, run.hand
    segmenter = PartitionReader(streams, str(step), "segmenter", SegmenterSettings(), Memory(1.0))

    async def publish(**fields: str) -> None:
        await streams.append(keys.ingress(step), {"session": name, **fields})

    async def receipts() -> list[m.TurnCancelled]:
        return [event for event in await hand.events() if isinstance(event, m.TurnCancelled)]

    async def cancel() -> None:
        await publish(type="cancel", turn="t")
        await eventually(receipts, f"the cancel is answered, step {step}")

    mortal = MortalStreams(streams.url, at=step, after=after, moment=cancel)
    reading = asyncio.create_task(segmenter.run(asyncio.Event()))
    try:
        await publish(turn="t", text=f"{LONG} {SHORT}", end="1")
        run.start(mortal, "first")
        await run.until_over_or(mortal.reached, "t")
        await publish(turn="u", text=SHORT, end="1")
        await run.until_over("u")
        came = mortal.reached.is_set()
        if came:
            await eventually(receipts, f"the cancel is answered, step {step}")
        _check_cancelled(await hand.events(), cancelled=came)
        return came
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await run.stop()
        await mortal.close()


def _check_cancelled(events: list[m.Audio], *, cancelled: bool) -> None:
    """One answer, which tells what had come; nothing of the turn after its end."""
    of_turn = [event for event in events if getattr(event, "turn", None) == "t"]
    receipts = [event for event in of_turn if isinstance(event, m.TurnCancelled)]
    assert len(receipts) == cancelled
    if not receipts or receipts[0].already_done:
        assert any(isinstance(event, m.TurnDone) for event in of_turn)
        return
    assert of_turn[-1] is receipts[0], "nothing follows"
    assert not any(isinstance(event, m.TurnDone) for event in of_turn)
    chunks = [event for event in of_turn if isinstance(event, m.AudioChunk)]
    last = chunks[-1].n if chunks else 0
    assert receipts[0].sent == {
        "segments": sum(isinstance(event, m.SegmentDone) for event in of_turn),
        "n": last,
        "samples": sum(len(chunk.data) // 2 for chunk in chunks if chunk.n == last),
    }


@WHEN
async def test_a_cancel_is_answered_once_and_nothing_follows_at_any_step(
    streams: Streams, upstream: Upstream, after: bool
) -> None:
    runs = (cancel_at(streams, upstream, step, after) for step in range(1, MOST))
    assert every_step_came(await asyncio.gather(*runs))
