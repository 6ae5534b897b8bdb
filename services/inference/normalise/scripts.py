"""Words in scripts that a voice cannot read, as one would write them in Latin letters. Pure."""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import Final

from anyascii import anyascii

_INDIC: Final = re.compile(r"[\u0900-\u0d7f]+")
_VOWELS: Final = {"aa": "a", "ii": "ee", "uu": "oo", "r": "ri"}


def _marks() -> str:
    """Combining marks but the accents, as they stand between the brackets of a pattern."""
    codes = [code for code in range(0x370, 0xFE00) if unicodedata.category(chr(code))[0] == "M"]
    runs = groupby(enumerate(codes), lambda pair: pair[1] - pair[0])
    ends = [(run[0][1], run[-1][1]) for run in (list(group) for _, group in runs)]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ends)


MARKS: Final = _marks()


def latin(word: str) -> str:
    """`word` in Latin letters. Letters of India's scripts get the vowel that is not written."""
    return anyascii(_INDIC.sub(lambda found: _indic(found[0]), word))


def _indic(word: str) -> str:
    """By the names of the letters: DEVANAGARI LETTER NA, DEVANAGARI VOWEL SIGN E."""
    said = kind = ""
    for character in word:
        _, _, name = unicodedata.name(character, "").partition(" ")
        kind, _, sound = name.rpartition(" ")
        if kind.startswith("LETTER"):
            said += _sound(sound)
        elif kind.startswith("VOWEL SIGN"):
            said = said.removesuffix("a") + _sound(sound)
        elif sound == "VIRAMA":
            said = said.removesuffix("a")
        elif sound in ("ANUSVARA", "CANDRABINDU"):
            said += "n"
    # The vowel of the last letter is not heard.
    return said.removesuffix("a") if kind.startswith("LETTER") and len(said) > 2 else said


def _sound(name: str) -> str:
    """TTA is ta, CA cha, II ee."""
    single = re.sub(r"^([^aeiou])\1", r"\1", name.lower())
    hard = re.sub("^c(?!h)", "ch", single)
    return _VOWELS.get(hard, hard)
