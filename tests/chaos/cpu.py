"""Whose the machine's time was, where /proc tells: the rows say whether a run was crowded."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_STAT = Path("/proc/stat")


class Times(NamedTuple):
    """Seconds of processor time since the start: of these processes, of nobody, of the machine."""

    ours: float
    idle: float
    all: float


def now(pids: Iterable[int]) -> Times | None:
    """This process, these children of it and those that have ended; None where nothing tells."""
    if not _STAT.exists():
        return None
    tick = os.sysconf("SC_CLK_TCK")
    machine = [int(number) / tick for number in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ours = sum(each.ru_utime + each.ru_stime for each in used)
    return Times(ours + sum(map(_used_by, pids)) / tick, machine[3] + machine[4], sum(machine))


def shares(before: Times | None, after: Times | None) -> tuple[float | None, float | None]:
    """How much of the machine was ours, and nobody's, between two moments: 0 to 1."""
    if before is None or after is None or after.all <= before.all:
        return None, None
    whole = after.all - before.all
    return (after.ours - before.ours) / whole, (after.idle - before.idle) / whole


def _used_by(pid: int) -> int:
    """Ticks that a living process has used; 0 if it has just ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])
