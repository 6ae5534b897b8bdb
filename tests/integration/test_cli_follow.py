"""`firstword publish` and `firstword listen`: the two ends of a session, as processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import wave
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
from redis.asyncio import Redis

from firstword import keys
from firstword import messages as m
from firstword.outbox import NO_MORE
from tests.command import begin, firstword
from tests.doubles.path import SAMPLE_RATE, PathDouble, heard, voice
from tests.support import eventually


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    """Something that speaks what is published."""
    async with PathDouble(redis_url) as double:
        yield double


async def test_what_is_published_is_heard_by_every_listener(
    path: PathDouble, redis_url: str, tmp_path: Path
) -> None:
    words = ("listen", "demo", "--turns", "1", "--from", "0")
    to_file = await begin(*words, "--out", "a.wav", url=redis_url, folder=tmp_path)
    to_pipe = await begin(*words, "--out", "-", url=redis_url, folder=tmp_path)
    published = await firstword(
        *("publish", "demo", "--turn", "t1"),
        url=redis_url,
        folder=tmp_path,
        stdin="One. Two, naïve".encode(),
    )
    assert (published.status, published.out) == (0, b"t1\n")
    assert published.err == "15 characters published to session demo.\n"
    lines, _ = await to_file.communicate()
    pcm, notes = await to_pipe.communicate()
    assert (to_file.returncode, to_pipe.returncode) == (0, 0)
    assert heard(pcm) == "One. Two, naïve"
    with wave.open(str(tmp_path / "a.wav"), "rb") as file:
        assert file.getframerate() == SAMPLE_RATE
        assert file.readframes(file.getnframes()) == pcm
    said = [line.split("  ", 1)[1].strip() for line in lines.decode().splitlines()]
    assert said == [line.split("  ", 1)[1].strip() for line in notes.decode().splitlines()]
    assert said[0] == "turn t1: af_heart, 24000 Hz"
    assert said[1] == "segment 0: One."
    assert said[-1].startswith("turn t1 done (complete): 2 segments, 3600 samples")


async def test_text_is_published_while_it_comes(
    path: PathDouble, redis_url: str, tmp_path: Path
) -> None:
    publishing = await begin("publish", "demo", url=redis_url, folder=tmp_path)
    stdin = publishing.stdin
    assert stdin is not None
    stdin.write(b"First caf\xc3")

    def texts() -> list[str]:
        return [message.text for message in path.of("demo") if isinstance(message, m.Text)]

    await eventually(lambda: texts() == ["First caf"], "the first piece was published alone")
    stdin.write(b"\xa9, then more.\xff")
    out, _ = await publishing.communicate()
    assert publishing.returncode == 0
    await eventually(
        lambda: any(isinstance(message, m.End) for message in path.of("demo")), "the turn ended"
    )
    assert "".join(texts()) == "First café, then more.\ufffd"
    turns = {message.turn for message in path.of("demo") if isinstance(message, m.Text | m.End)}
    assert turns == {out.decode().strip()}


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_publisher_ends_its_turn(
    path: PathDouble, redis_url: str, tmp_path: Path, end: signal.Signals
) -> None:
    """One that stays open would keep the next turn of the session waiting."""
    publishing = await begin("publish", "demo", "--turn", "t1", url=redis_url, folder=tmp_path)
    assert publishing.stdin is not None
    publishing.stdin.write(b"Half a sen")
    await eventually(
        lambda: any(isinstance(message, m.Text) for message in path.of("demo")), "it is published"
    )
    publishing.send_signal(end)
    await publishing.wait()  # its input is still open
    out, err = await publishing.communicate()
    assert (publishing.returncode, out, err) == (128 + end, b"", b"")
    await eventually(
        lambda: [x.turn for x in path.of("demo") if isinstance(x, m.End)] == ["t1"], "it is ended"
    )


async def test_nothing_to_publish_is_told(redis_url: str, tmp_path: Path) -> None:
    ended = await firstword("publish", "demo", url=redis_url, folder=tmp_path)
    assert ended.status == 1
    assert ended.err.startswith("firstword: standard input is empty")


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ({"finished": ["t0", "t1"]}, 1),
        ({"taken": {"t1": NO_MORE}}, 1),
        ({"taken": {"t1": 1}}, 0),
        ({"finished": ["t0"]}, 0),
    ],
)
async def test_a_turn_that_is_over_takes_no_more(
    state: dict[str, Any], status: int, redis_url: str, tmp_path: Path
) -> None:
    async with Redis.from_url(redis_url) as link:
        fields: dict[Any, Any] = {name: msgpack.packb(it) for name, it in state.items()}
        await link.hset(keys.text_state("demo"), mapping=fields)
    words = ("publish", "demo", "--turn", "t1")
    ended = await firstword(*words, url=redis_url, folder=tmp_path, stdin=b"Hi.")
    assert ended.status == status
    assert ("turn t1 of session demo is over" in ended.err) == bool(status)


async def test_events_for_programs_until_the_session_is_closed(
    path: PathDouble, redis_url: str, tmp_path: Path
) -> None:
    await firstword("publish", "demo", url=redis_url, folder=tmp_path, stdin=b"Hi.")
    listening = await begin(
        "listen", "demo", "--json", "--from", "0", url=redis_url, folder=tmp_path
    )
    close = ("redis", "XADD", "fw:text", "*", "session", "demo", "close", "1")
    assert (await firstword(*close, url=redis_url, folder=tmp_path)).status == 0
    out, err = await listening.communicate()
    assert (listening.returncode, err) == (0, b"")
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds == [
        "turn_started",
        "segment_started",
        "audio",
        "segment_done",
        "turn_done",
        "closed",
    ]
    assert events[2]["bytes"] == len(voice("Hi."))


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_listener_leaves_a_whole_file(
    path: PathDouble, redis_url: str, tmp_path: Path, end: signal.Signals
) -> None:
    words = ("listen", "demo", "--from", "0", "--out", "a.wav")
    listening = await begin(*words, url=redis_url, folder=tmp_path)
    await firstword("publish", "demo", url=redis_url, folder=tmp_path, stdin=b"Hi. Ho.")
    assert listening.stdout is not None
    async for line in listening.stdout:
        if b"done (complete)" in line:
            break
    listening.send_signal(end)
    await listening.wait()
    assert listening.returncode == (0 if end is signal.SIGINT else 128 + signal.SIGTERM)
    with wave.open(str(tmp_path / "a.wav"), "rb") as file:
        assert heard(file.readframes(file.getnframes())) == "Hi. Ho."


async def test_a_reader_that_has_enough_ends_the_listener_quietly(
    path: PathDouble, redis_url: str, tmp_path: Path
) -> None:
    await firstword("publish", "demo", url=redis_url, folder=tmp_path, stdin=b"Hi. Ho.")
    listening = await begin("listen", "demo", "--from", "0", url=redis_url, folder=tmp_path)
    assert listening.stdout is not None
    transport = listening.stdout._transport  # type: ignore[attr-defined]
    await listening.stdout.readline()
    transport.close()
    await firstword("publish", "demo", url=redis_url, folder=tmp_path, stdin=b"More.")
    assert listening.stderr is not None
    assert await listening.stderr.read() == b""
    async with asyncio.timeout(30):
        assert await listening.wait() == 1


async def test_a_position_that_never_was_is_told(redis_url: str, tmp_path: Path) -> None:
    words = ("listen", "demo", "--from", "99999999999999-0")
    ended = await firstword(*words, url=redis_url, folder=tmp_path)
    assert ended.status == 1
    assert ended.err.startswith("firstword: session demo has no event 99999999999999-0: ")
    ended = await firstword("listen", "demo", "--from", "now", url=redis_url, folder=tmp_path)
    assert (ended.status, "is no entry id" in ended.err) == (1, True)


@pytest.mark.parametrize("out", [("--out", "/dev/full"), ("--out", "-")])
async def test_a_full_disk_is_one_line(
    out: tuple[str, ...], path: PathDouble, redis_url: str, tmp_path: Path
) -> None:
    await firstword("publish", "demo", url=redis_url, folder=tmp_path, stdin=b"Hi. Ho.")
    words = ("listen", "demo", "--from", "0", *out)
    full = os.open("/dev/full", os.O_WRONLY)
    listening = await begin(*words, url=redis_url, folder=tmp_path, stdout=full)
    os.close(full)
    _, err = await listening.communicate()
    last = err.decode().splitlines()[-1]
    assert listening.returncode == 1
    assert (last.startswith("firstword: "), "No space left" in last) == (True, True)
    assert "Traceback" not in err.decode()
