"""What this process may use of the machine: less than is there, in a container that has limits.

Linux only tells; elsewhere all of the machine is ours. A limit holds for all below it, so that of
every group from ours up to the root counts (a container often sees its own as the root).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

GROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cores(groups: Path = GROUPS, membership: Path = MEMBERSHIP) -> int:
    """Cores, at least 1. A quota of two and a half is two: a third thread would wait half of its
    time for the next period, and all others for it."""
    affinity = getattr(os, "sched_getaffinity", None)  # respects cpusets
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = cpu_quota(groups, membership)
    return cores if quota is None else max(1, min(cores, int(quota)))


def usable_memory(groups: Path = GROUPS, membership: Path = MEMBERSHIP) -> int:
    """Bytes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = memory_limit(groups, membership)
    return memory if limit is None else min(memory, limit)


def cpu_quota(groups: Path = GROUPS, membership: Path = MEMBERSHIP) -> float | None:
    """The narrowest limit on processor time, in cores; None without one."""
    found = [quota_of(text) for text in _told(groups, membership, "", "cpu.max")]
    told = [_told(groups, membership, "cpu", f"cpu.cfs_{name}_us") for name in ("quota", "period")]
    found += [quota_of(f"{quota} {period}") for quota, period in zip(*told, strict=False)]
    return min((each for each in found if each is not None), default=None)


def memory_limit(groups: Path = GROUPS, membership: Path = MEMBERSHIP) -> int | None:
    """The narrowest limit on memory, in bytes; None without one."""
    texts = [
        *_told(groups, membership, "", "memory.max"),
        *_told(groups, membership, "memory", "memory.limit_in_bytes"),
    ]
    return min((each for each in map(bytes_of, texts) if each is not None), default=None)


def quota_of(text: str) -> float | None:
    """Cores, of "QUOTA PERIOD" in microseconds; None for no limit ("max", or -1 in version 1)."""
    try:
        quota, period = map(int, text.split())
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def bytes_of(text: str) -> int | None:
    """Of `memory.max` or version 1's, which has a number beyond all memory where there is none."""
    return int(text) if text.strip().isdecimal() else None


def group_of(membership: str, controller: str) -> PurePosixPath:
    """Where a process is in the tree of a controller of version 1, or of version 2 (''); the root
    if `membership`, the text of /proc/PID/cgroup, does not tell."""
    for line in membership.splitlines():
        _number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            return PurePosixPath(path)
    return PurePosixPath("/")


def _told(groups: Path, membership: Path, controller: str, name: str) -> Iterator[str]:
    """What the files of a name say, from our group's up to the root's; missing ones say nothing."""
    text = ""
    with contextlib.suppress(OSError):
        text = membership.read_text()
    ours = group_of(text, controller)
    for group in (ours, *ours.parents):
        with contextlib.suppress(OSError):
            yield (groups / controller / group.relative_to("/") / name).read_text()
