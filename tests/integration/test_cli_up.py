"""`firstword up` with a server of its own and one small service: what becomes of a dead server."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from blockbuster import BlockBuster
from redis.asyncio import Redis

from firstword import runfile
from firstword.cli import stack, up
from firstword.cli.console import Console
from firstword.embedded import EmbeddedServer, EmbeddedServerError
from firstword.errors import FirstwordError
from firstword.supervisor import Service, Supervisor, Tell
from tests.command import firstword
from tests.support import eventually

_AGENT = """
import http.server, json, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
address = "127.0.0.1:%d" % server.server_port
print(json.dumps({"event": "ready", "http": address, "pid": os.getpid()}), flush=True)
server.serve_forever()
"""


@dataclass(frozen=True, slots=True)
class Up:
    """A running `firstword up`, and what it says."""

    environ: dict[str, str]
    task: asyncio.Task[int]
    err: io.StringIO
    console: Console

    async def kill_server(self) -> int:
        """kill -9; returns the process id it had."""
        pid = await self.server_pid()
        os.kill(pid, signal.SIGKILL)
        return pid

    async def server_pid(self) -> int:
        run = await asyncio.to_thread(runfile.find, self.environ)
        assert run is not None
        async with Redis.from_url(run.url) as link:
            return int((await link.info("server"))["process_id"])


@pytest.fixture
async def running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_blocking_calls: BlockBuster
) -> AsyncIterator[Up]:
    no_blocking_calls.deactivate()  # a command may look at a small file when it starts and ends

    def one_service(
        _url: str,
        environ: dict[str, str],
        *,
        log_dir: Path,
        tell: Tell,
        ports: dict[str, int],
        upstream: str,
    ) -> Supervisor:
        assert upstream == "websocket"
        assert ports == {"inference": 8080, "tts_gateway": 9102, "segmenter": 7, "agent": 1}
        agent = Service("agent", (sys.executable, "-c", _AGENT))
        return Supervisor([agent], environ, log_dir, tell)

    monkeypatch.setattr(stack, "supervisor", one_service)
    environ = {**os.environ, "FIRSTWORD_REDIS_URL": "", "XDG_RUNTIME_DIR": str(tmp_path)}
    environ |= {"FIRSTWORD_SEGMENTER_PORT": "7", "FIRSTWORD_GATEWAY_PORT": ""}
    environ |= {"FIRSTWORD_AGENT_PORT": "9"}  # the option wins
    environ.pop("FIRSTWORD_INFERENCE_PORT", None)
    err = io.StringIO()
    options = argparse.Namespace(
        port=None, agent_port=1, log_dir=tmp_path / "logs", upstream="websocket"
    )
    console = Console(io.StringIO(), err)
    task = asyncio.create_task(up.command(options, console, environ))
    try:
        await eventually(
            lambda: task.done() or runfile.path(environ).exists(), "everything is up", 20
        )
        yield Up(environ, task, err, console)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, FirstwordError):
            await task
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)


async def test_a_server_that_dies_is_started_again_on_its_port(running: Up) -> None:
    before = await running.kill_server()
    await eventually(lambda: running.err.getvalue().count("server       ready on") == 2, "again")
    assert "server       ended: starting it again" in running.err.getvalue()
    assert await running.server_pid() != before
    assert not running.task.done()


async def test_a_server_that_cannot_be_started_again_ends_it(
    running: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_server: EmbeddedServer) -> None:
        raise EmbeddedServerError("server_failed", "another process has taken port 7")

    monkeypatch.setattr(EmbeddedServer, "restart", fail)
    await running.kill_server()
    with pytest.raises(FirstwordError, match="cannot be started again: another process has taken"):
        await asyncio.wait_for(asyncio.shield(running.task), 20)
    assert not runfile.path(running.environ).exists()


async def test_it_can_be_stopped_when_nobody_reads_what_it_says(
    running: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`firstword up 2>&1 | head`, for example."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        monkeypatch.setattr(running.console, "_err", gone)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(running.task), 20)
    assert not runfile.path(running.environ).exists()


async def test_a_server_that_is_not_there_is_told_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstword.server_errors.PATIENCE_S", 0.0)
    environ = {"FIRSTWORD_REDIS_URL": "redis://127.0.0.1:1", "XDG_RUNTIME_DIR": str(tmp_path)}
    options = argparse.Namespace(
        port=None, agent_port=1, log_dir=tmp_path / "logs", upstream="websocket"
    )
    with pytest.raises(FirstwordError, match=r"no Redis server answers at redis://127\.0\.0\.1:1"):
        await up.command(options, Console(io.StringIO(), io.StringIO()), environ)
    assert not list((tmp_path / "logs").iterdir())


async def test_a_server_that_does_not_answer_at_once_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack, "_SILENCE_S", 0.0)
    monkeypatch.setattr("firstword.server_errors.PATIENCE_S", 0.3)
    said = io.StringIO()
    environ = {"FIRSTWORD_REDIS_URL": "redis://me:secret@127.0.0.1:1"}
    options = argparse.Namespace(port=None, agent_port=1, log_dir=tmp_path, upstream="websocket")
    with pytest.raises(FirstwordError, match="no Redis server answers"):
        await up.command(options, Console(io.StringIO(), said), environ)
    assert "server       redis://127.0.0.1:1 does not answer yet: trying for" in said.getvalue()


async def test_a_folder_that_cannot_be_is_told_before_a_server_is_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder, said = tmp_path / "file" / "logs", io.StringIO()
    options = argparse.Namespace(port=None, agent_port=1, log_dir=folder, upstream="websocket")
    with pytest.raises(FirstwordError, match=rf"cannot make the folder {folder} for logs"):
        await up.command(options, Console(io.StringIO(), said), {"XDG_RUNTIME_DIR": str(tmp_path)})
    assert said.getvalue() == "Starting Firstword. Ctrl-C stops it.\n"


async def test_a_second_one_is_refused_while_the_first_starts(
    tmp_path: Path, no_blocking_calls: BlockBuster
) -> None:
    no_blocking_calls.deactivate()  # the claim is a call of a command that has no loop yet
    environ = {"XDG_RUNTIME_DIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    with runfile.claimed(environ):
        said = await firstword("up", url=None, folder=tmp_path, environ=environ)
    assert (said.status, said.out) == (1, b"")
    assert "another `firstword up` is starting or stopping here" in said.err
    assert len(said.err.splitlines()) == 1
    assert not (tmp_path / "state").exists(), "it touched no log of the first"


async def test_python_can_run_the_package(tmp_path: Path) -> None:
    said = await firstword("version", url=None, folder=tmp_path, module="firstword")
    assert (said.status, said.out.startswith(b"firstword 0.")) == (0, True)
