"""The machine a benchmark runs on, how busy it is with other things, and what processes use."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from benchmarks.figures import Usage

QUIET_LOAD = 0.5
"""Per core: above this, something else is running."""
QUIET_SHARE = 0.1
"""Of all cores: what others may take during a measurement."""

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


def describe() -> str:
    """Cores, processor, Python and load, in one line."""
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    return (
        f"{cores()} cores of {_processor()}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load average at the start {load}"
    )


def cores() -> int:
    """The cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def noise() -> str | None:
    """A warning when the machine has other things to do; None when it is quiet."""
    load = os.getloadavg()[0]
    if load <= QUIET_LOAD * cores():
        return None
    return f"the machine is not quiet (load average {load:.2f}): times are too long"


def counts_processes() -> bool:
    """Whether CPU and memory of processes can be read here: Linux only."""
    return (_PROC / "self" / "stat").exists()


def usage(pid: int) -> Usage:
    """CPU and memory of a running process. Raises OSError if it is gone."""
    # The name in brackets may hold anything, blanks and brackets too.
    fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    user, system, resident = int(fields[11]), int(fields[12]), int(fields[21])
    return Usage((user + system) * _TICK_S, resident * _PAGE_BYTES)


def busy_s() -> float:
    """CPU seconds that all processes together have used since the machine was started."""
    first = (_PROC / "stat").read_text().splitlines()[0].split()
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, first[1:])
    return (user + nice + system + irq + softirq) * _TICK_S


def _processor() -> str:
    try:
        lines = (_PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
