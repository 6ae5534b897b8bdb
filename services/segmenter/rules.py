"""The decision: does this mark end a sentence?

`classify` looks once at the text before a mark, `look_ahead` at the text behind it, and `decide`
answers `END`, `NOT` or `WAIT` (for more text). A decision never changes when more text comes:
`decide` answers `WAIT` until what it has seen settles the matter. That is what makes the segments
the same however the text is cut.
"""

from __future__ import annotations

import re

from .characters import (
    ASCII_MARKS,
    BARE_MARKS,
    BRACKETS_OPEN,
    CJK,
    CLAUSE,
    DOTS,
    INVERTED,
    MONEY,
    case_of,
)
from .left import (
    ACRONYM,
    ADDRESS,
    DIGITS,
    IMAGE,
    INITIAL,
    LISTED,
    MARKER,
    MAX_PART,
    NOTHING,
    PLAIN,
    ROMAN,
    SHORT,
    STEP,
    Left,
)
from .right import Right
from .tables import ENDS, MAY, NEVER, NUMBER, TIME, UNIT, Table
from .words import (
    END,
    MAX_GLUED_TAG,
    NOT,
    WAIT,
    caseless_tag,
    glued_word,
    lower_start,
    may_be,
    next_word,
    quote_particle,
    reference,
    speech_tag,
    starter,
)

_QUOTES = "\"'”’»"
_TITLE_CLOSERS = "》〉"  # a mark inside belongs to the title of a book or a film
_SPEECH = INVERTED + "„‚"
_SYLLABLE = re.compile(f"[{CJK}\uac00-\ud7af]")
_THAI = "".join(map(chr, range(0x0E01, 0x0E5B)))
_CLUSTER = re.compile(r"[!?！？]+|.")
_EXCLAIMED = frozenset({"yahoo", "jeopardy", "yum", "joomla", "oxo"})  # names that end in "!"
_MURMURS = frozenset("ah er hm hmm mm oh uh um well".split())


def decide(left: Left, mark: str, right: Right, final: bool, table: Table) -> str:
    """`END`, `NOT` or `WAIT` for a mark; `final`: no more text will come."""
    final = final or right.capped
    if right.unfinished and not final and not right.newline:
        return WAIT
    if left.kind == IMAGE and right.closed == ")":
        left = left._replace(kind=PLAIN)
    if left.kind in (NOTHING, IMAGE):
        return NOT if final or right.text or right.newline else WAIT
    if right.newline:
        return NOT if left.kind == MARKER else END
    if _opens_speech(left, right):
        return END
    if not right.text:
        if not final:
            return WAIT
        return NOT if left.kind == MARKER or left.flags & NEVER else END
    char = right.text[0]
    case = case_of(char)
    if case == "other":
        return _before_symbol(char, left, right)
    if right.closed and right.closed in _TITLE_CLOSERS and right.glued:
        return NOT
    if case == "caseless" and right.closed and right.closed in _QUOTES and not right.glued:
        verdict = caseless_tag(right.text, final, table)
        if verdict != END:
            return verdict
    if mark not in ASCII_MARKS:
        return _after_bare(left, mark, right, case, final, table)
    if right.glued:
        return _glued(left, mark, right, case, final, table)
    if _is_ellipsis(right.marks):
        return _after_ellipsis(left, right, case, final)
    if right.closed and right.closed in _QUOTES and right.marks != "." and table.speech_verbs:
        verdict = speech_tag(right.text, final, table)
        if verdict != END:
            return verdict
    if mark in "!?" or any(c in "!?" for c in right.marks):
        return _case_end(right, case, final)
    return _after_dot(left, right, case, final, table)


def _opens_speech(left: Left, right: Right) -> bool:
    """A quote or ¿ opens behind white space: what follows need not be seen after a plain word."""
    if right.glued or left.kind not in (PLAIN, ADDRESS) or _is_ellipsis(right.marks):
        return False
    lead = right.lead.strip()
    return bool(lead) and lead[0] in (_SPEECH if right.paired else _SPEECH + '"“«`')


def _is_ellipsis(marks: str) -> bool:
    if len(marks) == 1:
        return marks == "…"
    dots = marks.replace(" ", "").replace("\u00a0", "")
    return len(dots) > 1 and all(c in DOTS for c in dots)


def _before_symbol(char: str, left: Left, right: Right) -> str:
    if char in MONEY + "`" and left.kind in (PLAIN, ADDRESS, DIGITS) and not right.glued:
        return END
    if char in CLAUSE or right.glued or right.marks == ".":
        return NOT
    return END


def _after_bare(left: Left, mark: str, right: Right, case: str, final: bool, table: Table) -> str:
    if mark == "．" and (case == "digit" or left.kind in (DIGITS, MARKER)):
        return NOT
    if right.closed and right.glued and not right.lead and table.quote_particles:
        verdict = quote_particle(right.text, final, table)
        return caseless_tag(right.text, final, table, MAX_GLUED_TAG) if verdict == END else verdict
    if case == "lower" and right.closed and not right.glued:
        return lower_start(right.text, right.lead, final)  # `「はい。」 is Japanese`
    if mark in "؟‼‽⁇⁈⁉⸮\u037e;" and case == "lower":
        return NOT
    if _is_ellipsis(right.marks):
        return _after_ellipsis(left, right, case, final)
    return END


def _glued(left: Left, mark: str, right: Right, case: str, final: bool, table: Table) -> str:
    """The next word follows without white space."""
    if any(c in INVERTED for c in right.lead):
        return END
    if case in ("digit", "lower"):
        return NOT
    if left.kind in (ADDRESS, ACRONYM, INITIAL, MARKER) or left.spaced:
        return NOT
    if mark == "." and len(left.word) == 1 and case == "upper":
        return NOT
    if case == "caseless":
        if mark == "." and not (left.word and case_of(left.word[-1]) in ("caseless", "digit")):
            return _after_latin(left, right, final, table)
        if right.closed and table.lang == "ko":
            return NOT
        if left.kind in (LISTED, SHORT, DIGITS) or _is_letter(left.word):
            return NOT
        return NOT if _is_ellipsis(right.marks) else END
    if mark in "!?":
        return END
    if left.flags & (NEVER | MAY):
        return NOT
    if left.kind not in (DIGITS, PLAIN) or (right.lead[:1] in BRACKETS_OPEN and right.lead):
        return NOT
    return glued_word(right.text, final)


def _after_latin(left: Left, right: Right, final: bool, table: Table) -> str:
    """`It works.好` is an end behind a second Latin word; `Node.を`, `vs.日本` are none."""
    before = left.previous
    latin = before[-1:].isascii() and before[-1:].isalpha()
    if left.kind != PLAIN or not left.word.islower() or not latin:
        return NOT
    return quote_particle(right.text, final, table) if _SYLLABLE.match(right.text) else NOT


def _is_letter(word: str) -> bool:
    """A lone letter of an alphabet without case; a syllable or an ideograph is a word."""
    if word[-1:] in _THAI:
        return len(word) <= 3
    return len(word) == 1 and not _SYLLABLE.match(word)


def _after_ellipsis(left: Left, right: Right, case: str, final: bool) -> str:
    spaced = right.marks.count(" ") + right.marks.count("\u00a0")
    if case != "upper" or (left.spaced and spaced == 2):
        return NOT
    word = next_word(right.text, final)
    if word is None:
        return WAIT if left.word.lower().startswith(right.text.lower()) else END
    return NOT if word.lower() == left.word.lower() else END  # "I... I am not sure"


def _case_end(right: Right, case: str, final: bool) -> str:
    """An end before anything but a lowercase word (`Yahoo! is`, `"Stop!" she said`)."""
    if case != "lower":
        return END
    return lower_start(right.text, right.lead, final)


def _after_dot(left: Left, right: Right, case: str, final: bool, table: Table) -> str:
    kind = left.kind
    if kind in (MARKER, STEP):
        return NOT
    if kind == PLAIN and case == "upper" and left.word.lower() in table.first_parts:
        word = next_word(right.text, final)
        if word is None:
            return WAIT if len(right.text) <= MAX_PART else END
        return NOT if table.lookup(f"{left.word}.{word}".lower()) else END
    if kind == PLAIN and case == "digit" and _wants_number(left, table):
        return NOT
    if kind in (PLAIN, ADDRESS):
        return _case_end(right, case, final)
    if kind == DIGITS:
        return _after_number(left, right, case, final, table)
    if case == "lower":
        return NOT
    if kind == ROMAN and not table.ordinals:
        return END
    if kind == LISTED or left.flags:
        return _after_listed(left, right, case, final, table)
    if kind == INITIAL and left.previous in table.labels:
        return END
    if case == "digit":
        return NOT
    if kind == SHORT and left.previous[-1:].isdigit() and not table.capital_nouns:
        return END  # a unit: "128 kbps. Music"
    wide = kind in (SHORT, ACRONYM)
    verdict = starter(right.text, final, table.wide_starters if wide else table.starters)
    if verdict == END and kind == INITIAL:
        word = next_word(right.text, final) or ""
        return NOT if word.lower() in table.particles else END
    return verdict


def _wants_number(left: Left, table: Table) -> bool:
    """`c. 1900`, `room no. 5`; but not `I said no. 5 came`."""
    if len(left.word) == 1:
        return left.word.islower()
    if left.word not in table.number_words or left.opens or left.previous[-1:] in CLAUSE:
        return False
    return left.previous not in table.function_words | table.speech_verbs


def _after_listed(left: Left, right: Right, case: str, final: bool, table: Table) -> str:
    flags = left.flags
    if flags & NEVER:
        return NOT
    if case == "digit":
        return NOT
    if flags & NUMBER:
        verdict = reference(right.text, final, flags, table)
        if verdict != END:
            return verdict
    if flags & ENDS or (flags & UNIT and case == "upper"):
        return END
    if flags & TIME:
        return _after_time(left, right, final, table)
    dotted = "." in left.word  # "U.S. Sales": not after what has dots inside
    return starter(right.text, final, table.wide_starters if dotted else table.all_starters)


def _after_time(left: Left, right: Right, final: bool, table: Table) -> str:
    if left.opens or left.opening_phrase:
        return NOT
    word = next_word(right.text, final)
    if word is None:
        return WAIT if may_be(right.text, table.calendar) else END
    return NOT if word.lower() in table.calendar else END


def _after_number(left: Left, right: Right, case: str, final: bool, table: Table) -> str:
    if table.dotted_dates:
        inside = case == "digit" or left.previous[-2:-1].isdigit()
        return NOT if inside else _case_end(right, case, final)
    if not table.ordinals:
        return _case_end(right, case, final)
    if case == "lower" or sum(c.isdigit() for c in left.word) > 2:
        return _case_end(right, case, final)
    if case == "digit":
        return NOT
    return _after_ordinal(left, right, final, table)


def _after_ordinal(left: Left, right: Right, final: bool, table: Table) -> str:
    """`3. Oktober` goes on, `am 5. Danach` does not; without either sign a noun is assumed."""
    if _is_counted(left.previous, table):
        return END
    word = next_word(right.text, final)
    if word is None:
        if may_be(right.text, table.ordinal_nouns):
            return WAIT
        if not table.capital_nouns:
            return END
        return WAIT if may_be(right.text, table.wide_starters) else NOT
    if word.lower() in table.ordinal_nouns:
        return NOT
    if not table.capital_nouns:
        return END
    cued = left.previous in table.ordinal_cues
    return starter(right.text, final, table.starters if cued else table.wide_starters)


def _is_counted(before: str, table: Table) -> bool:
    """A number behind `Hauptstr.`, `Nr.`, `Zimmer` or `Buslinie` is no ordinal."""
    if before in table.labels or (table.capital_nouns and before.endswith(table.label_ends)):
        return True
    word = before.removesuffix(".")
    flags = table.lookup(word) | table.lookup(word.capitalize())
    return word != before and bool(flags & NUMBER or word.endswith(table.suffixes))


def is_doubtful(left: Left, right: Right, table: Table) -> bool:
    """A mark that may well be inside a sentence: an abbreviation, an ellipsis, a bare number."""
    if _is_ellipsis(right.marks):
        return True
    if left.kind == DIGITS:
        return table.ordinals or right.end == len(right.marks)
    return left.kind not in (PLAIN, ADDRESS)


def is_certain(left: Left, tail: str, last_size: int, table: Table) -> bool:
    """Eager mode: may the sentence end at the mark, with nothing seen behind it?

    `tail` is the mark alone; `last_size` the length of the piece of text before it. Text that
    comes letter by letter says nothing at the mark, and neither does a dot behind a number or a
    word that no sentence ends with.
    """
    if left.kind != PLAIN or _CLUSTER.fullmatch(tail) is None or tail == "…":
        return False
    if tail[0] in BARE_MARKS:
        return True
    word = left.word
    if left.spaced or last_size < 2 or len(word) < 2 or any(c.isdigit() for c in word):
        return False
    if table.lookup(word) or table.lookup(word.capitalize()):
        return False
    if any(word.lower() in words for words in (table.calendar, table.first_parts)):
        return False
    if tail[0] in "!?":
        return word.lower() not in _EXCLAIMED
    unsure = (_MURMURS, table.function_words, table.number_words)
    return not any(word.lower() in words for words in unsure)
