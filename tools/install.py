"""Makes .venv and installs Firstword in it, pinned by constraints.txt: `python install.py EXTRA`.

Run by the Makefile with the Python that .venv is to be made of. Standard library only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = VENV / "install.log"

# What an extra brings along: its own stamp and those of the extras it holds.
STAMPS = {"all": ["all"], "dev": ["all", "dev"]}

# How setuptools puts the tree on the path: by a plain .pth. Its default is an import hook, which
# comes too late for a script that lies beside a clone named `firstword`: Python takes that folder
# itself for the package. setuptools means to drop this mode one day: constraints.txt pins it, and a
# test tells.
EDITABLE = {"editable_mode": "compat"}

_PROGRESS = re.compile(r"^\s*(Collecting|Downloading|Building wheel for|Installing) (\S+)")


def main(arguments: Sequence[str]) -> None:
    """Install the extra named by the one argument, `all` (to run) or `dev` (to change)."""
    (extra,) = arguments
    if not works(PYTHON):
        version = ".".join(map(str, sys.version_info[:3]))
        say(f"Making .venv with Python {version} ({sys.executable})")
        make_venv()
    say(f"Installing firstword[{extra}]; the first time takes a minute or two")
    install(extra)
    for name in STAMPS[extra]:
        (VENV / f".installed-{name}").touch()
    say("Installed")


def works(python: Path) -> bool:
    """Whether this interpreter runs, is one we support, and has pip."""
    code = "import pip, sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))"
    return python.exists() and succeeds([str(python), "-c", code])


def make_venv() -> None:
    """A fresh .venv with pip, by whichever means this machine has.

    Debian ships `venv` without the part that brings pip (`ensurepip`); pip can bring itself.
    """
    venv = [sys.executable, "-m", "venv", "--clear"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site_packages())]
    uv = ["uv", "venv", "--quiet", "--clear", "--seed", "--python", sys.executable]
    for commands in (
        [[*venv, str(VENV)]],
        [[*venv, "--without-pip", str(VENV)], [*pip, "pip"]],
        [[*uv, str(VENV)]],
    ):
        if all(succeeds(command) for command in commands) and works(PYTHON):
            return
    sys.exit(
        f"{sys.executable} cannot make a virtual environment with pip. On Debian and Ubuntu:\n"
        f"  sudo apt install python3-venv    (or python{python_version()}-venv)"
    )


def install(extra: str) -> None:
    """`pip install -e .[extra]`, quiet but alive; ends with pip's own words when it fails."""
    environment = dict(os.environ)
    for variable in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):  # pins hold for builds as well
        environment[variable] = f"{environment.get(variable, '')} constraints.txt".strip()
    command = [str(PYTHON), "-m", "pip", "install", "--progress-bar", "off"]
    command += [f"--config-settings={name}={value}" for name, value in EDITABLE.items()]
    command += ["-e", f".[{extra}]"]
    tail: deque[str] = deque(maxlen=25)
    with (
        LOG.open("w") as log,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as pip,
    ):
        assert pip.stdout
        for line in show_progress(pip.stdout):
            log.write(line)
            tail.append(line)
    if pip.returncode != 0:
        sys.exit(f"{''.join(tail)}\npip failed; its whole output is in {LOG}")


def show_progress(lines: Iterator[str]) -> Iterator[str]:
    """Pass pip's lines on; on a terminal, show what it is at in one line that is written over."""
    collected = 0
    for line in lines:
        yield line
        step = _PROGRESS.match(line)
        if step and sys.stdout.isatty():
            collected += step[1] == "Collecting"
            print(f"\r\033[K  {collected} packages: {step[0].strip():.60}", end="", flush=True)
    if sys.stdout.isatty():
        print("\r\033[K", end="", flush=True)


def succeeds(command: Sequence[str]) -> bool:
    """Whether a command exists and exits with 0; what it prints is dropped."""
    try:
        return (
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
        )
    except OSError:
        return False


def site_packages() -> Path:
    """Where .venv keeps its packages."""
    return VENV / "lib" / f"python{python_version()}" / "site-packages"


def python_version() -> str:
    """The running Python's version as in file names: 3.12."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def say(text: str) -> None:
    """One line for the person at the terminal."""
    print(f"firstword: {text}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
