"""Runs the tests of the torch engine in an environment of its own, .venv-torch.

Run by `make test-torch` with the Python 3.11 that .venv-torch is to be made of. Standard library
only. The environment costs 1 GB of disk where a torch build for CPUs is at hand; where pip would
fetch one for CUDA, several GB, the tests are left out, and it says why.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.install import EDITABLE

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-torch"
PYTHON = VENV / "bin" / "python"
PINS = ("constraints.txt", "constraints-torch.txt")
TORCH = "torch==2.13.0"
EXTRAS = ".[inference]"
TESTS = ("tests/torch", "tests/contract/test_synthesizer.py")
TOOLS = ("onnx", "blockbuster", "hypothesis", "pytest", "pytest-asyncio", "pytest-timeout")


class LeftOut(Exception):
    """The tests cannot run here; the message says why."""


def main(arguments: Sequence[str]) -> int:
    """Install what is not there yet, then pytest with `arguments` behind our own."""
    began = time.monotonic()
    try:
        prepare()
    except LeftOut as reason:
        print(f"left out: the torch engine's tests, {reason}")
        return 0
    print(f"firstword: .venv-torch is ready ({time.monotonic() - began:.0f} s)", flush=True)
    began = time.monotonic()
    command = [
        str(PYTHON),
        "-m",
        "pytest",
        "-q",
        "-m",
        "torch",
        "--durations=5",
        *TESTS,
        *arguments,
    ]
    status = subprocess.run(command, cwd=ROOT).returncode
    print(f"firstword: the torch engine's tests took {time.monotonic() - began:.0f} s")
    return status


def prepare() -> None:
    """Make .venv-torch, unless the one that is there has the pinned packages."""
    stamp = VENV / ".installed"
    wanted = hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in PINS)).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    if subprocess.run([sys.executable, "-m", "venv", "--clear", VENV]).returncode:
        raise LeftOut(f"because {sys.executable} cannot make a virtual environment")
    pip("--upgrade", "pip")  # an old one fetches whole wheels to look at them
    build = torch_build()
    if not build.endswith("+cpu") and sys.platform != "darwin":
        raise LeftOut(f"because pip would install torch {build}, which brings several GB of CUDA")
    constraints = [f"--constraint={name}" for name in PINS]
    settings = [f"--config-settings={name}={value}" for name, value in EDITABLE.items()]
    pip(*constraints, *settings, TORCH, *TOOLS, "--editable", EXTRAS)
    stamp.write_text(wanted)


def torch_build() -> str:
    """The version that pip would install, build included: 2.13.0+cpu."""
    report = VENV / "torch.json"
    pip("--dry-run", "--ignore-installed", "--no-deps", f"--report={report}", TORCH)
    return str(json.loads(report.read_text())["install"][0]["metadata"]["version"])


def pip(*arguments: str) -> None:
    """`pip install`, quiet as long as it succeeds; ends with its last words when it fails."""
    done = subprocess.run(
        [PYTHON, "-m", "pip", "install", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-3000:]}\npip failed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
