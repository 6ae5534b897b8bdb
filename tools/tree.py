"""Rules about the tree itself: short modules, and nothing that holds on one machine only.

`python -m tools.tree` prints what breaks them and exits with 1 when something does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 400
MAX_LINES_OF_TESTS = 600  # tables of cases are read entry by entry

_MADE = re.compile(r"^\.(?!ci/)[^/]+/|^build/|\.egg-info/|__pycache__/")

# Where packages come from, and where a person keeps things, is each machine's own affair.
_PRIVATE = {
    "the host of a package registry": re.compile(
        r"\b(pypi|pythonhosted|npmjs|crates|debian|ubuntu)\.(org|com|io)\b"
    ),
    "a path of one machine": re.compile(r"(?<![\w.~}])/(work|root|home|Users)/"),
}


def files(root: Path = ROOT) -> list[Path]:
    """The files that git tracks or would track; without git, all that are not in hidden folders."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    try:
        listed = subprocess.run(
            [*command, "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(root)) for path in sorted(root.rglob("*"))]
        names = [name for name in names if not _MADE.search(name)]
    else:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    return [root / name for name in names if (root / name).is_file()]


def long_modules(paths: list[Path], root: Path = ROOT) -> Iterator[str]:
    """Modules that have grown past what a person reads in one go."""
    for path in paths:
        if path.suffix == ".py":
            count = len(path.read_text(encoding="utf-8").splitlines())
            limit = MAX_LINES_OF_TESTS if path.is_relative_to(root / "tests") else MAX_LINES
            if count > limit:
                yield f"{path}: {count} lines, more than {limit}: split it by what it does"


def private_words(paths: list[Path]) -> Iterator[str]:
    """Lines that hold on one machine only."""
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not text
        for number, line in enumerate(text.splitlines(), 1):
            for what, pattern in _PRIVATE.items():
                if pattern.search(line):
                    yield f"{path}:{number}: {what}"


def main() -> int:
    """Print every breach; the exit status."""
    tree = files()
    breaches = [*long_modules(tree), *private_words(tree)]
    print("\n".join(breaches) if breaches else f"{len(tree)} files: sizes and words are fine")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
