"""Prometheus's own programs, where they are, and the rules as data."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "observability"
RULES = ("recording.yml", "alerts.yml")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_WINDOW = re.compile(r"(?<=\[)(\d+)([smhd])(?=\])|(?<=for: )(\d+)([smhd])")


def program(name: str) -> str:
    """`prometheus` or `promtool`; skips the test where they are not, as .ci/run tells if it cannot
    install them."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on PATH: apt-get install prometheus")
    return found


def rules() -> list[dict[str, Any]]:
    """Every rule of the deployment."""
    groups = [
        group
        for name in RULES
        for group in yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))["groups"]
    ]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    """Every alert of the deployment."""
    return [rule for rule in rules() if "alert" in rule]


def quicker(text: str, factor: float, least_s: int = 4) -> str:
    """The rules of a file with every window and patience divided, for tests that cannot wait."""

    def shortened(found: re.Match[str]) -> str:
        number, unit = found[1] or found[3], found[2] or found[4]
        shorter = int(number) * _UNITS[unit] / factor
        return f"{max(least_s if found[1] else 1, round(shorter))}s"

    return _WINDOW.sub(shortened, text)
