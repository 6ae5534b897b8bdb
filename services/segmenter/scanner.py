"""Where sentences end in a stream of text: one forward pass over pieces of any size.

The open sentence is in the buffer as far as it has been decided; `_tail` holds what has been read
but not decided, from a mark, a backtick or a `<` on.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final, NamedTuple

from . import cuts, lists, markup
from .buffer import Buffer
from .characters import ALNUM, CLAUSE, HARD_BULLETS, MARKS, NEWLINES, STOPS, STOPS_AND_CLAUSES
from .languages import Votes
from .left import INITIAL, MARKER, MAX_CONTEXT, NOTHING, Left, classify
from .nesting import TRACKED, Nesting
from .right import Right, look_ahead
from .rules import decide, is_certain, is_doubtful
from .tables import NEVER, Table, load
from .words import END, WAIT

TAIL_LIMIT: Final = 256  # characters behind a mark that are looked at before deciding without more
_ATOMIC_LINE = re.compile(r"\s*(?:\||#{1,6}\s)")  # table row, heading
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]")  # a semicolon after it is a question mark

# What a snapshot holds as it is.
_PLAIN = ("clause_words", "continued", "fence", "last_size", "line_kind", "line_start", "tail")


class Piece(NamedTuple):
    """A stretch of the turn that ends where a segment may end; pieces joined give the text."""

    text: str
    code: bool  # a fence, or a part of one
    continued: bool  # the fence began in an earlier piece


class Pending(NamedTuple):
    """A mark that is not decided and may well end the sentence."""

    end: int  # where the sentence would end, from the mark on
    doubtful: bool


class Scanner:
    """Finds the ends. `lang` as in `SegmenterOptions`; `first_clause` in words, 0 is off."""

    def __init__(self, lang: str, *, eager: bool, max_chars: int, first_clause: int) -> None:
        self._votes = Votes() if lang == "auto" else None
        self._table: Table = load("en" if lang == "auto" else lang)
        self._eager = eager
        self._max_chars = max_chars or sys.maxsize
        self._clause_words = first_clause
        self._buffer = Buffer()
        self._tail = ""
        self._left: Left | None = None  # what stands before the mark that `_tail` begins with
        self._inside: markup.Protected | None = None
        self._fence = False  # the open sentence is a fence
        self._continued = False  # it began inside one
        self._nest = Nesting()
        self._items = lists.Items()
        self._line_start = True  # the open sentence began at the start of a line
        self._line_kind = ""  # "text" or "atomic" once known
        self._last_size = 0  # length of the text of the last `scan`
        self._quiet = not first_clause
        self._out: list[Piece] = []

    @property
    def lang(self) -> str:
        """The language whose words are in use."""
        return self._table.lang

    @property
    def blank(self) -> bool:
        """True if the open sentence is empty or white space."""
        return not self._tail and all(part.isspace() for part in self._buffer.parts)

    @property
    def size(self) -> int:
        """Characters of the open sentence before the undecided mark."""
        return self._buffer.size

    @property
    def undecided(self) -> bool:
        """True if a mark waits for its decision."""
        return self._left is not None

    def scan(self, text: str) -> list[Piece]:
        """Take the next text; returns the pieces it finishes."""
        if self._quiet and not self._tail and STOPS.search(text) is None:
            buffer = self._buffer
            size = buffer.size + len(text)
            if size <= self._max_chars:
                buffer.parts.append(text)
                buffer.size = size
                self._last_size = len(text)
                return []
        self._run(text, final=False)
        self._last_size = len(text)
        return self._take()

    def finish(self) -> list[Piece]:
        """No more text for now: decide what is undecided, give out everything."""
        self._run("", final=True)
        self._buffer.read(self._tail)
        self._commit(len(self._tail), len(self._tail))
        self._tail = ""
        self._inside = self._items.last = None
        self._fence = self._continued = False
        self._new_line()
        return self._take()

    def pending(self) -> Pending | None:
        """The undecided mark, if the sentence ends there unless something speaks against it."""
        left = self._left
        if left is None or left.kind in (NOTHING, MARKER, INITIAL) or left.flags & NEVER:
            return None
        right = self._right(self._tail)
        if right.text:
            return None
        inside = self._nest.open and not right.closed
        return Pending(right.end, inside or is_doubtful(left, right, self._table))

    def open_text(self, pending: Pending) -> str:
        """The open sentence up to where it would end."""
        return "".join(self._buffer.parts) + self._tail[: pending.end]

    def commit_pending(self) -> list[Piece]:
        """End the sentence at the undecided mark."""
        end = self._right(self._tail).end
        self._buffer.read(self._tail)
        rest, self._tail = self._tail[end:], ""
        self._commit(end, end)
        self._run(rest, final=False)
        return self._take()

    def cut(self) -> list[Piece]:
        """Cut the open sentence now, at the last place that will do; what is undecided stays."""
        text = "".join(self._buffer.parts)
        at = cuts.cut_point(text, len(text)) if text.strip() else 0
        if at == 0 or (at == len(text) and not cuts.may_end(text)):
            return []
        self._buffer.reset("")
        self._buffer.read(text)
        self._commit(at, at, keep_left=True)
        self._buffer.reset(text[at:])
        return self._take()

    # --- the pass -------------------------------------------------------------------------

    def _run(self, text: str, *, final: bool) -> None:
        buffer = self._buffer
        buffer.read(self._tail + text)
        while self._step(final):
            pass
        if self._eager and not final:
            self._commit_if_certain()
        self._tail = buffer.leave()
        self._quiet = self._inside is None and not self._clause_words

    def _step(self, final: bool) -> bool:
        """One decision or one stop; false when the rest has to wait for more text."""
        buffer = self._buffer
        limit = buffer.overflow(self._max_chars)
        if self._left is not None:
            return self._decide(self._left, final, limit)
        if self._inside is not None:
            return self._read_protected(self._inside, final, limit)
        stops = STOPS_AND_CLAUSES if self._clause_words else STOPS
        found = stops.search(buffer.window, buffer.pos)
        at = len(buffer.window) if found is None else found.start()
        if limit <= at and limit < len(buffer.window):
            return self._cut_at(limit)
        buffer.pos = at
        return found is not None and self._stop(found[0], final)

    def _stop(self, char: str, final: bool) -> bool:
        buffer = self._buffer
        if char in MARKS or (char == ";" and _GREEK.match(buffer.before(buffer.pos))):
            self._meet_mark(char)
            return True
        if char in NEWLINES:
            return self._end_line()
        if char in "`~":
            return self._open_code(final)
        if char == "<":
            return self._open_tag(final)
        if char in HARD_BULLETS and buffer.has_words():
            self._commit(buffer.pos, buffer.pos)
        elif char in TRACKED:
            self._nest.see(char, buffer.before(buffer.pos))
            if char == ")" and not self._nest.brackets:
                self._parenthesis()
        elif self._clause_words and (char in CLAUSE or char in "–—"):
            return self._clause(final)
        buffer.pos += 1
        return True

    def _meet_mark(self, char: str) -> None:
        """Classify what stands before the mark at the reading position."""
        context, whole = self._buffer.context(MAX_CONTEXT)
        if self._votes is not None:
            self._table = self._votes.table(context)
        left = classify(context, whole, char, self._table)
        if not self._line_kind:
            atomic = self._line_start and _ATOMIC_LINE.match(self._buffer.head(8))
            self._line_kind = "atomic" if atomic else "text"
        if self._line_kind == "atomic":
            left = left._replace(kind=NOTHING)
        self._left = self._items.meet_dot(left, self._line_start, self._table.function_words)

    def _decide(self, left: Left, final: bool, limit: int) -> bool:
        """Decide the mark at the reading position, or wait."""
        buffer = self._buffer
        pos = buffer.pos
        stop = min(pos + TAIL_LIMIT, limit)
        tail = buffer.window[pos:stop]
        right = self._right(tail)
        item = lists.dotted_successor(left, self._items.last, self._table)
        if item is not None and right.text and not right.glued:
            self._split_before(left, item)
            return True
        verdict = decide(left, tail[0], right, final, self._table)
        if verdict == WAIT:
            if limit >= min(pos + TAIL_LIMIT, len(buffer.window)):
                return False
            if left.kind in (NOTHING, MARKER) or left.flags & NEVER:
                return self._cut_at(limit)
            verdict = END
        if verdict == END:
            self._see(pos, pos + right.close)
            self._commit(pos + right.end, pos + right.end)
        else:
            self._left = None
            buffer.pos += len(right.marks)
        return True

    def _right(self, tail: str) -> Right:
        nest = self._nest
        return look_ahead(tail, TAIL_LIMIT, paired=nest.paired, reversed_order=nest.reversed)

    def _commit_if_certain(self) -> None:
        """Eager mode: end at the mark; not where a dash opens, a speech tag may follow there."""
        buffer, left = self._buffer, self._left
        if left is None or self._nest.open or buffer.head(4).lstrip()[:1] in ("—", "–", "-"):
            return
        if is_certain(left, buffer.window[buffer.pos :], self._last_size, self._table):
            self._commit(len(buffer.window), len(buffer.window))

    # --- ends -----------------------------------------------------------------------------

    def _commit(self, end: int, pos: int, *, keep_left: bool = False) -> None:
        """The sentence ends at `end` of the window; reading goes on at `pos`."""
        if not keep_left:
            self._left = None
        text = self._buffer.take(end, pos)
        if self._clause_words and ALNUM.search(text):
            self._clause_words = 0
        if text:
            self._out.append(Piece(text, self._fence, self._continued))
        self._fence = self._continued = self._inside is not None and self._inside.fence
        self._line_start = False
        self._line_kind = ""

    def _end_line(self) -> bool:
        buffer = self._buffer
        context, whole = buffer.context(MAX_CONTEXT)
        buffer.pos += 1
        if not (whole and lists.only_marker(context)):
            self._commit(buffer.pos, buffer.pos)
        self._new_line()
        return True

    def _new_line(self) -> None:
        self._nest.reset()
        self._line_start = True
        self._line_kind = ""

    def _split_before(self, left: Left, item: lists.Item) -> None:
        """The next item of a list on one line begins at the word before the mark."""
        self._items.last = item
        self._buffer.pull()
        pos = self._buffer.pos
        self._commit(pos - len(left.word), pos)
        self._left = left._replace(kind=MARKER, opens=True)

    def _parenthesis(self) -> None:
        """`2)` ends the item before it, also without a mark."""
        length = self._items.meet_parenthesis(
            self._buffer.context(MAX_CONTEXT)[0], self._table.function_words
        )
        if length:
            self._buffer.pull()
            self._commit(self._buffer.pos - length, self._buffer.pos)

    def _cut_at(self, limit: int) -> bool:
        """The sentence is too long: cut it before `limit`, the first character too many."""
        buffer = self._buffer
        buffer.pos = limit
        buffer.pull()
        window, end = buffer.window, buffer.pos
        blank = len(window) - len(window.lstrip())
        at = cuts.cut_point(window[: end + 1], min(end, self._max_chars + blank))
        self._commit(at, max(at, end))
        return True

    def _see(self, start: int, end: int) -> None:
        """Follow the closers behind a mark."""
        buffer = self._buffer
        for at in range(start, end):
            if buffer.window[at] in TRACKED:
                self._nest.see(buffer.window[at], buffer.before(at))

    # --- stops that are no marks ----------------------------------------------------------

    def _open_code(self, final: bool) -> bool:
        buffer = self._buffer
        fence_place = self._line_start and buffer.is_bare()
        found = markup.code(buffer.window, buffer.pos, fence_place, final)
        if found is None:
            return False
        end, self._inside = found
        self._fence = self._inside is not None and self._inside.fence
        self._see(buffer.pos, end)
        buffer.pos = end
        return True

    def _open_tag(self, final: bool) -> bool:
        found = markup.tag(self._buffer.window, self._buffer.pos, final)
        if found is None:
            return False
        self._buffer.pos, self._inside = found
        return True

    def _read_protected(self, inside: markup.Protected, final: bool, limit: int) -> bool:
        end, state = inside.find_end(self._buffer.window, self._buffer.pos, final)
        inside.budget -= min(end, limit) - self._buffer.pos
        if limit < end:
            return self._cut_at(limit)
        self._buffer.pos = end
        if state in ("open", "hold"):
            return False
        self._inside = None
        if inside.fence:
            self._commit(end, end)
        return True

    def _clause(self, final: bool) -> bool:
        """A clause mark, while the first segment may end at one."""
        buffer = self._buffer
        context, whole = buffer.context(MAX_CONTEXT)
        if whole and cuts.count_words(context) < self._clause_words:
            buffer.pos += 1
            return True
        verdict, length = cuts.clause_end(context[-1:], buffer.window[buffer.pos :], final)
        if verdict == WAIT:
            return False
        end = buffer.pos + length
        if verdict == END:
            self._commit(end, end)
        else:
            buffer.pos = end
        return True

    # --- state ----------------------------------------------------------------------------

    def _take(self) -> list[Piece]:
        out, self._out = self._out, []
        return out

    def snapshot(self) -> dict[str, Any]:
        """The state between two calls, as plain values."""
        inside, last = self._inside, self._items.last
        return {
            **{name: getattr(self, "_" + name) for name in _PLAIN},
            "open": "".join(self._buffer.parts),
            "left": None if self._left is None else list(self._left),
            "inside": None if inside is None else [inside.close, inside.budget, inside.fence],
            "nest": self._nest.snapshot(),
            "item": None if last is None else list(last),
            "lang": self._table.lang,
            "votes": None if self._votes is None else list(self._votes.counts),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of `snapshot`."""
        for name in _PLAIN:
            setattr(self, "_" + name, state[name])
        self._buffer.reset(state["open"])
        left, inside, item = state["left"], state["inside"], state["item"]
        self._left = None if left is None else Left(*left)
        self._inside = None if inside is None else markup.Protected(*inside)
        self._nest.restore(state["nest"])
        self._items.last = None if item is None else lists.Item(*item)
        self._table = load(state["lang"])
        self._votes = None if state["votes"] is None else Votes(state["votes"])
        self._quiet = self._inside is None and not self._clause_words
