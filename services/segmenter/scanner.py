"""Where sentences end in a stream of text: one forward pass over pieces of any size.

Text moves through two places: `_parts`, the open sentence as far as it has been decided, and
`_tail`, what has been read but not decided (from a mark, a backtick or a `<` on). In `_run`, `_w`
is the tail and the new text, `_b` the begin of what is not in `_parts` yet, `_pos` the reading
position.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final, NamedTuple

from . import cuts, lists, markup
from .characters import (
    ALNUM,
    BARE_MARKS,
    CLAUSE,
    HARD_BULLETS,
    MARKS,
    NEWLINES,
    STOPS,
    STOPS_AND_CLAUSES,
)
from .languages import Votes
from .nesting import TRACKED, Nesting
from .rules import (
    DIGITS,
    END,
    INITIAL,
    MARKER,
    MAX_CONTEXT,
    NOTHING,
    PLAIN,
    WAIT,
    Left,
    Right,
    classify,
    decide,
    is_doubtful,
    look_ahead,
)
from .tables import NEVER, Table, load

TAIL_LIMIT: Final = 256  # characters behind a mark that are looked at before deciding without more
_ATOMIC_LINE = re.compile(r"\s*(?:\||#{1,6}\s)")  # table row, heading
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]")  # a semicolon after it is a question mark
_INK = re.compile(r"\S")
_CLUSTER = re.compile(r"[!?！？]+|.")


class Piece(NamedTuple):
    """A stretch of the turn that ends where a segment may end; pieces joined give the text."""

    text: str
    code: bool  # inside a fence that began in an earlier piece


class Pending(NamedTuple):
    """The open sentence up to a mark that is not decided."""

    text: str
    doubtful: bool


class Scanner:
    """Finds the ends. `lang` as in `SegmenterOptions`; `first_clause` in words, 0 is off."""

    __slots__ = (
        "_b",
        "_clause_words",
        "_continued",
        "_eager",
        "_inside",
        "_item",
        "_last_size",
        "_left",
        "_line_kind",
        "_line_start",
        "_max_chars",
        "_nest",
        "_out",
        "_parts",
        "_pos",
        "_quiet",
        "_size",
        "_table",
        "_tail",
        "_votes",
        "_w",
    )

    def __init__(self, lang: str, *, eager: bool, max_chars: int, first_clause: int) -> None:
        self._votes = Votes() if lang == "auto" else None
        self._table: Table = load("en" if lang == "auto" else lang)
        self._eager = eager
        self._max_chars = max_chars or sys.maxsize
        self._clause_words = first_clause
        self._parts: list[str] = []
        self._size = 0  # characters in `_parts`
        self._tail = ""
        self._left: Left | None = None  # what stands before the mark that `_tail` begins with
        self._inside: markup.Protected | None = None
        self._continued = False  # the open sentence began inside a fence
        self._nest = Nesting()
        self._item: lists.Item | None = None
        self._line_start = True  # the open sentence began at the start of a line
        self._line_kind = ""  # "text" or "atomic" once known
        self._last_size = 0  # length of the text of the last `scan`
        self._quiet = not first_clause
        self._out: list[Piece] = []
        self._w = ""
        self._b = self._pos = 0

    @property
    def lang(self) -> str:
        """The language whose words are in use."""
        return self._table.lang

    @property
    def size(self) -> int:
        """Characters of the open sentence, decided or not."""
        return self._size + len(self._tail)

    @property
    def blank(self) -> bool:
        """True if the open sentence is empty or white space."""
        return not self._tail and all(part.isspace() for part in self._parts)

    @property
    def undecided(self) -> bool:
        """True if a mark waits for its decision."""
        return self._left is not None

    @property
    def settled(self) -> bool:
        """True if no mark waits, or what follows it is already being read."""
        return self._left is None

    def scan(self, text: str) -> list[Piece]:
        """Take the next text; returns the pieces it finishes."""
        if self._quiet and not self._tail and STOPS.search(text) is None:
            size = self._size + len(text)
            if size <= self._max_chars:
                self._parts.append(text)
                self._size = size
                self._last_size = len(text)
                return []
        self._run(text, final=False)
        self._last_size = len(text)
        return self._take()

    def finish(self) -> list[Piece]:
        """No more text for now: decide what is undecided, give out everything."""
        self._run("", final=True)
        if self._size or self._tail:
            self._end(self._tail)
        self._tail = ""
        self._left = self._inside = self._item = None
        self._continued = False
        self._new_line()
        return self._take()

    def pending(self) -> Pending | None:
        """The sentence that ends at the undecided mark if nothing speaks against it."""
        left = self._left
        if left is None or left.kind in (NOTHING, MARKER, INITIAL) or left.flags & NEVER:
            return None
        right = self._right(self._tail)
        if right.text:
            return None
        text = "".join(self._parts) + self._tail[: right.end]
        return Pending(text, is_doubtful(left, right, self._table))

    def commit_pending(self) -> list[Piece]:
        """End the sentence at the undecided mark."""
        end = self._right(self._tail).end
        rest = self._tail[end:]
        self._w, self._b, self._pos = self._tail, 0, end
        self._commit(end, end)
        self._tail = ""
        self._run(rest, final=False)
        return self._take()

    def cut(self) -> list[Piece]:
        """Cut the open sentence now, at the last place that will do."""
        if self.pending() is not None:
            return self.commit_pending()
        text = "".join(self._parts)
        at = cuts.cut_point(text, len(text)) if text.strip() else 0
        if at == 0 or (at == len(text) and not cuts.may_end(text)):
            return []
        self._parts, self._size = [], 0
        self._end(text[:at])
        self._parts, self._size = [text[at:]], len(text) - at
        return self._take()

    # --- the pass -------------------------------------------------------------------------

    def _run(self, text: str, *, final: bool) -> None:
        self._w = self._tail + text
        self._b = self._pos = 0
        while self._step(final):
            pass
        if self._eager and self._left is not None and not final:
            self._commit_eagerly(self._left)
        rest = self._w[self._b : self._pos]
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        self._tail = self._w[self._pos :]
        self._quiet = self._inside is None and not self._clause_words

    def _step(self, final: bool) -> bool:
        """One decision or one stop; false when the rest has to wait for more text."""
        limit = self._limit()
        if self._left is not None:
            return self._decide(self._left, final, limit)
        if self._inside is not None:
            return self._read_protected(self._inside, final, limit)
        stops = STOPS_AND_CLAUSES if self._clause_words else STOPS
        found = stops.search(self._w, self._pos)
        at = len(self._w) if found is None else found.start()
        if limit <= at and limit < len(self._w):
            return self._cut_at(limit)
        self._pos = at
        return found is not None and self._stop(self._w[at], final)

    def _stop(self, char: str, final: bool) -> bool:
        if char in MARKS or (char == ";" and _GREEK.match(self._before(self._pos))):
            return self._meet_mark(char)
        if char in NEWLINES:
            return self._end_line()
        if char == "`":
            return self._open_code(final)
        if char == "<":
            return self._open_tag(final)
        if char in HARD_BULLETS and self._has_words():
            self._commit(self._pos, self._pos)
        elif char in TRACKED:
            self._nest.see(char, self._before(self._pos))
            if char == ")":
                self._parenthesis()
        elif self._clause_words and (char in CLAUSE or char in "–—"):
            return self._clause(final)
        self._pos += 1
        return True

    def _meet_mark(self, char: str) -> bool:
        """Classify what stands before the mark at the reading position."""
        context, whole = self._context()
        if self._votes is not None:
            self._table = self._votes.table(context)
        left = classify(context, whole, char, self._table)
        if left.kind in (DIGITS, PLAIN) and left.previous.endswith(":"):
            if lists.starts(left.word) is not None:
                left = left._replace(kind=MARKER)
        if left.kind == MARKER:
            if lists.is_marker(left, self._line_start, self._item):
                self._item = lists.reading(left.word)
            else:
                left = left._replace(kind=DIGITS)
        if self._is_atomic(context, whole):
            left = left._replace(kind=NOTHING)
        self._left = left
        return True

    def _decide(self, left: Left, final: bool, limit: int) -> bool:
        """Decide the mark at the reading position, or wait."""
        stop = self._pos + TAIL_LIMIT
        tail = self._w[self._pos : min(stop, limit)]
        right = self._right(tail)
        item = lists.dotted_successor(left, self._item, self._table.labels)
        if item is not None and right.text and not right.glued:
            return self._split_before(left, item)
        verdict = decide(left, tail[0], right, final, self._table)
        if verdict == WAIT:
            if limit >= min(stop, len(self._w)):
                return False
            if left.flags & NEVER:
                return self._cut_at(limit)
            verdict = END
        self._left = None
        if verdict == END:
            self._see(self._pos, self._pos + right.close)
            self._commit(self._pos + right.end, self._pos + right.end)
        else:
            self._pos += len(right.marks)
        return True

    def _right(self, tail: str) -> Right:
        return look_ahead(
            tail, TAIL_LIMIT, paired=self._nest.paired, reversed_order=self._nest.reversed
        )

    def _commit_eagerly(self, left: Left) -> None:
        """At the mark itself: after an ordinary word, when nothing is open and no text follows."""
        tail = self._w[self._pos :]
        if self._nest.open or left.kind != PLAIN or _CLUSTER.fullmatch(tail) is None:
            return
        bare = tail[0] in BARE_MARKS
        if tail == "…" or (not bare and (self._last_size < 2 or len(left.word) < 2 or left.spaced)):
            return
        self._left = None
        self._commit(len(self._w), len(self._w))

    def _pass(self, count: int) -> bool:
        self._pos += count
        return True

    # --- ends -----------------------------------------------------------------------------

    def _commit(self, end: int, pos: int) -> None:
        """The sentence ends at `end` of `_w`; reading goes on at `pos`."""
        self._left = None
        self._end(self._w[self._b : end])
        self._b, self._pos = end, pos

    def _end(self, piece: str) -> None:
        text = "".join(self._parts) + piece
        self._parts, self._size = [], 0
        if self._clause_words and ALNUM.search(text):
            self._clause_words = 0
        if text:
            self._out.append(Piece(text, self._continued))
        self._continued = self._inside is not None and self._inside.fence
        self._line_start = False
        self._line_kind = ""

    def _end_line(self) -> bool:
        context, whole = self._context()
        self._pos += 1
        if not (whole and lists.only_marker(context)):
            self._commit(self._pos, self._pos)
        self._new_line()
        return True

    def _new_line(self) -> None:
        self._nest.reset()
        self._line_start = True
        self._line_kind = ""

    def _split_before(self, left: Left, item: lists.Item) -> bool:
        """The next item of a list on one line begins at the word before the mark."""
        self._item = item
        at = self._pull() - len(left.word)
        pos = self._pos
        self._commit(at, pos)
        self._left = left._replace(kind=MARKER, opens=True)
        return True

    def _pull(self) -> int:
        """Move the open sentence back into `_w`, to end it before the reading position."""
        text = "".join(self._parts)
        self._parts, self._size = [], 0
        self._w = text + self._w[self._b :]
        self._pos += len(text) - self._b
        self._b = 0
        return self._pos

    def _limit(self) -> int:
        """The position in `_w` of the first character too many (white space does not count)."""
        if self._size + len(self._w) - self._b <= self._max_chars:
            return sys.maxsize
        text = "".join(self._parts)
        if not text or text.isspace():
            text += self._w[self._b :]
        blank = len(text) - len(text.lstrip())
        over = _INK.search(self._w, max(self._b + self._max_chars + blank - self._size, self._b))
        return sys.maxsize if over is None else over.start()

    def _cut_at(self, limit: int) -> bool:
        self._pos = limit
        end = self._pull()
        at = cuts.cut_point(
            self._w[: end + 1], min(end, self._max_chars + len(self._w) - len(self._w.lstrip()))
        )
        self._commit(at, max(at, end))
        return True

    # --- looking around -------------------------------------------------------------------

    def _context(self) -> tuple[str, bool]:
        """The open sentence before the reading position, its end; and whether that is all of it."""
        context = self._w[max(self._b, self._pos - MAX_CONTEXT) : self._pos]
        length = self._size + self._pos - self._b
        if len(context) < MAX_CONTEXT:
            for part in reversed(self._parts):
                context = part + context
                if len(context) >= MAX_CONTEXT:
                    break
        return context[-MAX_CONTEXT:], length <= MAX_CONTEXT

    def _before(self, at: int) -> str:
        if at > self._b:
            return self._w[at - 1]
        return self._parts[-1][-1:] if self._parts else ""

    def _has_words(self) -> bool:
        context, whole = self._context()
        return not whole or ALNUM.search(context) is not None

    def _is_atomic(self, context: str, whole: bool) -> bool:
        """True inside a heading or a table row: they end with their line."""
        if not self._line_kind:
            head = context if whole else "".join(self._parts[:8]) + self._w[self._b : self._b + 8]
            atomic = self._line_start and _ATOMIC_LINE.match(head) is not None
            self._line_kind = "atomic" if atomic else "text"
        return self._line_kind == "atomic"

    def _see(self, start: int, end: int) -> None:
        for at in range(start, end):
            if self._w[at] in TRACKED:
                self._nest.see(self._w[at], self._before(at))

    # --- stops that are no marks ----------------------------------------------------------

    def _open_code(self, final: bool) -> bool:
        context, whole = self._context()
        fence_place = self._line_start and whole and not context.strip()
        end, inside = markup.backticks(self._w, self._pos, fence_place)
        if end == len(self._w) and not final:
            return False
        self._inside = inside
        self._pos = end
        return True

    def _open_tag(self, final: bool) -> bool:
        found = markup.tag(self._w, self._pos, final)
        if found is None:
            return False
        self._pos, self._inside = found
        return True

    def _read_protected(self, inside: markup.Protected, final: bool, limit: int) -> bool:
        end, state = inside.find_end(self._w, self._pos, final)
        if limit < end:
            return self._cut_at(limit)
        self._pos = end
        if state in ("open", "hold"):
            return False
        self._inside = None
        if inside.fence:
            self._commit(end, end)
        return True

    def _parenthesis(self) -> None:
        """`2)` ends the item before it, also without a mark."""
        found = lists.parenthesis(self._context()[0])
        if found is None or self._nest.brackets:
            return
        run, before = found
        item = lists.follows(run, self._item)
        if item is None:
            if not before or before.endswith(":"):
                self._item = lists.starts(run) if before else lists.reading(run)
            return
        self._item = item
        if before:
            at = self._pull() - len(run)
            if self._w[self._pos - 1] == ".":
                at -= 1
            self._commit(at, self._pos)

    def _clause(self, final: bool) -> bool:
        """A clause mark, while the first segment may end at one."""
        context, whole = self._context()
        if whole and cuts.count_words(context) < self._clause_words:
            return self._pass(1)
        verdict, end = cuts.clause_end(
            context[-1:] + self._w[self._pos : self._pos + 64], len(context[-1:]), final
        )
        if verdict == WAIT:
            return False
        at = self._pos + end - len(context[-1:])
        if verdict == END:
            self._commit(at, at)
        else:
            self._pos = at
        return True

    # --- state ----------------------------------------------------------------------------

    def _take(self) -> list[Piece]:
        out, self._out = self._out, []
        return out

    def snapshot(self) -> dict[str, Any]:
        """The state between two calls, as plain values."""
        inside = self._inside
        return {
            "open": "".join(self._parts),
            "tail": self._tail,
            "left": None if self._left is None else list(self._left),
            "inside": None if inside is None else [inside.close, inside.budget, inside.fence],
            "continued": self._continued,
            "nest": self._nest.snapshot(),
            "item": None if self._item is None else list(self._item),
            "line_start": self._line_start,
            "line_kind": self._line_kind,
            "last_size": self._last_size,
            "clause_words": self._clause_words,
            "lang": self._table.lang,
            "votes": None if self._votes is None else list(self._votes.counts),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of `snapshot`."""
        text = state["open"]
        self._parts, self._size = [text] if text else [], len(text)
        self._tail = state["tail"]
        self._left = None if state["left"] is None else Left(*state["left"])
        inside = state["inside"]
        self._inside = None if inside is None else markup.Protected(*inside)
        self._continued = state["continued"]
        self._nest.restore(state["nest"])
        self._item = None if state["item"] is None else lists.Item(*state["item"])
        self._line_start = state["line_start"]
        self._line_kind = state["line_kind"]
        self._last_size = state["last_size"]
        self._clause_words = state["clause_words"]
        self._table = load(state["lang"])
        if self._votes is not None:
            self._votes = Votes(state["votes"])
        self._quiet = self._inside is None and not self._clause_words
