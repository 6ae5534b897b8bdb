"""Stretches in which no mark counts: code fences, inline code, tags and tag pairs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

INLINE_LIMIT: Final = 240  # characters after which an unclosed backtick was only a backtick
PAIR_LIMIT: Final = 480
MAX_RUN: Final = 64  # a longer run of backticks or tildes counts as several

_NAMES = (
    "a abbr audio b br break code dfn div em emphasis h1 h2 h3 h4 i img lang li mark ol p phoneme "
    "prosody s say-as speak spell span strong sub sup table td tr think u ul voice w"
).split()
_PAIRS = frozenset({"code", "phoneme", "say-as", "spell", "sub"})
_KNOWN = "|".join(map(re.escape, sorted(_NAMES, key=len, reverse=True)))
# Attributes only on known names and with an equals sign, so that "a<b and c>d" is no tag.
_ATTRIBUTES = r"\s{1,4}[\w:.-]{1,40}\s?=[^<>\n]{0,240}"
_TAG = re.compile(
    rf"<(?P<slash>/?)(?:(?P<known>{_KNOWN})(?:{_ATTRIBUTES}|\s{{0,4}}/?)"
    r"|(?P<name>[A-Za-z][\w:.-]{0,30})\s?/?)>"
)
_PARTIAL = re.compile(
    rf"<(?:/?(?:(?:{_KNOWN})(?:{_ATTRIBUTES}|\s{{1,4}}[\w:.-]{{0,40}}\s?|\s{{0,4}}/)"
    r"|[A-Za-z][\w:.-]{0,30}\s?/?)?)$"
)
_LINE_BREAK = re.compile(r"[\n\r]")
_FENCE_STOP = re.compile(r"[\n\r`~]")


@dataclass(slots=True)
class Protected:
    """An open stretch: to `close`, to the end of the line (no `fence`), or through `budget`.

    A fence closes with a run as long as `close` or longer, on its first line or at the start of
    a later one; `close` begins with a line break once the first line is over.
    """

    close: str
    budget: int
    fence: bool

    def find_end(self, text: str, pos: int, final: bool) -> tuple[int, str]:
        """Returns a position and `closed` (behind the closer), `open` (all read) or `hold`.

        `hold`: from the position on there may be a closer that is not complete. `lost`: the
        stretch was none, go on with ordinary text at the position.
        """
        if self.fence:
            return self._find_fence_end(text, pos, final)
        limit = min(len(text), pos + self.budget)
        at, end = self._closer(text, pos, limit)
        line = text.find("\n", pos, limit)
        if line >= 0 and (at < 0 or line < at):
            return line, "lost"
        if at >= 0:
            if self.close[0] == "`" and end == len(text) and not final:
                return at, "hold"  # the run may go on
            return end, "closed"
        if limit < len(text):
            return limit, "lost"
        keep = 0 if final else _overlap(text, pos, self.close)
        return len(text) - keep, "hold" if keep else "open"

    def _closer(self, text: str, pos: int, limit: int) -> tuple[int, int]:
        """Where the closer stands and ends, -1 if nowhere; a run of backticks counts whole."""
        at = text.find(self.close, pos, limit)
        while at >= 0:
            end = at + len(self.close)
            if self.close[0] != "`":
                return at, end
            while end < min(len(text), at + MAX_RUN) and text[end] == "`":
                end += 1
            if end - at == len(self.close):
                return at, end
            at = text.find(self.close, end, limit)
        return -1, -1

    def _find_fence_end(self, text: str, pos: int, final: bool) -> tuple[int, str]:
        """`find_end` of a fence, which is never lost."""
        if _FENCE_STOP.search(text, pos) is None:
            return len(text), "open"
        run = self.close.lstrip("\n")
        if self.close == run:
            first = _LINE_BREAK.search(text, pos)
            limit = len(text) if first is None else first.start()
            found = re.compile(f"{run}{run[0]}{{0,{MAX_RUN}}}").search(text, pos, limit)
            if found is None and first is not None:
                self.close, pos = "\n" + run, limit
            begun = f"{run[0]}{{1,{MAX_RUN}}}$"
        if self.close != run:
            indent = r"(?:[\n\r]|(?<=[\n\r]))[ \t>]{0,32}"
            found = re.compile(f"{indent}{run}{run[0]}{{0,{MAX_RUN}}}").search(text, pos)
            begun = f"{indent}{run[0]}{{0,{MAX_RUN}}}$"
        if found is not None and (final or found.end() < len(text)):
            return found.end(), "closed"
        if found is None and not final:
            found = re.compile(begun).search(text, pos)
        return (len(text), "open") if found is None else (found.start(), "hold")


def _overlap(text: str, pos: int, close: str) -> int:
    """How many characters at the end of `text` may be the beginning of `close`."""
    if close[0] == "`":  # a run that goes on may be the closer, or not be it
        return min(len(text) - len(text.rstrip("`")), len(text) - pos) % MAX_RUN
    for size in range(min(len(close) - 1, len(text) - pos), 0, -1):
        if text.endswith(close[:size]):
            return size
    return 0


def code(
    text: str, pos: int, fence_place: bool, final: bool
) -> tuple[int, Protected | None] | None:
    """The run of backticks or tildes at `pos`: its end and what it opens; `None` if it may go on.

    Tildes open nothing but fences.
    """
    end = pos
    while end < min(len(text), pos + MAX_RUN) and text[end] == text[pos]:
        end += 1
    run = text[pos:end]
    fence = fence_place and len(run) >= 3
    opens = fence or run[0] == "`"
    if end == len(text) and not final and (opens or fence_place):
        return None
    return end, Protected(run, INLINE_LIMIT, fence) if opens else None


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
