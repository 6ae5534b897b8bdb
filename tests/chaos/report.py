"""The table that a run prints."""

from __future__ import annotations

from collections.abc import Sequence

from tests.chaos.play import Result

SHOWN = 10
"""Problems that are told of a scenario."""

HEAD = (
    f"{'scenario':<23}{'sess':>5}{'segm':>6}{'expected':>10}{'received':>10}{'lost':>7}{'rept':>6}"
    f"{'reord':>6}{'cross':>6}{'endless':>8}{'odd':>4}  {'take-over p50/p99 s':<27}"
    f"{'restart':>7}{'fenced':>7}{'errors':>7}{'ours':>6}{'idle':>6}{'took s':>7}"
)


def row(result: Result) -> str:
    """One scenario's line."""
    tally = result.tally
    over = "  ".join(
        f"{stage} {_at(times, 0.5)}/{_at(times, 0.99)}"
        for stage, times in (("gw", result.gateway_ms), ("seg", result.segmenter_ms))
        if times
    )
    ours, idle = ("" if share is None else f"{share:.0%}" for share in (result.ours, result.idle))
    return (
        f"{result.scenario:<23}{tally.sessions:>5}{tally.segments:>6}{tally.expected:>10}"
        f"{tally.received:>10}{tally.lost:>7}{tally.repeated:>6}{tally.reordered:>6}"
        f"{tally.crossed:>6}{tally.endless:>8}{tally.odd:>4}  {over:<27}"
        f"{tally.restarts:>7}{result.fenced:>7}{tally.errors:>7}{ours:>6}{idle:>6}{result.seconds:>7.1f}"
    )


def problems(result: Result) -> list[str]:
    """What was not as promised, in words; the first few of it."""
    told = result.tally.problems
    more = [f"and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
    return [f"    {problem}" for problem in (*told[:SHOWN], *more)]


def _at(times: Sequence[int], share: float) -> str:
    return f"{times[min(len(times) - 1, int(share * len(times)))] / 1000:.2f}"
