"""The text of the open sentence: what has been decided, and the window that is being read.

`parts` is the decided text, in pieces as they came; `window` the undecided tail and the new text;
`start` where in the window the text begins that is not in `parts` yet; `pos` the reading position.
"""

from __future__ import annotations

import re
import sys
from typing import Final

from .characters import ALNUM

HEAD: Final = 64  # a sentence so long without a letter or digit is taken for one with them
_INK = re.compile(r"\S")


class Buffer:
    """Moves text from the window to the parts and out, each character a bounded number of times."""

    __slots__ = ("parts", "pos", "size", "start", "window")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.size = 0  # characters in `parts`
        self.window = ""
        self.start = self.pos = 0

    def reset(self, text: str) -> None:
        """The open sentence is `text` now."""
        self.parts = [text] if text else []
        self.size = len(text)

    def read(self, text: str) -> None:
        """Open the window on `text`."""
        self.window = text
        self.start = self.pos = 0

    def leave(self) -> str:
        """Close the window: what has been read joins the parts, the rest is returned."""
        rest = self.window[self.start : self.pos]
        if rest:
            self.parts.append(rest)
            self.size += len(rest)
        return self.window[self.pos :]

    def take(self, end: int, pos: int) -> str:
        """The open sentence up to `end` in the window leaves; reading goes on at `pos`."""
        text = "".join(self.parts) + self.window[self.start : end]
        self.parts, self.size = [], 0
        self.start, self.pos = end, pos
        return text

    def pull(self) -> None:
        """Move the parts back into the window, to end the sentence before the window's start."""
        text = "".join(self.parts)
        self.parts, self.size = [], 0
        self.window = text + self.window[self.start :]
        self.pos += len(text) - self.start
        self.start = 0

    def context(self, length: int) -> tuple[str, bool]:
        """The last `length` characters before the reading position; whether these are all."""
        context = self.window[max(self.start, self.pos - length) : self.pos]
        whole = self.size + self.pos - self.start <= length
        if len(context) < length:
            for part in reversed(self.parts):
                context = part + context
                if len(context) >= length:
                    return context[-length:], whole
        return context, whole

    def head(self, length: int) -> str:
        """About the first `length` characters."""
        return "".join(self.parts[:length]) + self.window[self.start : self.start + length]

    def before(self, at: int) -> str:
        """The character before `at`, "" at the start of the sentence."""
        if at > self.start:
            return self.window[at - 1]
        return self.parts[-1][-1:] if self.parts else ""

    def has_words(self) -> bool:
        """True if a letter or digit stands before the reading position."""
        context, whole = self.context(HEAD)
        return not whole or ALNUM.search(context) is not None

    def is_bare(self) -> bool:
        """True if only white space and `>` stand before the reading position."""
        context, whole = self.context(HEAD)
        return whole and not context.replace(">", "").strip()

    def overflow(self, limit: int) -> int:
        """Where in the window the first visible character beyond `limit` stands."""
        if self.size + len(self.window) - self.start <= limit:
            return sys.maxsize
        text = "".join(self.parts)
        if not text or text.isspace():
            text += self.window[self.start :]
        blank = len(text) - len(text.lstrip())
        over = _INK.search(self.window, max(self.start + limit + blank - self.size, self.start))
        return sys.maxsize if over is None else over.start()
