"""A token source without a model: it writes the prompt itself, at a language model's pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from firstword.tokens import tokens


class ScriptedSource:
    """Writes the text it is given at `tokens_per_second`; 0 is as fast as it can.

    The same text is always cut in the same way. The first token takes its time too, and lateness
    is made up for, so that a text of n tokens takes n / tokens_per_second seconds.
    """

    def __init__(self, tokens_per_second: float) -> None:
        self._pause_s = 1 / tokens_per_second if tokens_per_second else 0.0

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        clock = asyncio.get_running_loop().time
        began = clock()
        for count, piece in enumerate(tokens(prompt), 1):
            await asyncio.sleep(began + count * self._pause_s - clock())
            yield piece
