"""List items: which marker follows which, so that items on one line come apart."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .left import DIGITS, INITIAL, MARKER, PLAIN, Left
from .tables import Table

MAX_MARKER: Final = 4  # the longest marker: "viii"
_ROMAN = {
    "i": 1,
    "ii": 2,
    "iii": 3,
    "iv": 4,
    "v": 5,
    "vi": 6,
    "vii": 7,
    "viii": 8,
    "ix": 9,
    "x": 10,
}
_PAREN_MARKER = re.compile(r"(?:(?P<before>\S*)\s+|^\W*)(?P<run>\d{1,3}|[a-zA-Z]|[ivx]{1,5})\.?$")


class Item(NamedTuple):
    """The last marker seen: its style (`1`, `a` or `i`) and its number.

    The style has a colon behind it (`1:`) where the list began inside a sentence.
    """

    style: str
    number: int


def follows(run: str, last: Item | None) -> Item | None:
    """The item that `run` marks if it is the one after `last`."""
    if last is None:
        return None
    for item in _readings(run):
        if item.style == last.style[0] and item.number == last.number + 1:
            return item
    return None


def starts(run: str) -> Item | None:
    """The item that `run` marks if it can be the first of a list."""
    for item in _readings(run):
        if item.number <= 1:
            return item
    return None


def reading(run: str) -> Item | None:
    """Any item that `run` can mark."""
    return next(iter(_readings(run)), None)


def _readings(run: str) -> list[Item]:
    if run.isdecimal():
        return [Item("1", int(run))]
    low = run.lower()
    found = [Item("a", ord(low) - 96)] if len(low) == 1 and "a" <= low <= "z" else []
    if low in _ROMAN:
        found.append(Item("i", _ROMAN[low]))
    return found


def dotted_successor(left: Left, last: Item | None, table: Table) -> Item | None:
    """The item marked by `left` and a dot inside a sentence that has no mark before it."""
    if last is None or len(left.word) > MAX_MARKER or left.opens or left.spaced:
        return None
    if left.previous in table.labels or left.previous in table.function_words:
        return None
    if left.kind not in (DIGITS, INITIAL, PLAIN):
        return None
    if left.previous[-1:] in (":", ",", "."):
        return None
    return follows(left.word, last)


def is_marker(left: Left, line_start: bool, last: Item | None) -> bool:
    """A number that opens a sentence inside a line is a marker only if it is 1 or the next one."""
    if line_start or not left.word.isdecimal() or int(left.word) <= 1:
        return True
    return follows(left.word, last) is not None


_ONLY_MARKER = re.compile(r"\s*(?:\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)]{1,2}|[-*+•⁃◦‣▪●])\s*")


def only_marker(text: str) -> bool:
    """True if a line holds nothing but a list marker."""
    return _ONLY_MARKER.fullmatch(text) is not None


class Items:
    """Follows the markers of a list through a turn."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: Item | None = None

    def meet_dot(self, left: Left, line_start: bool, small_words: frozenset[str]) -> Left:
        """Decide whether what stands before a dot is a marker, and remember it if so."""
        inside = left.kind == DIGITS and self._goes_on(left, small_words)
        if not inside and left.kind in (DIGITS, PLAIN) and left.previous.endswith(":"):
            inside = starts(left.word) is not None
        if inside:
            left = left._replace(kind=MARKER)
        if left.kind != MARKER:
            return left
        if not is_marker(left, line_start, self.last):
            return left._replace(kind=DIGITS)
        item = reading(left.word)
        self.last = item and item._replace(style=item.style + ":" * inside)
        return left

    def _goes_on(self, left: Left, small_words: frozenset[str]) -> bool:
        """An enumeration inside a sentence: `1. milk, 2. eggs and 3. flour`."""
        last = self.last
        if last is None or follows(left.word, last) is None:
            return False
        listed = last.style.endswith(":") and left.previous in small_words
        return listed or left.previous[-1:] in (",", ";")

    def meet_parenthesis(self, context: str, small_words: frozenset[str]) -> int:
        """`context` ends before a `)`: how much of it is the next item's marker, else 0.

        An enumeration inside a sentence (`1) milk, 2) eggs and 3) flour`) stays whole.
        """
        found = _PAREN_MARKER.search(context)
        if found is None:
            return 0
        run, before = found["run"], found["before"] or ""
        item = follows(run, self.last)
        if item is None:
            if not before or before.endswith(":"):
                self.last = starts(run) if before else reading(run)
            return 0
        self.last = item
        inside = before[-1:] in ",;" or before.lower() in small_words
        return 0 if inside else len(context) - found.start("run")
