"""`firstword capacity` before the real inference service around a tone, each in its process."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from firstword import runfile
from firstword.cli import main
from tools.cores import ROOT

Capture = pytest.CaptureFixture[str]
START = f"{shlex.quote(sys.executable)} -m tests.doubles.tone_inference"
DEMAND = ["--peak", "10", "--growth", "2"]


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a container that is started will listen; its audio is short, so turns are, too."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("FIRSTWORD_INFERENCE_PORT", str(port))
    monkeypatch.setenv("FIRSTWORD_TONE_MS_PER_CHAR", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return f"ws://127.0.0.1:{port}/invocations-bidirectional-stream"


def measure(url: str, *words: str, start: str = START) -> int:
    few = ["--step-s", "0.2", "--most-sessions", "2", "--start", start]
    return main(["capacity", "--upstream", url, *few, *words])


def told(capsys: Capture) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_container_is_started_measured_and_planned_for(
    url: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A machine that is busy with other things must not make a listener fall silent.
    monkeypatch.setenv("FIRSTWORD_TONE_MS_PER_CHAR", "5")
    assert measure(url, "--slo", "10", "--json", *DEMAND) == 0
    start, one, two, answer, planned = told(capsys)
    assert start["total_s"] > 0
    assert [each["step"]["sessions"] for each in (one, two)] == [1, 2]
    assert all(each["step"]["turns"] >= 20 for each in (one, two))
    assert answer == {"q_max": 2, "bounded": False}
    assert planned["plan"]["per_instance"] == 2
    assert planned["plan"]["context"]["max_instances"] == "6"


def test_one_that_is_too_slow_for_anybody_gets_no_plan(
    url: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTWORD_TONE_LATENCY_MS", "60")
    assert measure(url, "--slo", "0.05", *DEMAND) == 1
    shown = capsys.readouterr()
    assert "Q_max: 0 sessions" in shown.out
    assert "not even one session" in shown.err


def test_one_that_never_speaks_is_told_with_its_reason(url: str, capsys: Capture) -> None:
    assert main(["capacity", "--upstream", url]) == 1  # nobody listens there
    assert "firstword: " in capsys.readouterr().err
    assert measure(url, start="false") == 1
    assert "ended with status 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ("/nope --fast", "--start: '/nope' cannot be started (No such file or directory)"),
        ("/", "--start: '/' cannot be started (Permission denied)"),
        ("run 'it", '--start "run \'it" cannot be read (No closing quotation)'),
        (" ", "--start names no program"),
    ],
)
def test_a_backend_that_cannot_be_started_is_told_in_one_line(
    url: str, capsys: Capture, start: str, why: str
) -> None:
    assert measure(url, start=start) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"firstword: {why}")


def test_the_container_of_the_firstword_up_here_is_found(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("FIRSTWORD_UPSTREAM", raising=False)
    run = runfile.Run("redis://127.0.0.1:1", os.getpid(), {"inference": "127.0.0.1:2"})
    with runfile.published(run, os.environ):
        assert main(["capacity"]) == 1
    assert "ws://127.0.0.1:2/invocations-bidirectional-stream" in capsys.readouterr().err


def test_a_known_capacity_is_planned_for_at_once(capsys: Capture) -> None:
    known = ["capacity", "--q-max", "24", "--total-s", "320", "--peak", "200", "--growth", "6"]
    assert main([*known, "--speaking", "0.5", "--least", "2"]) == 0
    shown = capsys.readouterr().out
    assert "-c target_sessions=32 -c scale_in_sessions=16 -c min_instances=2" in shown
    assert "One instance carries 48 open sessions" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--peak", "10"], "both --peak and --growth"),
        (["--q-max", "8"], "nothing to measure"),
        (DEMAND, "until another instance serves"),
        (["--q-max", "8", "--start", "true", *DEMAND], "until another instance serves"),
        (["--total-s", "-1", *DEMAND], "more than 0"),
        (["--total-s", "300", *DEMAND, "--speaking", "2"], "share"),
        (["--slo", "60"], "0.01 to 10"),
        (["--upstream", "gopher://hole"], "must begin with"),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    words: list[str], says: str, capsys: Capture
) -> None:
    assert main(["capacity", *words]) == 1
    assert says in capsys.readouterr().err
