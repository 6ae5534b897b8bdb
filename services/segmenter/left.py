"""The text before a mark: what the mark hangs on."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .characters import ALNUM, CJK, DOTS, HARD_BULLETS, INVERTED, OPENERS, SYMMETRIC
from .tables import MAY, NUMBER, TIME, UNIT, Table

# What stands before a mark.
NOTHING: Final = "nothing"  # no letter or digit yet in this sentence
MARKER: Final = "marker"  # "1", "a", "IV" at the start of an item
DIGITS: Final = "number"
STEP: Final = "step"  # a number behind "Step" or the like that opens the sentence
ROMAN: Final = "roman"
INITIAL: Final = "initial"  # one capital
ACRONYM: Final = "acronym"  # U.S, Ph.D
LISTED: Final = "listed"  # in the language's table
SHORT: Final = "short"  # unknown, but looks like an abbreviation: no vowel
ADDRESS: Final = "address"  # domain, path, file, version
IMAGE: Final = "image"  # the description of an image: ![A cat. Asleep.](cat.png)
PLAIN: Final = "word"

MAX_PART: Final = 4  # letters in a part of an abbreviation with spaces
MAX_OPENING: Final = 3  # words before "p.m." that can be an adverbial at the start
MAX_CONTEXT: Final = 64  # characters before a mark that a decision may need

_STRIP = OPENERS + SYMMETRIC + INVERTED + "#>|" + HARD_BULLETS + "-–—"
_NUMBER = re.compile(r"[^\w\s]*[$€£¥₹]?\d[\d.,:'’ \u00a0\u202f/-]*")
# A lone syllable or ideograph is a word, unless Korean counts with it.
_MARKER = re.compile(
    rf"\d{{1,3}}|(?![{CJK}\uac00-\ud7af])[^\W\d_]|[가나다라마바사]|[IVX]{{1,5}}|[ivx]{{1,4}}"
)
_ROMAN = re.compile(r"[IVXLCM]{2,}|[VX]")
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]|(?:[A-Z][a-z]{0,2}\.)+[A-Z][a-z]{0,2}")
_ADDRESS = re.compile(r"[@/\\=_&%]|[^\s.]\.[^\s.]")
_PIECE = re.compile(r"[-–—/‑+,;:(\[{…!?]")
_NO_VOWEL = re.compile(r"[b-df-hj-np-tv-xz]{2,6}|[B-DF-HJ-NP-TV-XZ][b-df-hj-np-tv-xz]{1,5}")
_MURMURS = frozenset({"hm", "hmm", "hmmm", "mm", "mmm", "mhm", "shh", "shhh", "sh", "psst", "pst"})
_MURMURS |= {"brr", "brrr", "grr", "grrr", "tsk", "pfft", "zzz", "ths", "nth", "tv", "cd", "pc"}
_ELISION = ("[", "(")
_DESCRIBED = re.compile(r"(?<!\S)!\[[^\]]*$")


class Left(NamedTuple):
    """The text before a mark, classified once."""

    kind: str
    word: str  # the word the mark hangs on, without opening punctuation
    previous: str  # the word before it, lowercase
    flags: int  # its classes in the table
    spaced: bool  # white space between the word and the mark
    opens: bool  # the sentence has no word before this one
    opening_phrase: bool  # it has a preposition and at most one more: "At 5 p.m."


def classify(context: str, whole: bool, mark: str, table: Table) -> Left:
    """Classify what stands before `mark`.

    `context` is the sentence up to the mark, its last `MAX_CONTEXT` characters; `whole` says that
    nothing was cut off.
    """
    stripped = context.rstrip()
    spaced = len(stripped) != len(context)
    if mark in DOTS and context[-1:] in _ELISION:
        return Left(NOTHING, "", "", 0, spaced, False, False)
    pieces = stripped.rsplit(None, 2)
    if not pieces or (whole and ALNUM.search(stripped) is None):
        return Left(NOTHING, "", "", 0, spaced, True, False)
    run = pieces[-1]
    before = stripped[: len(stripped) - len(run)]
    opens = whole and ALNUM.search(before) is None
    previous = pieces[-2].lower() if len(pieces) > 1 else ""
    core = run.lstrip(_STRIP)
    if mark not in DOTS:
        kind, word, flags = (ADDRESS if _ADDRESS.search(core) else PLAIN), core, 0
    elif ALNUM.search(core) is None:
        kind, word, flags = PLAIN, "", 0
    else:
        kind, word, flags = _kind(core, previous, opens, table)
    if "![" in context and _DESCRIBED.search(context):
        kind = IMAGE
    phrase = flags & TIME and whole and _is_opening(before, table)
    if kind == DIGITS and whole and before.strip(_STRIP + " ").lower() in table.step_labels:
        kind = STEP
    return Left(kind, word, previous, flags, spaced, opens, bool(phrase))


def _is_opening(before: str, table: Table) -> bool:
    words = before.lower().split()
    return len(words) <= MAX_OPENING and words[:1] != [] and words[0] in table.time_openers


def _kind(core: str, previous: str, opens: bool, table: Table) -> tuple[str, str, int]:
    if opens and _MARKER.fullmatch(core):
        return MARKER, core, 0
    if _NUMBER.fullmatch(core):
        return DIGITS, core, 0
    if core.endswith("`"):
        return ADDRESS, core, 0
    word, flags = _lookup(core, previous, table)
    if len(word) == 1 and word.isupper() and not flags & ~NUMBER:
        return INITIAL, word, flags
    if flags:
        return LISTED, word, flags
    if _ACRONYM.fullmatch(word):
        return ACRONYM, word, 0
    if _ADDRESS.search(core):
        return ADDRESS, word, 0
    if _ROMAN.fullmatch(word):
        return ROMAN, word, 0
    if _NO_VOWEL.fullmatch(word) and word.lower() not in _MURMURS:
        return SHORT, word, 0
    return PLAIN, word, 0


def _lookup(core: str, previous: str, table: Table) -> tuple[str, int]:
    """The word at the end of `core` and its classes; abbreviations of two parts (`z. B.`) too."""
    word = core.rstrip("\"'*_~’”»)]`")
    if previous.endswith(".") and len(word) <= MAX_PART:
        flags = table.lookup(previous.lstrip(_STRIP) + word.lower())
        if flags:
            return word, flags
    flags = table.lookup(word)
    if flags:
        return word, _unless_unit(flags, previous)
    word = _PIECE.split(word)[-1].lstrip(_STRIP)
    if table.elision:
        word = word.replace("’", "'").rsplit("'", 1)[-1]
    letters = word.lstrip("0123456789.,")
    if letters != word and table.lookup(letters) & UNIT:
        return letters, UNIT
    flags = table.lookup(word)
    if not flags and len(word) > 1 and word[0] in table.prefixes:
        flags = table.lookup(word[1:])
    if not flags and word.lower().endswith(table.suffixes):
        flags = NUMBER | MAY
    return word, _unless_unit(flags, previous)


def _unless_unit(flags: int, previous: str) -> int:
    """A unit behind a number may end a sentence; without one it is what else it is, if anything."""
    if not flags & UNIT:
        return flags
    return UNIT if previous[-1:].isnumeric() else flags & ~UNIT
