"""The text behind a mark: closers, the gap, and the beginning of the next sentence."""

from __future__ import annotations

import re
from typing import NamedTuple

from .characters import LEAD, MARKS, NEWLINES, TAILS, UNFINISHED, UNFINISHED_TAG

_LONE = frozenset(MARKS)
_BEGINS = re.compile(r"[\[\]<【\\:;=]")


class Right(NamedTuple):
    """The text behind a mark, as far as it has come."""

    marks: str
    close: int  # length of marks and closers
    end: int  # where the sentence would end: behind closers and emoji
    closed: str  # the last closer, "" if none
    newline: bool
    paired: bool  # a symmetrical quote or emphasis is open
    glued: bool  # no white space before the next word
    lead: str  # opening characters before the next word
    text: str  # from the next word on
    unfinished: bool  # a tag, a link target or a citation is not complete
    capped: bool  # the tail is as long as it may get: decide now


def look_ahead(tail: str, limit: int, *, paired: bool, reversed_order: bool) -> Right:
    """Read the text from a mark on, at most `limit` characters of it.

    `paired` and `reversed_order`: see `characters.TAILS`. Raises `ValueError` if the tail does
    not begin with a mark.
    """
    if tail in _LONE:
        return Right(tail, 1, 1, "", False, paired, True, "", "", False, False)
    if tail[1:2] == " " and tail[2:3].isalnum() and tail[0] in ".!?" and len(tail) < limit:
        # Nine of ten: a mark, a space, a word.
        return Right(tail[0], 1, 1, "", False, paired, False, "", tail[2:], False, False)
    capped = len(tail) >= limit
    if capped:
        tail = tail[:limit]
    found = TAILS[paired, reversed_order].match(tail)
    if found is None:
        raise ValueError("a tail begins with a mark")
    marks, closers, gap = found.groups()
    close = len(marks) + len(closers)
    if close == len(tail):
        unfinished = _unfinished(tail, close, close)
        return Right(
            marks, close, close, closers[-1:], False, paired, True, "", "", unfinished, capped
        )
    newline = any(c in NEWLINES for c in gap)
    end = close
    if gap and not newline and not gap.isspace():
        end += len(gap.rstrip())
    start = close + len(gap)
    found = LEAD.match(tail, start)
    lead = "" if found is None else found[0]
    begin = start + len(lead)
    glued = not any(c.isspace() for c in gap + lead)
    text = "" if newline else tail[begin:]
    unfinished = _unfinished(tail, close, begin)
    return Right(
        marks, close, end, closers[-1:], newline, paired, glued, lead, text, unfinished, capped
    )


def _unfinished(tail: str, close: int, begin: int) -> bool:
    """True if the tail stops inside a citation, a link target, an emoticon or a tag."""
    if _BEGINS.search(tail) is None:
        return False
    link = close - 1 if tail[close - 1] == "]" else close
    return bool(
        UNFINISHED.match(tail, close)
        or UNFINISHED.match(tail, link)
        or UNFINISHED_TAG.match(tail, begin)
    )
