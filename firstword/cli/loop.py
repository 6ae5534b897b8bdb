"""Running a command's coroutine: Ctrl-C and SIGTERM end it, its clean-up runs, its status stays."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


def run(command: Coroutine[Any, Any, int]) -> int:
    """The exit status of `command`; 130 after Ctrl-C and 143 after SIGTERM, as shells expect."""

    async def guarded() -> int:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are in one
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await command

    try:
        return asyncio.run(guarded())
    except KeyboardInterrupt:
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED
