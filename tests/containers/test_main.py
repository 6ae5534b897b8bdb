"""The run on servers in Docker: what it does where there is no Docker."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.containers.__main__ import answers


def test_without_an_engine_it_is_skipped_with_a_reason() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.containers"],
        env={**os.environ, "DOCKER_HOST": "unix:///nowhere/docker.sock"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert "skipped: no Docker engine answers" in ended.stdout


def test_a_server_is_waited_for_until_it_answers(redis_url: str) -> None:
    assert answers(redis_url)
    assert not answers("redis://127.0.0.1:1")
