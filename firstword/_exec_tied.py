"""Runs a command that cannot outlive the process that asked for it.

Not for import: `firstword.child` runs this file as a script, in a new process, as

    python -I -S _exec_tied.py PARENT_PID WATCH_FD COMMAND ARG…

The process becomes COMMAND (same process id), with its death tied to PARENT_PID's, even by
SIGKILL. Two ways:

* Linux (WATCH_FD is negative): the kernel is asked to kill us with our parent, and remembers it
  over `exec` (`PR_SET_PDEATHSIG`). A `preexec_fn` could ask too, but is unsafe with threads.
* elsewhere: a watchdog, forked from here, blocks on a pipe whose other end only the parent holds;
  end of file means that the parent is gone.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _die_with_parent(parent: int) -> None:
    import ctypes  # not on the other platforms' way

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) was refused")
    if os.getppid() != parent:  # it died before the kernel knew of our wish
        os._exit(1)


def _watch(pipe: int) -> None:
    """Fork the watchdog. It is a child of the command, so the process id it kills cannot have
    gone to another process: once the command is gone, its parent is somebody else."""
    command = os.getpid()
    if os.fork() != 0:
        os.close(pipe)
        return
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # do not keep the command's output pipes open after it ends
        os.dup2(null, stream)
    os.read(pipe, 1)
    if os.getppid() == command:
        os.kill(command, signal.SIGKILL)
    os._exit(0)


def main(arguments: list[str]) -> None:
    """Tie this process to its parent, then become the command."""
    parent, pipe, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    if pipe < 0:
        _die_with_parent(parent)
    else:
        _watch(pipe)
    try:
        os.execv(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
