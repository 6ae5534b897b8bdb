"""Characters before anything else is done with them: what is mute, what is the same. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from anyascii import anyascii

from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, rule

_FIRST_PICTOGRAPH: Final = 0x2190  # symbols below are °, ©, ™ and their like: they are read
_APOSTROPHES: Final = dict.fromkeys("’ʼ‘`´＇", "'")
_SAME: Final = ("<font>", "<wide>", "<narrow>")
_LATIN: Final = r"A-Za-zªºÀ-ɏḀ-ỿ"
_SCRIPTS: Final = {
    "hi": r"\u0900-\u097f",
    "ja": r"\u3005\u3040-\u30ff\u3400-\u9fff",
    "zh": r"\u3400-\u9fff",
}


def clean(text: str) -> str:
    """`text` with as many characters, but without what no voice should read.

    Control characters, emoji and other pictographs, joiners and unassigned code points become
    spaces; apostrophes become straight, digits of all scripts 0 to 9, and the wide and ornamental
    forms of letters the letters they are.
    """
    return "".join(map(_cleaned, text))


@lru_cache(4096)
def _cleaned(character: str) -> str:
    if character in _APOSTROPHES:
        return _APOSTROPHES[character]
    if character.isascii() and character.isprintable():
        return character
    if _is_mute(character):
        return " "
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if unicodedata.decomposition(character).startswith(_SAME):
        same = unicodedata.normalize("NFKC", character)
        return same if len(same) == 1 else character
    return character


def _is_mute(character: str) -> bool:
    category = unicodedata.category(character)
    if category in ("So", "Sk"):  # Sk: the skin tones of emoji
        return ord(character) >= _FIRST_PICTOGRAPH
    return (
        category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or character in "\ufe0e\ufe0f\u20e3"
    )


def rules(language: Language) -> list[Rule]:
    """Letters with their accents apart, and words in a script that the voice cannot read."""
    own = f"{_LATIN}{_SCRIPTS.get(language.family, '')}"
    return [
        rule("l", r"[Α-ω](?![^\W\d_])", _greek),
        rule("l", r"[A-Za-z]{2,40}\(e?s\)(?!\w)", _plural),
        rule("l", r"[A-Za-z]{0,40}(?:[A-Za-z][\u0300-\u036f]{1,4}[A-Za-z]{0,40}){1,20}", _composed),
        rule("l", rf"(?:(?![{own}])[^\W\d_]){{1,80}}", _transliterated),
    ]


def _greek(found: re.Match[str], language: Language) -> str | None:
    name: str | None = language.table("greek").get(found[0])
    return name


def _plural(found: re.Match[str], language: Language) -> str:
    """`file(s)` is said as files."""
    return found[0].replace("(", "").replace(")", "")


def _composed(found: re.Match[str], language: Language) -> str:
    return unicodedata.normalize("NFC", found[0])


def _transliterated(found: re.Match[str], language: Language) -> str:
    """Said as it would be written in Latin letters; a space where there is nothing to say."""
    return " ".join(re.findall("[A-Za-z]+", anyascii(found[0]))) or " "
