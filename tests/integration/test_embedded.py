"""The embedded server as a process: it answers, it comes back, it never outlives its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from firstword import embedded
from firstword.embedded import EmbeddedServer, EmbeddedServerError
from tests.support import eventually_sync

MakeServer = Callable[..., EmbeddedServer]


def client(server: EmbeddedServer) -> redis.Redis:
    return redis.Redis.from_url(server.url, decode_responses=True)


def answers(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


def test_it_answers_and_goes_with_everything_it_made(make_server: MakeServer) -> None:
    server = make_server(max_memory_bytes=50_000_000)
    with client(server) as link:
        assert link.info()["process_id"] == server.pid
        assert link.config_get("maxmemory") == {"maxmemory": "50000000"}
        directory = Path(link.config_get("dir")["dir"])
    assert directory.is_dir()
    server.stop()
    assert not server.running
    assert not answers(server.port)
    assert not directory.exists()


async def test_it_is_an_async_context_manager_too() -> None:
    async with EmbeddedServer() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"PING\r\n")
        assert await reader.readline() == b"+PONG\r\n"
        writer.close()
        await writer.wait_closed()
    assert not server.running


def test_starting_twice_is_starting_once(make_server: MakeServer) -> None:
    server = make_server()
    pid = server.pid
    assert server.start() is server
    assert server.pid == pid


def test_it_dies_with_its_parent_even_by_kill_9(tmp_path: Path) -> None:
    parent_script = textwrap.dedent("""
        import sys, threading
        from firstword.embedded import EmbeddedServer

        server = EmbeddedServer()
        thread = threading.Thread(target=server.start)  # as asyncio.to_thread does
        thread.start()
        thread.join()
        print(server.port, flush=True)
        sys.stdin.readline()
    """)
    with subprocess.Popen(
        [sys.executable, "-c", parent_script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},  # nobody is left to remove its directory
    ) as parent:
        assert parent.stdout
        port = int(parent.stdout.readline())
        assert answers(port)
        parent.kill()
    eventually_sync(lambda: not answers(port), "the server of the killed process is gone")


def test_the_preferred_port_is_taken_when_free(make_server: MakeServer) -> None:
    first = make_server()
    port = first.port
    second = make_server(preferred_port=port)
    assert second.port != port
    first.stop()
    second.stop()
    assert make_server(preferred_port=port).port == port


def test_a_port_lost_in_the_last_moment_is_no_failure(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_server()
    monkeypatch.setattr(embedded, "_answers", lambda port: False)  # as if it were still free
    second = make_server(preferred_port=first.port)
    assert second.port != first.port
    with client(first) as one, client(second) as two:
        assert (one.info()["process_id"], two.info()["process_id"]) == (first.pid, second.pid)


def test_after_kill_and_restart_it_is_on_the_same_port_and_empty(make_server: MakeServer) -> None:
    server = make_server()
    port, pid = server.port, server.pid
    with client(server) as link:
        link.set("key", "value")
    server.kill()
    assert not server.running
    assert not answers(port)
    server.restart()
    assert (server.port, server.running) == (port, True)
    assert server.pid != pid
    with client(server) as link:
        assert link.get("key") is None


def test_append_only_data_outlives_a_crash(make_server: MakeServer) -> None:
    server = make_server()
    server.restart(append_only=True, extra_args=["--appendfsync", "always"])
    with client(server) as link:
        link.set("key", "value")
    server.restart()  # what was asked for above still holds
    with client(server) as link:
        assert link.get("key") == "value"
        assert link.config_get("appendfsync") == {"appendfsync": "always"}


def test_its_port_taken_while_it_was_down_is_an_error(make_server: MakeServer) -> None:
    server = make_server()
    port = server.port
    server.kill()
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(EmbeddedServerError, match=f"taken port {port}") as raised:
            server.restart()
        assert raised.value.retryable
    assert not server.running


def test_a_stopped_server_can_be_stopped(make_server: MakeServer) -> None:
    server = make_server()
    os.kill(server.pid, signal.SIGSTOP)
    server.stop()
    assert not server.running


def test_a_server_that_does_not_start_tells_its_own_words() -> None:
    server = EmbeddedServer(extra_args=["--no-such-setting", "1"])
    with pytest.raises(EmbeddedServerError, match="no-such-setting") as raised:
        server.start()
    assert raised.value.code == "server_failed"
    assert not server.running


def test_a_binary_that_is_none_says_so(tmp_path: Path) -> None:
    program = str(tmp_path / "valkey-server")
    with pytest.raises(EmbeddedServerError, match=f"cannot run {program}"):
        EmbeddedServer(binary=program).start()


def test_it_is_silent(capfd: pytest.CaptureFixture[str], make_server: MakeServer) -> None:
    make_server().restart()
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_stalled_reader_is_cut_off_whatever_the_size_of_the_replies(
    make_server: MakeServer,
) -> None:
    """Without the set-up command in `embedded`, Valkey 9.1 buffers such replies without end."""
    limit = ("--client-output-buffer-limit", "pubsub 4mb 2mb 5")
    server = make_server(extra_args=limit)
    with client(server) as publisher, socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(b"SUBSCRIBE channel\r\n")
        assert slow.recv(100).startswith(b"*3\r\n")
        payload = "x" * 48_000
        subscribers = [publisher.publish("channel", payload) for _ in range(600)]
    assert subscribers[0] == 1
    assert subscribers[-1] == 0
