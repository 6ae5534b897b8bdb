"""A token source without a model: what is to be said stands written, and the pace is a model's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence

from firstword.tokens import tokens
from services.agent.source import Ask

_BLANK_LINES = re.compile(r"\n\s*\n")


class ScriptedSource:
    """Writes what it is asked, or the next of its `replies`, round and round.

    It writes `tokens_per_second`; 0 is as fast as it can. The same text is always cut in the same
    way. The first token takes its time too, and lateness is made up for, so that a text of n tokens
    takes n / tokens_per_second seconds.
    """

    def __init__(self, replies: Sequence[str] = ()) -> None:
        self._replies = replies
        self._asked = 0

    async def stream(self, ask: Ask) -> AsyncGenerator[str, None]:
        text = self._replies[self._asked % len(self._replies)] if self._replies else ask.text
        self._asked += 1
        pause_s = 1 / ask.tokens_per_second if ask.tokens_per_second else 0.0
        clock = asyncio.get_running_loop().time
        began = clock()
        for count, piece in enumerate(tokens(text), 1):
            await asyncio.sleep(began + count * pause_s - clock())
            yield piece


def replies_of(script: str) -> list[str]:
    """A script's replies: its paragraphs, with blank lines between them."""
    return [part.strip() for part in _BLANK_LINES.split(script) if part.strip()]
