"""Common mistakes in starting a service: one line that says which variable, and status 2."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.command import firstword

SERVICES = {
    "services.inference": "INFERENCE",
    "services.segmenter": "SEGMENTER",
    "services.tts_gateway": "GATEWAY",
    "services.agent": "AGENT",
}
WITH_REDIS = [service for service in SERVICES if service != "services.inference"]


async def started(module: str, *argv: str, **environ: str) -> tuple[int | None, str, str]:
    """Exit status, standard output and standard error of a service."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *argv),
        env={**os.environ, **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, out.decode(), err.decode()


async def refused(module: str, *argv: str, **environ: str) -> str:
    """The one line with which it ends."""
    status, out, err = await started(module, *argv, **environ)
    assert status == 2, (out, err)
    assert "crashed" not in out
    [line] = err.splitlines()
    return line


@pytest.fixture
async def taken() -> AsyncIterator[str]:
    """A port that another process listens on."""
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield str(server.sockets[0].getsockname()[1])


@pytest.mark.parametrize("module", [*SERVICES, "services.agent.agentcore"])
async def test_an_argument_that_there_is_not(module: str) -> None:
    line = await refused(module, "--frobnicate")
    assert line.startswith(f"usage: python -m {module} ")
    assert "[--print-settings]: '--frobnicate' is none of these" in line


async def test_words_that_are_taken() -> None:
    status, out, _ = await started("services.inference", "serve", "--print-settings")
    assert status == 0
    assert "FIRSTWORD_INFERENCE_PORT" in {row["variable"] for row in json.loads(out)}
    assert (await refused("services.segmenter", "serve")).endswith("--print-settings lists")
    status, out, err = await started("services.inference", "--help")
    assert (status, err) == (0, "")
    assert out.startswith("usage: python -m services.inference [serve] [--print-settings];")


@pytest.mark.parametrize("module", SERVICES)
async def test_a_port_that_is_taken(module: str, taken: str) -> None:
    variable = f"FIRSTWORD_{SERVICES[module]}_PORT"
    line = await refused(module, **{variable: taken})
    assert line == f"port {taken} of 127.0.0.1 is taken: set {variable} to another, 0 for any"


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("nohost.invalid", "that name leads nowhere"),
        ("a..b", "that name leads nowhere"),
        ("192.0.2.1", "Cannot assign requested address"),
    ],
)
async def test_a_host_that_is_none_of_ours(host: str, why: str) -> None:
    line = await refused("services.inference", FIRSTWORD_INFERENCE_HOST=host)
    assert line == (
        f"cannot listen on '{host}' ({why}): set FIRSTWORD_INFERENCE_HOST to an address of ours"
    )


@pytest.mark.parametrize("module", WITH_REDIS)
async def test_what_is_no_redis_url(module: str) -> None:
    line = await refused(module, FIRSTWORD_REDIS_URL="localhost:6379")
    assert line.startswith(
        "FIRSTWORD_REDIS_URL='localhost:6379': a Redis URL is like redis://host:6379"
    )


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("FIRSTWORD_LOG_LEVEL", "LOUD", "'LOUD': must be one of DEBUG, INFO"),
        ("FIRSTWORD_REDIS_URL", "http://me:secret@x", "'http://x': a Redis URL is like redis://"),
        ("FIRSTWORD_INFERENCE_PORT", "70000", "'70000': must be a port"),
    ],
)
async def test_up_tells_before_it_starts_anything(
    tmp_path: Path, variable: str, value: str, told: str
) -> None:
    environ = {variable: value, "FIRSTWORD_UPSTREEM": "secret"}
    ended = await firstword("up", url=None, folder=tmp_path, environ=environ)
    assert ended.status == 2
    assert "secret" not in ended.err
    note, line = ended.err.splitlines()
    assert note == "firstword: nothing reads FIRSTWORD_UPSTREEM: FIRSTWORD_UPSTREAM?"
    assert line.startswith(f"firstword: {variable}={told}")


async def test_a_misspelt_variable_is_told_once_in_the_log(taken: str) -> None:
    misspelt = {"FIRSTWORD_SEGMENTER_MOED": "secret", "FIRSTWORD_SEGMENTER_PORT": taken}
    status, out, err = await started("services.segmenter", **misspelt)
    assert status == 2  # so that it ends
    assert "secret" not in out + err
    lines = [json.loads(line) for line in out.splitlines()]
    [line] = [line for line in lines if line["event"] == "unknown_variable"]
    assert (line["level"], line["variable"]) == ("warning", "FIRSTWORD_SEGMENTER_MOED")
    assert line["nearest"] == "FIRSTWORD_SEGMENTER_MODE"
