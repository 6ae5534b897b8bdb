"""Where to cut a text that has no sentence end: clause mark, white space, or hard."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from .characters import CJK, CLAUSE, MARKS, ZERO_WIDTH

_closing = "\"'”’»)\\]}）］】」』》*_~"
# A clause mark of Latin text wants white space behind it; so "1,250" and "12:30" stay whole.
_CLAUSE_CUT = re.compile(
    rf"[{re.escape(CLAUSE)}{re.escape(MARKS)}][{_closing}]*(?=\s)"
    rf"|[，、；：，،؛、。！？][{_closing}]*(?!\d)|\s[–—-]+(?=\s)|—(?=\w)|\n"
)
_SPACE = re.compile(r"\s+")
_NUMBER_AT_END = re.compile(r"[\d][\d.,:'’\u00a0\u202f]*$")
_BETWEEN_NUMBERS = re.compile(r"\d[,;:]$")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
_FLAGS_AT_END = re.compile("[\U0001f1e6-\U0001f1ff]+$")
MAX_BACK: Final = 40


def cut_point(text: str, limit: int) -> int:
    """Where to cut `text`, at most at `limit`; 0 < result <= limit.

    The last clause mark, else white space, else hard, but never inside a number that has
    something before it, nor inside a character of several code points.
    """
    first = len(text) - len(text.lstrip())
    best = 0
    for found in _CLAUSE_CUT.finditer(text, first, min(len(text), limit + 1)):
        if found.end() <= limit and not _between_numbers(text, found.end()):
            best = found.end()
    if best > first:
        return best
    for found in _SPACE.finditer(text, first, min(len(text), limit + 1)):
        if first < found.start() <= limit and not _between_digits(text, found.start(), found.end()):
            best = found.start()
    return best if best > first else _hard(text, limit, first)


def _between_numbers(text: str, end: int) -> bool:
    following = text[end : end + 8].lstrip()[:1]
    return following.isdigit() and _BETWEEN_NUMBERS.search(text[max(0, end - 4) : end]) is not None


def _between_digits(text: str, start: int, end: int) -> bool:
    return text[start - 1].isdigit() and text[end : end + 1].isdigit()


def _hard(text: str, limit: int, first: int) -> int:
    cut = limit
    number = _NUMBER_AT_END.search(text, max(first, limit - MAX_BACK), limit)
    if number is not None and number.start() > first and text[limit : limit + 1].isdigit():
        cut = number.start()
    while cut > max(first + 1, limit - MAX_BACK) and _torn(text, cut):
        cut -= 1
    return cut


def _torn(text: str, at: int) -> bool:
    """True if a cut at `at` would tear a character made of several code points."""
    after = text[at : at + 1]
    if not after:
        return False
    if unicodedata.combining(after) or unicodedata.category(after) in ("Mn", "Mc", "Me"):
        return True
    if after in ZERO_WIDTH or "\U0001f3fb" <= after <= "\U0001f3ff" or after == "\u20e3":
        return True
    before = text[at - 1]
    if before == "\u200d" or ("\u1100" <= before <= "\u115f" and "\u1160" <= after <= "\u11ff"):
        return True
    flags = _FLAGS_AT_END.search(text, max(0, at - MAX_BACK), at)
    return _FLAG.match(after) is not None and flags is not None and len(flags[0]) % 2 == 1


CLAUSE_STOP = re.compile(rf"[{re.escape(CLAUSE)}—–][{_closing}]*")
_WIDE = re.compile(f"[{CJK}]")


def count_words(text: str) -> int:
    """Words of a clause; two characters of a script without spaces count as one."""
    wide = len(_WIDE.findall(text))
    return len(_WIDE.sub(" ", text).split()) + (wide + 1) // 2


def weight(text: str) -> int:
    """Length in Latin characters: one of a script without spaces says about as much as three."""
    return len(text) + 2 * len(_WIDE.findall(text))


def clause_end(before: str, text: str, final: bool) -> tuple[str, int]:
    """May the clause mark that `text` begins with end a segment? `end`, `not` or `wait`; and where.

    `before` is the character before the mark.
    """
    found = CLAUSE_STOP.match(text)
    if found is None:
        raise ValueError("the text does not begin with a clause mark")
    end = found.end()
    rest = text[end : end + MAX_BACK]
    following = rest.lstrip()[:1]
    if not following:
        return ("not" if final or len(rest) == MAX_BACK else "wait"), end
    if following.isdigit() and before.isdigit():
        return "not", end
    return ("end" if rest[0].isspace() or text[0] not in ",;:–" else "not"), end


def may_end(text: str) -> bool:
    """True if cutting behind `text` tears no word: what comes next is not known."""
    return (not text[-1].isascii() and bool(_WIDE.match(text[-1]))) or text[-1] in CLAUSE
