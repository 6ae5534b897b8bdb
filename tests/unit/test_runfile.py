"""The run file: found while its run lives, and never a reason to fail."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import runfile
from firstword.errors import FirstwordError
from firstword.runfile import AlreadyRunning, Run

URL = "redis://127.0.0.1:7001/0"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path)}


@pytest.fixture
def this_run() -> Run:
    return Run(URL, os.getpid(), {"agent": "http://127.0.0.1:8000"})


@pytest.fixture
def ended_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        return process.pid


def put(environ: dict[str, str], text: str | bytes) -> None:
    file = runfile.path(environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)


def test_what_is_published_is_found_until_the_end(environ: dict[str, str], this_run: Run) -> None:
    assert runfile.resolve_url(environ) is None
    with runfile.published(this_run, environ) as file:
        assert file == runfile.path(environ)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert [entry.name for entry in file.parent.iterdir()] == ["run.json"]
        assert runfile.find(environ) == this_run
        assert runfile.resolve_url(environ) == URL
    assert not file.exists()
    assert runfile.find(environ) is None


def test_the_variable_comes_first(environ: dict[str, str], this_run: Run) -> None:
    with runfile.published(this_run, environ):
        elsewhere = environ | {"FIRSTWORD_REDIS_URL": "rediss://elsewhere:6380"}
        assert runfile.resolve_url(elsewhere) == "rediss://elsewhere:6380"
        assert runfile.resolve_url(environ | {"FIRSTWORD_REDIS_URL": ""}) == URL


def test_a_dead_runs_file_counts_as_none_and_is_replaced(
    environ: dict[str, str], this_run: Run, ended_pid: int
) -> None:
    put(environ, json.dumps({"url": URL, "pid": ended_pid, "services": {}}))
    assert runfile.resolve_url(environ) is None
    with runfile.published(this_run, environ):
        assert runfile.find(environ) == this_run


def test_a_second_run_is_refused_while_the_first_lives(
    environ: dict[str, str], this_run: Run
) -> None:
    put(environ, json.dumps({"url": URL, "pid": os.getppid()}))
    with (
        pytest.raises(AlreadyRunning, match=str(os.getppid())),
        runfile.published(this_run, environ),
    ):
        pytest.fail("published over a living run")
    assert runfile.find(environ) == Run(URL, os.getppid())


def test_one_run_at_a_time_may_start(environ: dict[str, str]) -> None:
    with runfile.claimed(environ):
        with (
            pytest.raises(AlreadyRunning, match="another `firstword up` is starting"),
            runfile.claimed(environ),
        ):
            pytest.fail("two at once")
        with pytest.raises(AlreadyRunning), runfile.claimed(environ):
            pytest.fail("the one that was refused ended the claim")
    with runfile.claimed(environ):
        assert stat.S_IMODE(runfile.path(environ).parent.stat().st_mode) == 0o700


def test_a_killed_runs_claim_ends_with_it(environ: dict[str, str]) -> None:
    program = """
import os, sys
from firstword import runfile
with runfile.claimed(os.environ):
    print("claimed", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "XDG_RUNTIME_DIR": "", **environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"claimed\n"
        with pytest.raises(AlreadyRunning), runfile.claimed(environ):
            pytest.fail("two at once")
        process.kill()
    with runfile.claimed(environ):
        pass


def test_a_place_that_cannot_be_claimed_is_told(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "firstword").write_text("in the way")
    with (
        pytest.raises(FirstwordError, match=r"cannot write .*run\.lock .*: set XDG_RUNTIME_DIR"),
        runfile.claimed(environ),
    ):
        pytest.fail("claimed nothing")


def test_another_runs_file_is_left_alone_at_the_end(environ: dict[str, str], this_run: Run) -> None:
    with runfile.published(this_run, environ):
        put(environ, json.dumps({"url": "redis://other", "pid": os.getppid()}))
    assert runfile.find(environ) == Run("redis://other", os.getppid())


def test_a_run_of_another_user_is_alive(monkeypatch: pytest.MonkeyPatch, this_run: Run) -> None:
    def not_yours(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", not_yours)
    assert this_run.alive


def test_a_failed_write_leaves_nothing_behind(
    environ: dict[str, str], this_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"), runfile.published(this_run, environ):
        pytest.fail("published without a file")
    assert list(runfile.path(environ).parent.iterdir()) == []


def test_the_place_follows_the_platforms_conventions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/somebody")
    assert runfile.path({}) == Path("/somebody/.cache/firstword/run.json")
    assert runfile.path({"XDG_CACHE_HOME": "/c"}) == Path("/c/firstword/run.json")
    runtime = {"XDG_RUNTIME_DIR": str(tmp_path), "XDG_CACHE_HOME": "/c"}
    assert runfile.path(runtime) == tmp_path / "firstword" / "run.json"
    nowhere = {"XDG_RUNTIME_DIR": str(tmp_path / "gone"), "XDG_CACHE_HOME": "/c"}
    assert runfile.path(nowhere) == Path("/c/firstword/run.json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        "7",
        '{"url": "redis://x"}',
        '{"pid": 1}',
        '{"url": 5, "pid": 1}',
        '{"url": "redis://x", "pid": "1"}',
        '{"url": "redis://x", "pid": true}',
        '{"url": "redis://x", "pid": 0}',
        '{"url": "redis://x", "pid": -1}',
        '{"url": "redis://x", "pid": 2147483648}',
        '{"url": "redis://x", "pid": 1, "services": []}',
        '{"url": "redis://x", "pid": 1, "services": {"agent": 1}}',
        b"\xff\xfe",
    ],
)
def test_garbage_counts_as_none(environ: dict[str, str], text: str | bytes) -> None:
    put(environ, text)
    assert runfile.find(environ) is None


@given(st.text())
def test_any_text_is_a_run_or_none(text: str) -> None:
    assert Run.parse(text) is None or "pid" in text


def test_fields_of_a_later_version_are_ignored() -> None:
    assert Run.parse('{"url": "redis://x", "pid": 1, "colour": "red"}') == Run("redis://x", 1)
