"""The runbook's commands, as an operator types them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "RUNBOOK.md"


def entry(alert: str) -> str:
    """What the runbook says of an alert."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"\n## {alert}\n")
    return rest.partition("\n## ")[0]


async def follow(alert: str, command: str, redis_url: str, **words: str) -> tuple[int, str]:
    """Run a command that stands in an alert's entry, with its capitals replaced by `words`; its
    exit status and what it printed."""
    assert command in entry(alert), f"the entry of {alert} does not say: {command}"
    for capitals, meant in words.items():
        command = command.replace(capitals, meant)
    bin_folder = str(Path(sys.executable).parent)
    environ = {**os.environ, "FIRSTWORD_REDIS_URL": redis_url}
    environ["PATH"] = f"{bin_folder}{os.pathsep}{environ['PATH']}"
    child = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        command,
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await child.communicate()
    return child.returncode or 0, told.decode()
