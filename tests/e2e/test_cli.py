"""The command line on the real path, and the README by its word."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
import wave
from pathlib import Path

import pytest

from firstword.comparison import LEGS
from firstword.listener import Event
from firstword.messages import TurnDone
from tests.command import firstword
from tests.e2e.stack import Stack

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TEXT = "The first sentence is short. The second one takes its time to be written."


async def test_say_compares_streaming_with_waiting(stack: Stack, tmp_path: Path) -> None:
    words = ("say", TEXT, "--compare", "--json", "--tokens-per-second", "20")
    ended = await firstword(*words, url=stack.redis_url, folder=tmp_path)
    assert (ended.status, ended.err) == (0, "The audio is in say.wav.\n")
    report = json.loads(ended.out)
    batch, stream = report["runs"]
    assert (batch["mode"], stream["mode"]) == ("batch", "stream")
    assert [row["text"].strip() for row in stream["segments"]] == [TEXT[:28], TEXT[29:]]
    assert batch["ttfa_ms"] >= batch["text_ms"], "batch mode waits for the whole text"
    assert stream["ttfa_ms"] < stream["text_ms"], "streaming speaks while the text is written"
    assert report["ratio"] > 1
    with wave.open(str(tmp_path / "say.wav"), "rb") as file:
        assert file.getnframes() / file.getframerate() == round(stream["audio_s"], 6)


async def test_both_modes_play_one_recording_back_as_often_as_asked(
    stack: Stack, tmp_path: Path
) -> None:
    words = ("say", "--passage", "short", "--compare", "--trials", "2", "--json")
    pace = ("--tokens-per-second", "100")
    ended = await firstword(*words, *pace, url=stack.redis_url, folder=tmp_path)
    assert ended.status == 0, ended.err
    report = json.loads(ended.out)
    assert [run["mode"] for run in report["runs"]] == ["batch", "stream", "batch", "stream"]
    trace_ms = report["trace_ms"]
    assert trace_ms[0] == 0 and trace_ms == sorted(trace_ms)
    for run in report["runs"]:
        assert run["tokens"] == len(trace_ms)
        if run["mode"] == "batch":  # in the other, the server's clock may see the first token late
            assert run["text_ms"] >= trace_ms[-1] - 0.2, "but for rounding"
    for found in report["first_audio"].values():
        assert found["n"] == 2
        assert sum(found[leg]["mean"] for leg in LEGS) == pytest.approx(
            found["ttfa"]["mean"], abs=1
        )
    assert (report["goal"], report["endpoint"]) == (2.4, stack.redis_url)


async def test_say_draws_the_waterfall(stack: Stack, tmp_path: Path) -> None:
    words = ("say", "-", "--out", "-", "--tokens-per-second", "0")
    ended = await firstword(
        *words, url=stack.redis_url, folder=tmp_path, stdin=b"From a pipe. To a pipe."
    )
    assert ended.status == 0
    assert len(ended.out) > 0
    assert ended.err.startswith("stream: each sentence is spoken while the next is being written")
    assert re.search(r"^ +1 .* From a pipe\.$", ended.err, re.MULTILINE)
    assert "needed" in ended.err


async def test_say_tells_what_could_not_be_spoken(stack: Stack, tmp_path: Path) -> None:
    words = ("say", "Hello there.", "--voice", "xx_nobody")
    ended = await firstword(*words, url=stack.redis_url, folder=tmp_path)
    assert ended.status == 1
    assert "NOT SPOKEN: segment 1: " in ended.out.decode()
    assert "The audio is in" not in ended.err


# -- the README -----------------------------------------------------------------------------------


def python_block(marker: str) -> str:
    """The README's Python example that holds `marker`."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    found: list[str] = [block for block in blocks if marker in block]
    return found[0]


async def run_example(code: str, stack: Stack) -> bytes:
    """Run an example as a program; returns what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        stdout=asyncio.subprocess.PIPE,
        env={"FIRSTWORD_REDIS_URL": stack.redis_url},
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    assert process.returncode == 0
    return out


async def first_turn(stack: Stack) -> TurnDone:
    events = stack.firstword.session("demo").listen(from_id="0")

    async def end() -> Event:
        async for event in events:
            if isinstance(event.message, TurnDone):
                return event
        raise AssertionError("the session was closed")

    async with asyncio.timeout(60):
        done = (await end()).message
    assert isinstance(done, TurnDone)
    return done


async def test_the_python_examples_speak_and_listen(stack: Stack) -> None:
    publisher, listener = python_block("session.stream"), python_block('session("demo").listen')
    assert await run_example(publisher, stack) == b""
    pcm = await run_example(listener, stack)
    done = await first_turn(stack)
    assert (done.segments, done.reason) == (2, "complete")
    assert len(pcm) == 2 * done.samples > 0


async def test_the_shell_line_speaks(stack: Stack, tmp_path: Path) -> None:
    line = next(line for line in README.splitlines() if "firstword redis XADD" in line)
    ended = await firstword(*shlex.split(line)[1:], url=stack.redis_url, folder=tmp_path)
    assert ended.status == 0
    done = await first_turn(stack)
    assert (done.segments, done.reason) == (2, "complete")
    assert done.samples > 0
