"""What a container may use, as the kernel's files say it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firstword import limits

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
NOWHERE = Path("/nowhere")


@pytest.fixture(autouse=True)
def _eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight, whatever this one is."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)


def write(folder: Path, **files: str) -> None:
    """Files of a group; `__` in a name stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("200000 100000\n", 2.0),
        ("50000 100000", 0.5),
        ("250000 100000", 2.5),
        ("max 100000\n", None),
        ("-1\n 100000\n", None),
        ("0 100000", None),
        ("100000 0", None),
        ("100000", None),
        ("", None),
    ],
)
def test_a_quota_in_cores(text: str, cores: float | None) -> None:
    assert limits.quota_of(text) == cores


@pytest.mark.parametrize(
    ("text", "size"), [("4000000\n", 4_000_000), ("max\n", None), ("", None), ("-1", None)]
)
def test_a_limit_in_bytes(text: str, size: int | None) -> None:
    assert limits.bytes_of(text) == size


@pytest.mark.parametrize(
    ("membership", "controller", "group"),
    [
        ("0::/\n", "", "/"),
        ("0::/system.slice/voice.service\n", "", "/system.slice/voice.service"),
        ("9:name=systemd:/\n4:cpu,cpuacct:/docker/12\n0::/two\n", "cpu", "/docker/12"),
        ("4:cpuset:/a\n3:cpu:/b:c\n", "cpu", "/b:c"),
        ("4:memory:/a\n", "cpu", "/"),
        ("", "", "/"),
    ],
)
def test_the_group_of_a_process(membership: str, controller: str, group: str) -> None:
    assert str(limits.group_of(membership, controller)) == group


@pytest.mark.parametrize(
    ("told", "cores"),
    [
        ("200000 100000", 2),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("6400000 100000", 8),
        ("max 100000", 8),
    ],
)
def test_cores_are_those_of_the_quota_if_it_is_less(tmp_path: Path, told: str, cores: int) -> None:
    write(tmp_path, cpu__max=told)
    assert limits.usable_cores(tmp_path, NOWHERE) == cores


def test_without_limits_all_of_the_machine_is_ours(tmp_path: Path) -> None:
    assert limits.usable_cores(tmp_path, NOWHERE) == 8
    assert limits.usable_memory(tmp_path, NOWHERE) == MACHINE


def test_cores_of_a_system_that_knows_no_affinity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert limits.usable_cores(tmp_path, NOWHERE) == 4


def test_the_narrowest_group_above_counts(tmp_path: Path) -> None:
    groups, membership = tmp_path / "groups", tmp_path / "membership"
    membership.write_text("0::/slice/unit\n")
    write(groups / "slice", cpu__max="300000 100000", memory__max="max\n")
    write(groups / "slice" / "unit", cpu__max="max 100000", memory__max="4000000\n")
    assert limits.usable_cores(groups, membership) == 3
    assert limits.usable_memory(groups, membership) == 4_000_000


def test_a_path_that_the_container_does_not_see_is_passed_over(tmp_path: Path) -> None:
    """With the host's names (`--cgroupns=host`) the container's own files lie at the root."""
    groups, membership = tmp_path / "groups", tmp_path / "membership"
    membership.write_text("0::/docker/12\n")
    write(groups, cpu__max="200000 100000")
    assert limits.usable_cores(groups, membership) == 2


def test_version_1_of_the_kernels_interface(tmp_path: Path) -> None:
    write(tmp_path / "cpu", cpu__cfs_quota_us="150000\n", cpu__cfs_period_us="50000\n")
    write(tmp_path / "memory", memory__limit_in_bytes="4000000\n")
    assert limits.usable_cores(tmp_path, NOWHERE) == 3
    assert limits.usable_memory(tmp_path, NOWHERE) == 4_000_000
    write(tmp_path / "cpu", cpu__cfs_quota_us="-1\n")
    write(tmp_path / "memory", memory__limit_in_bytes="9223372036854771712\n")
    assert limits.usable_cores(tmp_path, NOWHERE) == 8
    assert limits.usable_memory(tmp_path, NOWHERE) == MACHINE
