"""First audio and silence under load, on a simulated device: our scheduler beside first come, first
served.

    python -m benchmarks.ladder [--turns 4000]

Virtual time, fixed seeds: the same figures on every machine. A segment takes 56 ms, as AWS measured
for Kokoro-82M on an A10G; turns of 8 segments of 3 s of audio arrive at random (Poisson). The order
is decided by the class that the inference service runs, `services.inference.scheduler`.
"""

from __future__ import annotations

import argparse
import heapq
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import Protocol

from benchmarks import figures
from services.inference.scheduler import Job, Limits, Listener, Scheduler
from services.tts_gateway.settings import GatewaySettings

SEGMENT_S = 0.056
SEGMENTS = 8
AUDIO_S = 3.0
LOADS = (0.5, 0.7, 0.9)
TURNS = 4000
SEED = 7
GOAL = 0.25
"""First audio at 70 % load, p95: at most this share of what it is first come, first served."""


@dataclass(slots=True, eq=False)
class Turn:
    """One turn and its listener, who hears from the first audio on."""

    number: int
    arrived: float
    made: int = 0
    first_s: float = 0.0
    silence_s: float = 0.0
    plays_until: float = 0.0

    def given(self, now: float) -> None:
        """A segment's audio arrives."""
        if self.made == 0:
            self.first_s = now - self.arrived
            self.plays_until = now
        self.silence_s += max(0.0, now - self.plays_until)
        self.plays_until = max(self.plays_until, now) + AUDIO_S
        self.made += 1


class Order(Protocol):
    """Decides what a device makes next."""

    def add(self, turn: Turn, now: float) -> None:
        """This turn asks for its next segment."""

    def take(self, now: float) -> list[Turn]:
        """Whose segments are made in the next run; nobody's if nobody asks."""

    def ended(self, now: float) -> None:
        """The run is over."""


class FirstCome:
    """Segments in the order in which they were asked for."""

    def __init__(self) -> None:
        self._numbers = count()
        self._waiting: list[tuple[int, Turn]] = []

    def rank(self, _turn: Turn) -> int:
        return next(self._numbers)

    def add(self, turn: Turn, now: float) -> None:
        heapq.heappush(self._waiting, (self.rank(turn), turn))

    def take(self, now: float) -> list[Turn]:
        return [heapq.heappop(self._waiting)[1]] if self._waiting else []

    def ended(self, now: float) -> None:
        """Nothing is to be learned from it."""


class OneLock(FirstCome):
    """Turns in the order of their arrival, each as a whole: one lock around a message."""

    def rank(self, turn: Turn) -> int:
        return turn.number


class Ours:
    """The scheduler of the inference service, asked as the gateway and the service ask it."""

    def __init__(self, batch: int = 1) -> None:
        self._scheduler = Scheduler(Limits(workers=1, max_wait_s=2.0, hang_s=60.0))
        self._scheduler.max_batch = batch
        self._turns: dict[Job, Turn] = {}

    def add(self, turn: Turn, now: float) -> None:
        first = turn.made == 0
        ahead_ms = 0 if first else max(0, round(1000 * (turn.plays_until - now)))
        job = Job(Listener(now, ahead_ms).due, first)
        self._turns[job] = turn
        self._scheduler.add(job)

    def take(self, now: float) -> list[Turn]:
        self._run = self._scheduler.take(now)
        return [] if self._run is None else [self._turns.pop(job) for job in self._run.jobs]

    def ended(self, now: float) -> None:
        if self._run is not None:
            self._scheduler.ended(self._run, now, self._run.size)


@dataclass(frozen=True, slots=True)
class Row:
    """An order, and how the sessions ask. `ahead_s`: a session asks for its next segment when its
    last one is made and less than this is ahead; None: as soon as the last one is made."""

    name: str
    order: Callable[[], Order]
    ahead_s: float | None = None
    batch_cost: float = 1.0
    """What each further segment of a run adds, as a share of the first."""


PACED_S = GatewaySettings().max_ahead_s
FIFO = Row("first come, first served", FirstCome)
OURS = Row("ours", Ours)
PACED_FIFO = Row("first come, first served, paced", FirstCome, PACED_S)
PACED_OURS = Row("ours, paced", Ours, PACED_S)
ROWS = (
    Row("one lock, turn after turn", OneLock),
    FIFO,
    OURS,
    Row("ours, runs of vocoders", lambda: Ours(8), None, 0.66),
    Row("ours, runs of everything", lambda: Ours(8), None, 0.19),
    PACED_FIFO,
    PACED_OURS,
)
"""A row's share is of the last row before it that is first come, first served."""


def arrivals(load: float, turns: int, seed: int) -> list[float]:
    """When turns arrive that keep the device busy for this share of the time."""
    draw = random.Random(seed)  # the same every time, by intention
    rate = load / (SEGMENTS * SEGMENT_S)
    return list(accumulate(draw.expovariate(rate) for _ in range(turns)))


@dataclass(slots=True)
class Device:
    """One device in virtual time."""

    row: Row
    order: Order
    now: float = 0.0
    _busy: bool = False
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), what))

    def run(self) -> None:
        """Until nothing is left to happen."""
        while self._events:
            self.now, _, what = heapq.heappop(self._events)
            what()
            self._begin()

    def ask(self, turn: Turn) -> None:
        self.order.add(turn, self.now)

    def _begin(self) -> None:
        if self._busy:
            return
        turns = self.order.take(self.now)
        if turns:
            self._busy = True
            seconds = SEGMENT_S * (1 + self.row.batch_cost * (len(turns) - 1))
            self.at(self.now + seconds, lambda: self._end(turns))

    def _end(self, turns: Sequence[Turn]) -> None:
        self._busy = False
        self.order.ended(self.now)
        for turn in turns:
            turn.given(self.now)
            if turn.made < SEGMENTS:
                self._next(turn)

    def _next(self, turn: Turn) -> None:
        ahead_s = self.row.ahead_s
        wait_s = 0.0 if ahead_s is None else turn.plays_until - self.now - ahead_s
        if wait_s > 0:
            self.at(self.now + wait_s, lambda: self.ask(turn))
        else:
            self.ask(turn)


def simulate(row: Row, times: Sequence[float]) -> list[Turn]:
    """What each turn's listener heard when."""
    device = Device(row, row.order())
    turns = [Turn(number, arrived) for number, arrived in enumerate(times)]
    for turn in turns:
        device.at(turn.arrived, lambda turn=turn: device.ask(turn))  # type: ignore[misc]
    device.run()
    return turns


def main(arguments: Sequence[str] = ()) -> None:
    """Print a table for each load; some seconds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ladder", description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="per load")
    options = parser.parse_args(arguments)
    print(
        f"Simulated device, {1000 * SEGMENT_S:.0f} ms a segment; {options.turns} turns of "
        f"{SEGMENTS} segments of {AUDIO_S:g} s, Poisson arrivals, seed {SEED}.\n"
        f"Goal at 70 %: p95 at most {GOAL:.0%} of what it is first come, first served.\n"
        f"paced: a session asks while less than {PACED_S:g} s are ahead, as the gateway does.\n"
        "runs: of up to 8 segments; a further one adds what it added on an H200."
    )
    for load in LOADS:
        print(f"\n## {load:.0%} load\n\n{_table(load, options.turns)}")


def _table(load: float, turns: int) -> str:
    times = arrivals(load, turns, SEED)
    lines = []
    base_s = lock_s = 0.0
    for row in ROWS:
        listeners = simulate(row, times)
        first_ms = [1000 * turn.first_s for turn in listeners]
        if row.order is OneLock:
            lock_s = p95(listeners)
        elif row.order is FirstCome:
            base_s = p95(listeners)
        lines.append(
            (
                row.name,
                *(f"{figures.quantile(first_ms, share):.0f}" for share in (0.5, 0.95, 1.0)),
                f"{p95(listeners) / lock_s:.1%}",
                f"{p95(listeners) / base_s:.1%}" if base_s else "",
                str(len(silent(listeners))),
            )
        )
    head = ("first audio, ms", "p50", "p95", "most", "p95 / lock", "p95 / first come", "underruns")
    return figures.table(head, lines)


def silent(turns: Sequence[Turn]) -> set[int]:
    """The turns whose listeners were in silence between two segments."""
    return {turn.number for turn in turns if turn.silence_s > 1e-9}


def p95(turns: Sequence[Turn]) -> float:
    """Of first audio, in seconds."""
    return figures.quantile([turn.first_s for turn in turns], 0.95)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
