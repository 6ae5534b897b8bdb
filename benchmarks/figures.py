"""From what was measured to what is printed: quantiles, hops, cost per unit. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firstword.bench.figures import quantile as quantile
from firstword.bench.figures import table as table

MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table of times, in milliseconds. The goals are printed, never asserted."""

    name: str
    count: int
    mean: float
    p50: float
    p99: float
    most: float
    goal: str = ""


def row(name: str, values: Sequence[float], goal: str = "") -> Row:
    """What `values` (milliseconds) come to."""
    mean = sum(values) / len(values) if values else math.nan
    p50, p99, most = (quantile(values, share) for share in (0.5, 0.99, 1.0))
    return Row(name, len(values), mean, p50, p99, most, goal)


@dataclass(frozen=True, slots=True)
class FirstSentence:
    """The way of a turn's first sentence; milliseconds.

    `mark`, `certain`, `committed` and `audio` are on the server's clock, in whole milliseconds:
    the entries with the sentence's last character, with the token that made it certain (the same
    entry where they came together), of the segment, and of its first audio. `ttfb` and `heard` are
    durations: synthesis request to first audio at the gateway, and, on our own clock, from giving
    the client the token that made it certain to having the first audio in hand.
    """

    mark: int
    certain: int
    committed: int
    audio: int
    ttfb: float
    heard: float

    @property
    def together(self) -> bool:
        """Whether the last character came with what made the sentence certain.

        Otherwise its synthesis may have begun at the mark, and is not waited for in full.
        """
        return self.mark == self.certain


def hops(sentences: Sequence[FirstSentence], synthesis_ms: float, goal: str) -> list[Row]:
    """Where the time goes, of sentences that came `together`.

    `synthesis_ms` is what the engine itself needs for one; it is taken out of every line that
    holds a synthesis. The three hops add up to the first line.
    """
    return [
        row(
            "last character accepted -> first audio published, less synthesis",
            [s.audio - s.certain - synthesis_ms for s in sentences],
            goal,
        ),
        row(
            "  text accepted -> segment committed",
            [float(s.committed - s.certain) for s in sentences],
        ),
        row(
            "  committed -> synthesis asked for, audio -> published",
            [s.audio - s.committed - s.ttfb for s in sentences],
        ),
        row(
            "  asked for -> first audio at the gateway, less synthesis",
            [s.ttfb - synthesis_ms for s in sentences],
        ),
        row(
            "token given to the client -> audio in the listener's hands, less synthesis",
            [s.heard - synthesis_ms for s in sentences],
        ),
    ]


def head_start(sentences: Sequence[FirstSentence]) -> list[Row]:
    """Sentences whose last character came before the token that made them certain."""
    return [
        row(
            "last character accepted -> first audio published",
            [float(s.audio - s.mark) for s in sentences],
        ),
        row("  of it, waiting for the next token", [float(s.certain - s.mark) for s in sentences]),
        row(
            "  next token accepted -> first audio published",
            [float(s.audio - s.certain) for s in sentences],
        ),
    ]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used since its start, and the memory it holds now."""

    cpu_s: float
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """A process's CPU under load: shares of one core, and what the load added per unit."""

    busy: float
    idle: float
    unit_us: float


def cost(used_s: float, seconds: float, idle: float, units: int) -> Cost:
    """`used_s` of CPU in `seconds` for `units`; `idle` is its share of a core without load.

    The unit bears what the load added, never less than nothing.
    """
    added_s = max(0.0, used_s - idle * seconds)
    return Cost(used_s / seconds, idle, added_s / units * MICROSECONDS if units else math.nan)


def growth(before: Mapping[str, int], after: Mapping[str, int], units: int) -> dict[str, float]:
    """Bytes by which each grew, per unit."""
    return {name: (after[name] - bytes_) / units for name, bytes_ in before.items()}
