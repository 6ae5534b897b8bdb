"""Stretches in which no mark counts: code fences, inline code, tags and tag pairs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

INLINE_LIMIT: Final = 240  # characters after which an unclosed backtick was only a backtick
PAIR_LIMIT: Final = 480

_NAMES = (
    "a abbr audio b br break code dfn div em emphasis h1 h2 h3 h4 i img lang li mark ol p phoneme "
    "prosody s say-as speak spell span strong sub sup table td tr think u ul voice w"
).split()
_PAIRS = frozenset({"code", "phoneme", "say-as", "spell", "sub"})
_KNOWN = "|".join(map(re.escape, sorted(_NAMES, key=len, reverse=True)))
# Attributes only on known names, so that "a<b and c>d" is no tag.
_TAG = re.compile(
    rf"<(?P<slash>/?)(?:(?P<known>{_KNOWN})(?:[\s/][^<>\n]{{0,240}})?"
    r"|(?P<name>[A-Za-z][\w:.-]{0,30})\s?/?)>"
)
_PARTIAL = re.compile(
    rf"<(?:/?(?:(?:{_KNOWN})[\s/][^<>\n]{{0,240}}|[A-Za-z][\w:.-]{{0,30}}\s?/?)?)$"
)


@dataclass(slots=True)
class Protected:
    """An open stretch: to `close`, to the end of the line (no `fence`), or through `budget`."""

    close: str
    budget: int
    fence: bool

    def find_end(self, text: str, pos: int, final: bool) -> tuple[int, str]:
        """Returns a position and `closed` (behind the closer), `open` (all read) or `hold`.

        `hold`: from the position on there may be a closer that is not complete. `lost`: the
        stretch was none, go on with ordinary text at the position.
        """
        limit = len(text) if self.fence else min(len(text), pos + self.budget)
        at, end = self._closer(text, pos, limit)
        if not self.fence:
            line = text.find("\n", pos, limit)
            if line >= 0 and (at < 0 or line < at):
                return line, "lost"
        if at >= 0:
            if self.close[0] == "`" and end == len(text) and not final:
                return self._spend(pos, at), "hold"  # the run may go on
            return end, "closed"
        if limit < len(text):
            return limit, "lost"
        keep = 0 if final else _overlap(text, pos, self.close)
        stop = len(text) - keep
        return self._spend(pos, stop), "hold" if keep else "open"

    def _closer(self, text: str, pos: int, limit: int) -> tuple[int, int]:
        """Where the closer stands and ends, -1 if nowhere; a run of backticks counts whole."""
        at = text.find(self.close, pos, limit)
        while at >= 0:
            end = at + len(self.close)
            if self.close[0] != "`":
                return at, end
            while end < len(text) and text[end] == "`":
                end += 1
            if self.fence or end - at == len(self.close):
                return at, end
            at = text.find(self.close, end, limit)
        return -1, -1

    def _spend(self, pos: int, stop: int) -> int:
        if not self.fence:
            self.budget -= stop - pos
        return stop


def _overlap(text: str, pos: int, close: str) -> int:
    """How many characters at the end of `text` may be the beginning of `close`."""
    if close[0] == "`":  # a run that goes on may be the closer, or not be it
        return min(len(text) - len(text.rstrip("`")), len(text) - pos)
    for size in range(min(len(close) - 1, len(text) - pos), 0, -1):
        if text.endswith(close[:size]):
            return size
    return 0


def backticks(text: str, pos: int, line_start: bool) -> tuple[int, Protected]:
    """The run of backticks at `pos`: where it ends and what it opens."""
    end = pos
    while end < len(text) and text[end] == "`":
        end += 1
    run = text[pos:end]
    fence = line_start and len(run) >= 3
    return end, Protected(run[:3] if fence else run, INLINE_LIMIT, fence)


def tag(text: str, pos: int, final: bool) -> tuple[int, Protected | None] | None:
    """The tag at `pos` (a `<`): its end and what it opens; `None` if it is not complete yet.

    What is no tag ends behind the `<`.
    """
    found = _TAG.match(text, pos)
    if found is None:
        if not final and _PARTIAL.match(text, pos):
            return None
        return pos + 1, None
    name = found["known"] or found["name"]
    if name in _PAIRS and not found["slash"] and not found[0].endswith("/>"):
        return found.end(), Protected(f"</{name}>", PAIR_LIMIT, False)
    return found.end(), None
