"""Versions below which a package has a known hole, for where no database of them is reached.

`python -m tools.advisories` looks at constraints*.txt and at what the images install; a test does
the same. It knows what is written here and no more: where there is a network, ask `pip-audit`, too
(docs/DEPLOY.md).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from packaging.version import Version

from tools.image_requirements import CONSTRAINTS, FOLDER, TORCH

FIXED: Final[Mapping[str, tuple[str, str]]] = {
    "aiohttp": ("3.12.14", "CVE-2025-53643, request smuggling"),
    "certifi": ("2024.7.4", "CVE-2024-39689, roots that are trusted no more"),
    "cryptography": ("44.0.1", "CVE-2024-12797, OpenSSL in its wheels"),
    "h11": ("0.16.0", "CVE-2025-43859, request smuggling"),
    "h2": ("4.3.0", "CVE-2025-57804, request smuggling"),
    "idna": ("3.7", "CVE-2024-3651, quadratic time"),
    "jinja2": ("3.1.6", "CVE-2025-27516, out of the sandbox"),
    "protobuf": ("6.31.1", "CVE-2025-4565, recursion without a limit"),
    "python-multipart": ("0.0.18", "CVE-2024-53981, a log entry for every byte"),
    "requests": ("2.32.4", "CVE-2024-47081, passwords of .netrc to others"),
    "setuptools": ("78.1.1", "CVE-2025-47273, files outside of the folder"),
    "starlette": ("0.49.1", "CVE-2025-62727, quadratic time"),
    "torch": ("2.10.0", "PYSEC-2026-2286"),
    "tqdm": ("4.66.3", "CVE-2024-34062, arguments are evaluated"),
    "urllib3": ("2.6.0", "CVE-2025-66471, memory by compressed answers"),
}
"""Package -> the first version without the hole, and which hole that is."""

_PIN: Final = re.compile(r"^([a-z0-9-]+)==([^\s;\\]+)", re.MULTILINE)


def problems(text: str, fixed: Mapping[str, tuple[str, str]] = FIXED) -> Iterator[str]:
    """What is pinned in a file of requirements though it has a known hole."""
    for name, version in _PIN.findall(text):
        first, hole = fixed.get(name, ("0", ""))
        if Version(version) < Version(first):
            yield f"{name} {version}: {hole}; fixed in {first}"


def files() -> list[Path]:
    """Everything that pins what is installed."""
    return [CONSTRAINTS, TORCH, *sorted(FOLDER.glob("*.txt"))]


if __name__ == "__main__":
    found = [f"{path.name}: {each}" for path in files() for each in problems(path.read_text())]
    sys.exit("\n".join(found) or None)
