"""What a service process says: every line of it is one JSON object, and none holds a text."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import pytest

TEXT = "what a customer said"
"""Stands in every message here, and may stand in no line."""

BEGIN = f"""
import asyncio, logging, sys, threading, warnings
from firstword import telemetry
from firstword.runtime import run

TEXT = {TEXT!r}

def fail():
    raise ValueError(TEXT)

async def failing():
    fail()
"""
TALK = """
async def main(stop):
    telemetry.logger().info("began", session="s")
    library = logging.getLogger("some.library")
    library.warning("a warning\\nof two lines, %d of them", 2)
    library.info("as it is")
    library.debug("on the line: " + TEXT)
    try:
        fail()
    except ValueError:
        library.exception("it quotes: " + TEXT)
        telemetry.logger().error("ours", exc_info=True)
    library.warning("%d", TEXT)  # it cannot be put into words
    logging.getLogger("phonemizer").warning("words count mismatch on 100% of the lines")
    logging.getLogger("aiohttp.access").info("GET /")
    warnings.warn("somebody is warned", stacklevel=1)
    print(TEXT)
    print(TEXT, file=sys.stderr)
    thread = threading.Thread(target=fail, name="a-thread")
    thread.start()
    thread.join()
    asyncio.get_running_loop().call_soon(fail)
    asyncio.create_task(failing())
    await asyncio.sleep(0.01)  # the task is gone, and nobody asked how it ended

run("talk", main)
"""
CRASH = """
async def main(stop):
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(failing())

run("crash", main)
"""


async def said(script: str, **environ: str) -> tuple[int | None, list[dict[str, Any]]]:
    """Exit status and lines of a process that runs this."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", BEGIN + script),
        env={**os.environ, **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert TEXT not in out.decode()
    lines = [json.loads(line) for line in out.splitlines()]
    assert all(type(line) is dict for line in lines)
    return process.returncode, lines


async def test_every_line_is_a_json_object_with_its_time_and_service() -> None:
    status, lines = await said(TALK)
    assert status == 0
    for line in lines:
        assert line["service"] == "talk"
        assert line["timestamp"].endswith("Z")
        assert {"event", "level"} <= set(line)

    def of(event: str) -> list[dict[str, Any]]:
        return [line for line in lines if line["event"] == event]

    assert [line["session"] for line in of("began")] == ["s"]
    heard = {(line["logger"], line["level"], line["said"]) for line in of("library")}
    assert ("some.library", "warning", "a warning") in heard
    assert ("some.library", "info", "as it is") in heard
    assert {logger for logger, _, _ in heard} == {"some.library", "py.warnings"}
    for line in (*of("library_failed"), *of("ours"), *of("uncaught")):
        assert line["error"] == "ValueError"
        assert line["where"].startswith("<string>:")
        assert line["stack"][-1].endswith(" fail")
    assert len(of("library_failed")) == len(of("ours")) == 1
    assert [line["logger"] for line in of("unreadable_record")] == ["some.library"]
    caught_by = [line.get("logger", line.get("thread")) for line in of("uncaught")]
    assert sorted(map(str, caught_by)) == ["a-thread", "asyncio", "asyncio"]
    assert {line["stream"] for line in of("printed")} == {"stdout", "stderr"}


async def test_a_process_that_crashes_says_where_in_its_last_line() -> None:
    status, lines = await said(CRASH)
    assert status == 1
    last = lines[-1]
    assert (last["event"], last["level"]) == ("crashed", "critical")
    assert (last["error"], last["stack"][-1].endswith(" fail")) == ("ValueError", True)


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        ("DEBUG", {"DEBUG", "INFO", "WARNING"}),
        ("info", {"INFO", "WARNING"}),
        ("WARNING", {"WARNING"}),
    ],
)
async def test_the_level_is_that_of_the_environment(level: str, heard: set[str]) -> None:
    script = """
async def main(stop):
    for each in ("debug", "info", "warning"):
        getattr(telemetry.logger(), each)("here")
run("levels", main)
"""
    _, lines = await said(script, FIRSTWORD_LOG_LEVEL=level)
    assert {line["level"].upper() for line in lines} == heard


async def test_a_level_that_is_none_is_told_in_a_sentence() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", BEGIN + "run('levels', None)"),
        env={**os.environ, "FIRSTWORD_LOG_LEVEL": "LOUD"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == 2
    assert err.decode() == (
        "FIRSTWORD_LOG_LEVEL='LOUD': must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL\n"
    )
