"""Running `firstword` as people do: a process with arguments, standard input and an environment."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 100
"""More than the longest of them, the demo, takes on a busy machine; less than a test may."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and all it said."""

    status: int | None
    out: bytes
    err: str


async def begin(
    *words: str,
    url: str | None,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    module: str = "firstword.cli",
    stdout: int = asyncio.subprocess.PIPE,
) -> asyncio.subprocess.Process:
    """Start `firstword WORDS` in `folder`, on the server at `url` (None: on none that is set)."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module, *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=stdout,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={**os.environ, "FIRSTWORD_REDIS_URL": url or "", **(environ or {})},
    )


async def firstword(
    *words: str,
    url: str | None,
    folder: Path,
    stdin: bytes = b"",
    environ: Mapping[str, str] | None = None,
    module: str = "firstword.cli",
) -> Ended:
    """Run `firstword WORDS` to its end."""
    process = await begin(*words, url=url, folder=folder, environ=environ, module=module)
    try:
        async with asyncio.timeout(LIMIT_S):
            out, err = await process.communicate(stdin)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ended(process.returncode, out, err.decode())
