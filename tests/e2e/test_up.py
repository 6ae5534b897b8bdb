"""`firstword up` and `say` with all processes and the real model, as a person runs them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import wave
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from firstword import runfile
from firstword.cli.speak import DEMO_TEXT
from tests.command import begin, firstword
from tests.doubles.ears import share_recognised
from tests.doubles.sagemaker import MISSING as SDK_MISSING
from tests.support import eventually

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]
"""Processes that load the real model: on a busy machine they take minutes."""


class Home:
    """Folders of a user of its own, so that nothing else that runs here is found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            "XDG_RUNTIME_DIR": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "TMPDIR": str(folder),
            # Others run `up` at the same time, with the same favourite ports.
            **{f"FIRSTWORD_{each}_PORT": "0" for each in ("INFERENCE", "SEGMENTER", "GATEWAY")},
        }

    def pids(self) -> dict[str, int]:
        """Service -> process id of its last start, from its log."""
        found = {}
        for log in (self.folder / "state/firstword/logs").glob("*.log"):
            for line in log.read_text().splitlines():
                fields = json.loads(line)
                if fields["event"] == "ready":
                    found[log.stem] = fields["pid"]
        return found

    async def running(self) -> runfile.Run | None:
        """What a command here would find."""
        return await asyncio.to_thread(runfile.find, self.environ)

    async def run(self, *words: str) -> tuple[int | None, str, str]:
        ended = await firstword(*words, url=None, folder=self.folder, environ=self.environ)
        return ended.status, ended.out.decode(), ended.err


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def read_until(stream: asyncio.StreamReader | None, what: str) -> str:
    """Lines up to and with the first that holds `what`."""
    assert stream is not None
    said = ""
    async with asyncio.timeout(100):
        async for line in stream:
            said += line.decode()
            if what in said.splitlines()[-1]:
                return said
    raise AssertionError(f"it ended without saying {what!r}: {said}")


async def test_up_runs_restarts_and_stops_everything(home: Home) -> None:
    up = await begin("up", url=None, folder=home.folder, environ=home.environ)
    try:
        await read_until(up.stderr, "Starting Firstword.")
        status, _, err = await home.run("up")
        assert status == 1
        assert re.search("`firstword up` is starting|already runs here", err)
        said = await read_until(up.stdout, "listen demo")
        run = await home.running()
        assert run is not None
        assert run.url in said
        assert f"http://{run.services['agent']}/" in said
        assert set(run.services) == {"inference", "tts_gateway", "segmenter", "agent"}

        status, out, _ = await home.run("redis", "PING")
        assert (status, out) == (0, "PONG\n")
        status, _, err = await home.run("up")
        assert status == 1
        assert f"already runs here as process {up.pid}" in err

        await read_until(up.stderr, "tts_gateway  ready")
        os.kill(home.pids()["tts_gateway"], signal.SIGKILL)
        await read_until(up.stderr, "tts_gateway  ended (signal SIGKILL)")
        await read_until(up.stderr, f"tts_gateway  ready on {run.services['tts_gateway']}")
        status, out, _ = await home.run("say", "It works again.")
        assert (status, "It works again." in out) == (0, True)
        with wave.open(str(home.folder / "say.wav"), "rb") as file:
            assert file.getnframes() > 0.5 * file.getframerate()

        pids = home.pids()
        up.send_signal(signal.SIGINT)
        await read_until(up.stderr, "Firstword has stopped.")
        assert await up.wait() == 0
        assert not any(alive(pid) for pid in pids.values())
        assert await home.running() is None
        port = int(run.url.rpartition(":")[2].partition("/")[0])
        with socket.socket() as link:
            assert link.connect_ex(("127.0.0.1", port)) != 0
    finally:
        if up.returncode is None:
            up.kill()
            await up.communicate()


async def test_killed_up_leaves_no_process(home: Home) -> None:
    up = await begin("up", url=None, folder=home.folder, environ=home.environ)
    await read_until(up.stdout, "Firstword is up.")
    pids = home.pids()
    assert len(pids) == 4
    up.kill()
    await up.communicate()
    await eventually(
        lambda: not any(alive(pid) for pid in pids.values()), "the services died with it", 20
    )
    status, _, err = await home.run("redis", "PING")
    assert status == 1
    assert "start one with `firstword up`" in err


async def test_say_brings_what_it_needs_and_takes_it_away(home: Home) -> None:
    status, out, err = await home.run("say", "All by myself.", "--tokens-per-second", "0")
    assert (status, err) == (0, "The audio is in say.wav.\n")
    assert "All by myself." in out
    left = {path.name for path in home.folder.iterdir()}
    assert left == {"say.wav"}, "no logs, no server's folder"


async def test_the_demo_speaks_a_paragraph_that_is_understood(home: Home) -> None:
    status, out, err = await home.run("demo")
    assert status == 0
    assert "ready on" in err
    assert err.endswith("The audio is in demo.wav.\n")
    assert re.search(r"^  ms +stream +batch$", out, re.MULTILINE)
    assert re.search(r"^  first audio +\d+ +\d+$", out, re.MULTILINE)
    assert "Streaming spoke" in out
    with wave.open(str(home.folder / "demo.wav"), "rb") as file:
        rate, pcm = file.getframerate(), file.readframes(file.getnframes())
    samples = np.abs(np.frombuffer(pcm, "<i2").astype(np.int32))
    # This voice reads about 18 characters a second.
    assert len(samples) / rate == pytest.approx(len(DEMO_TEXT) / 18, rel=0.2)
    assert np.sqrt(np.mean(samples.astype(float) ** 2)) > 300, "it is not silence"
    assert np.count_nonzero(samples >= 32_767) < 10, "it is not clipped"
    quiet = max(len(list(run)) for loud, run in groupby(samples > 100) if not loud)
    assert quiet < rate, "no gap of a second"
    assert await asyncio.to_thread(share_recognised, DEMO_TEXT, pcm, rate) >= 0.8


async def test_the_demo_speaks_the_same_as_behind_a_sagemaker_endpoint(home: Home) -> None:
    """By AWS's own client, HTTP/2, signed events and the emulator; needs Python 3.12."""
    if SDK_MISSING:
        pytest.skip(SDK_MISSING)
    status, out, err = await home.run("demo", "--upstream", "sagemaker")
    assert status == 0, err
    assert re.search(r"^  sagemaker    ready on localhost:\d+", err, re.MULTILINE)
    assert "Streaming spoke" in out
    with wave.open(str(home.folder / "demo.wav"), "rb") as file:
        rate, samples = file.getframerate(), file.getnframes()
    assert samples / rate == pytest.approx(len(DEMO_TEXT) / 18, rel=0.2)
    assert {path.name for path in home.folder.iterdir()} == {"demo.wav"}
