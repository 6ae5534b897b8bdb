"""Child processes that die with us, however we die.

`subprocess` leaves a child running when its parent is killed. `ChildProcess` does not; how, is told
in `_exec_tied.py`. On Linux the kernel ties a child to the *thread* that started it, so each child
gets a thread of its own, which starts it, waits for it and ends with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_LAUNCHER = str(Path(__file__).with_name("_exec_tied.py"))
_LINUX = sys.platform.startswith("linux")


class ChildProcess:
    """A running command whose life ends with this process's at the latest.

    `command[0]` is the path of the program (PATH is not searched). The child is in a session of
    its own: Ctrl-C in a terminal does not reach it, its owner decides when it stops. Raises
    `OSError` when no process can be made; a program that cannot be run shows as exit status 1 and
    a line on the child's standard error. `watchdog` picks the means that works where the kernel
    cannot tie processes; leave it alone outside tests.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        watchdog: bool = not _LINUX,
    ) -> None:
        self._ended = threading.Event()
        started = threading.Event()
        failure: list[BaseException] = []

        def start(pipe: int) -> subprocess.Popen[bytes]:
            launcher = [sys.executable, "-I", "-S", _LAUNCHER, str(os.getpid()), str(pipe)]
            return subprocess.Popen(  # noqa: S603
                [*launcher, *command],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=env,
                cwd=cwd,
                pass_fds=(pipe,) if pipe >= 0 else (),
                start_new_session=True,
            )

        def keep() -> None:
            pipe, our_end = os.pipe() if watchdog else (-1, -1)
            try:
                self._process = start(pipe)
            except BaseException as error:  # handed to the thread that waits for us below
                failure.append(error)
            finally:
                if watchdog:
                    os.close(pipe)
                started.set()
            if not failure:
                self._process.wait()
                self._ended.set()
            if watchdog:
                os.close(our_end)

        threading.Thread(target=keep, name=f"child {Path(command[0]).name}", daemon=True).start()
        started.wait()
        if failure:
            raise failure[0]

    @property
    def pid(self) -> int:
        """The command's process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, -N after death by signal N, None while it runs."""
        return self._process.returncode if self._ended.is_set() else None

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the end, at most `timeout_s` seconds: the exit status, None if it still runs."""
        self._ended.wait(timeout_s)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal; nothing happens when the command has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.send_signal(signal.SIGKILL)
        self._ended.wait()

    def stop(self, grace_s: float) -> None:
        """Ask it to end (SIGTERM), and kill it when it has not within `grace_s` seconds."""
        self.send_signal(signal.SIGTERM)
        self.send_signal(signal.SIGCONT)  # a stopped process would never see the request
        if self.wait(grace_s) is None:
            self.kill()
