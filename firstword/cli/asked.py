"""A program of a service, asked line by line: the library imports no service."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Mapping


class Asked:
    """The program while it runs."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdout is not None and child.stderr is not None  # noqa: S101 - both are pipes
        self.lines = child.stdout
        self._child = child
        self._complaints = asyncio.create_task(child.stderr.read())

    async def status(self) -> int:
        """With which it ended."""
        return await self._child.wait()

    async def complaint(self) -> str:
        """The last line that it wrote to standard error; empty if there is none."""
        lines = (await self._complaints).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    async def end(self) -> None:
        """Let it end what it started, and itself."""
        with contextlib.suppress(ProcessLookupError):
            self._child.terminate()
        await self._child.wait()
        self._complaints.cancel()


@contextlib.asynccontextmanager
async def asked(
    module: str, options: Mapping[str, object], environ: Mapping[str, str]
) -> AsyncIterator[Asked]:
    """Runs `python -m module --name=value …`; options without a value are left out."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module),
        *(f"--{name}={value}" for name, value in options.items() if value),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    program = Asked(child)
    try:
        yield program
    finally:
        await program.end()
