"""One scenario in progress: sessions that talk while something is done to what carries them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from firstword import keys
from firstword.client import Firstword
from tests.chaos import cpu
from tests.chaos.deployment import Deployment, Worker
from tests.chaos.hearing import Tally
from tests.chaos.talk import Manner, Talk
from tests.support import eventually

LIMIT_S = 120.0
LEFT_S = 10.0

Faults = Callable[["Play"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is done, and to whom."""

    name: str
    faults: Faults
    manner: Manner = field(default_factory=Manner)
    forgets: bool = False
    """The server loses data: a close that is lost with it leaves its session to the idle time."""
    cluster: bool = False
    """It is played on a cluster."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a scenario showed. Times in milliseconds; `ours` and `idle`: how much of the machine's
    time went to the processes of this run, and to nobody."""

    scenario: str
    tally: Tally
    gateway_ms: list[int]
    segmenter_ms: list[int]
    fenced: int
    seconds: float
    ours: float | None
    idle: float | None


@dataclass(frozen=True, slots=True)
class _Mark:
    """A worker, or a server, was struck: when, and which sessions depend on it."""

    stage: str
    at_ms: int
    names: set[str]


class Play:
    """What faults see of the scenario they belong to."""

    def __init__(self, deployment: Deployment, talks: list[Talk], turns: int) -> None:
        self.deployment = deployment
        self.talks = talks
        self.problems: list[str] = []
        self._turns = turns
        self._marks: list[_Mark] = []

    async def reached(self, share: float) -> None:
        """Wait until this share of all turns has ended."""
        wanted = share * self._turns
        await eventually(
            lambda: sum(talk.ended for talk in self.talks) >= wanted,
            f"{share:.0%} of the turns have ended",
            LIMIT_S,
        )

    async def busiest(self, stage: str) -> Worker:
        """The worker of a stage that most sessions with an open turn depend on."""

        async def find() -> list[Worker]:
            speaking = [talk.name for talk in self.talks if talk.speaking]
            load = {
                worker: len(await self.deployment.sessions(worker, speaking))
                for worker in self.deployment.of(stage)
            }
            return sorted((w for w in load if load[w]), key=lambda w: load[w])

        return (await eventually(find, f"a {stage} has sessions that speak", LIMIT_S))[-1]

    async def struck(self, *workers: Worker) -> None:
        """Note who depends on these now. Call it just before the blow."""
        names = [talk.name for talk in self.talks]
        for worker in workers:
            self.mark(worker.stage, await self.deployment.sessions(worker, names))

    def mark(self, stage: str, names: set[str]) -> None:
        """Note that these are left without what the stage does. Call it just before the blow."""
        self._marks.append(_Mark(stage, _now_ms(), names))

    def silences(self, stage: str) -> list[int]:
        """How long those who depended on a struck worker of the stage were left without it."""
        found: list[int | None] = []
        for mark in self._marks:
            if mark.stage != stage:
                continue
            for talk in self.talks:
                if talk.name in mark.names:
                    heard = talk.hearing
                    found.append(
                        heard.silence_of_gateway(mark.at_ms)
                        if stage == "gateway"
                        else heard.silence_of_segmenter(mark.at_ms, talk.turns)
                    )
        return sorted(silence for silence in found if silence is not None)


async def play(
    deployment: Deployment, scenario: Scenario, sessions: int, first_number: int
) -> Result:
    """Let the sessions talk, do what the scenario does, and count what was heard."""
    began, before = time.monotonic(), cpu.now(deployment.pids())
    fenced = await deployment.note_fenced()
    url = deployment.servers.url
    async with Firstword(url) as one, Firstword(url) as other:
        clients = [one, other] if scenario.manner.kind == "two publishers" else [one]
        numbers = range(first_number, first_number + sessions)
        talks = [Talk(clients, number, scenario.manner) for number in numbers]
        running = Play(deployment, talks, sum(talk.planned for talk in talks))
        await _run(running, scenario)
        if not scenario.forgets:
            await _all_left(running)
    tally = Tally()
    for talk in talks:
        tally.add(talk.tally())
    tally.odd += len(running.problems)
    tally.problems += running.problems
    await deployment.complete()
    return Result(
        scenario.name,
        tally,
        running.silences("gateway"),
        running.silences("segmenter"),
        await deployment.note_fenced() - fenced,
        time.monotonic() - began,
        *cpu.shares(before, cpu.now(deployment.pids())),
    )


async def _all_left(running: Play) -> None:
    """Sessions that were closed are nobody's any more: no gateway keeps a place for them."""
    names = {talk.name for talk in running.talks}

    async def kept() -> set[str]:
        streams = running.deployment.streams
        free = await streams.commands.zrange(keys.free("gateway"), 0, -1)
        return names & {*await streams.state(keys.owners("gateway")), *map(bytes.decode, free)}

    async def left() -> bool:
        return not await kept()

    try:
        await eventually(left, "every closed session has been left", LEFT_S)
    except AssertionError as error:
        running.problems.append(f"{error}: {sorted(await kept())}")


async def _run(running: Play, scenario: Scenario) -> None:
    """All talks and the faults; what is not over in time is left as it is, and shows as endless."""
    talking = asyncio.gather(*(talk.run() for talk in running.talks))
    doing = asyncio.ensure_future(scenario.faults(running))
    try:
        async with asyncio.timeout(LIMIT_S):
            await asyncio.gather(talking, doing)
    except Exception as error:  # the other scenarios are still worth playing
        running.problems.append(f"{type(error).__name__}: {error}")
    finally:
        for task in (talking, doing):
            task.cancel()
        await asyncio.gather(talking, doing, return_exceptions=True)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
