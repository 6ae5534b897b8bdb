"""Children die with their parent, by either of the two means."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from firstword.child import ChildProcess

EITHER_MEANS = pytest.mark.parametrize(
    "watchdog",
    [
        pytest.param(
            False,
            marks=pytest.mark.skipif(
                not sys.platform.startswith("linux"), reason="only Linux ties processes itself"
            ),
            id="kernel",
        ),
        pytest.param(True, id="watchdog"),
    ],
)

# The child holds the parent's standard output: reading that to its end waits for both to be gone.
PARENT = textwrap.dedent("""
    import sys, threading
    from firstword.child import ChildProcess

    def start():
        global child
        loop = "import time; print('here', flush=True); [time.sleep(1) for _ in range(60)]"
        child = ChildProcess([sys.executable, "-c", loop], watchdog=sys.argv[1] == "True")

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()  # the death of the thread that asked for the child must not be the child's
    print(child.wait(0.2), flush=True)
    sys.stdin.readline()
""")


def shell(script: str, *, watchdog: bool = False) -> ChildProcess:
    return ChildProcess(["/bin/sh", "-c", script], watchdog=watchdog)


@EITHER_MEANS
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_a_child_dies_with_its_parent(watchdog: bool, end: signal.Signals | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(watchdog)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdin and parent.stdout
        assert {parent.stdout.readline(), parent.stdout.readline()} == {"here\n", "None\n"}
        if end is None:
            parent.stdin.write("\n")
        else:
            parent.send_signal(end)
        out, _ = parent.communicate(timeout=20)
    assert out == ""
    assert parent.returncode == (0 if end is None else -end)


@EITHER_MEANS
def test_exit_statuses_are_told(watchdog: bool) -> None:
    assert shell("exit 3", watchdog=watchdog).wait(20) == 3
    assert shell("kill -9 $$", watchdog=watchdog).wait(20) == -9


def test_a_running_child_has_no_exit_status_and_stops_when_asked() -> None:
    child = shell("while :; do sleep 1; done")
    assert child.returncode is None
    assert child.wait(0.01) is None
    child.stop(grace_s=20)
    assert child.returncode == -signal.SIGTERM
    child.stop(grace_s=20)
    child.kill()
    assert child.returncode == -signal.SIGTERM


def test_a_child_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with output.open("wb") as stdout:
        child = ChildProcess(
            ["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"], stdout=stdout
        )
    while output.read_text() != "deaf\n":
        assert child.wait(0.01) is None
    child.stop(grace_s=0.05)
    assert child.returncode == -signal.SIGKILL


def test_a_stopped_child_can_be_asked_to_end() -> None:
    child = shell("while :; do sleep 1; done")
    child.send_signal(signal.SIGSTOP)
    child.stop(grace_s=20)
    assert child.returncode == -signal.SIGTERM


def test_ctrl_c_in_the_terminal_is_not_for_the_child() -> None:
    child = shell("while :; do sleep 1; done")
    assert os.getpgid(child.pid) != os.getpgid(0)
    child.kill()


def test_a_program_that_cannot_run_says_so(tmp_path: Path) -> None:
    output = tmp_path / "err"
    with output.open("wb") as stderr:
        child = ChildProcess([str(tmp_path / "nothing")], stderr=stderr)
    assert child.wait(20) == 1
    assert output.read_text() == f"cannot run {tmp_path / 'nothing'}: No such file or directory\n"


def test_no_process_at_all_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ChildProcess(["/bin/sh", "-c", ":"], cwd=tmp_path / "nowhere")
