"""Characters before anything else is done with them: what is mute, what is the same. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from anyascii import anyascii

from services.inference.normalise import scripts
from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, rule

_FIRST_PICTOGRAPH: Final = 0x2190  # symbols below are °, ©, ™ and their like: they are read
_APOSTROPHES: Final = dict.fromkeys("’ʼ‘´＇", "'")
_SAME: Final = ("<font>", "<wide>", "<narrow>")
_KEPT: Final = "\n`，"
"""What is decided about by what stands beside it."""
_UNSEEN: Final = "\u00ad\u034f\u180e\u200b-\u200f\u2060-\u2064\ufeff"
"""Inside a word they are nothing, elsewhere a space."""
_LOOSE: Final = re.compile(rf"(?<!\S)[{_UNSEEN}]+|[{_UNSEEN}]+(?!\S)")
_KEYCAP: Final = re.compile("[#*]\ufe0f?\u20e3")
_BACKTICK: Final = re.compile(r"(?<=\w)`(?=\w)")
_LINE_MARKS: Final = re.compile(r"^(?:[ ]*(?:#{1,6}|>{1,3}|[*•-])(?=[ \n]))+", re.MULTILINE)
_SQUARED: Final = "\u3200-\u33ff"
"""㎡, ㈱ and their like: symbols that are words."""
_LATIN: Final = r"A-Za-zªºⁿÀ-ɏḀ-ỿ"
_LIKE_LATIN: Final = r"\u0400-\u052f\ufb00-\ufb06"
_SCRIPTS: Final = {
    "hi": r"\u0900-\u097f",
    "ja": r"\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "zh": r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
}


def clean(text: str) -> str:
    """`text` with as many characters, but without what no voice should read.

    Control characters, emoji and other pictographs, joiners and unassigned code points become
    spaces, and so do the marks of headings, quotations and items where a line begins; apostrophes
    become straight, digits of all scripts 0 to 9, and the wide and ornamental forms of letters the
    letters they are. Characters without a width stay inside of words, where nothing is said for
    them.
    """
    lines = "".join(map(_cleaned, _KEYCAP.sub(_spaces, text)))
    lines = _LINE_MARKS.sub(_spaces, _LOOSE.sub(_spaces, lines))
    return _BACKTICK.sub("'", lines).replace("`", " ").replace("\n", " ")


def _spaces(found: re.Match[str]) -> str:
    return " " * len(found[0])


@lru_cache(4096)
def _cleaned(character: str) -> str:
    if character in _APOSTROPHES:
        return _APOSTROPHES[character]
    if character in _KEPT or re.match(f"[{_UNSEEN}]", character):
        return character
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
    if character == "♭":
        return False
    if category in ("So", "Sk"):  # Sk: the skin tones of emoji
        return ord(character) >= _FIRST_PICTOGRAPH and not re.match(f"[{_SQUARED}]", character)
    return (
        category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or character in "\ufe0e\ufe0f\u20e3"
    )


def rules(language: Language) -> list[Rule]:
    """Letters with their accents apart, and words in a script that the voice cannot read."""
    own = f"{_LATIN}{_SCRIPTS.get(language.family, '')}"
    made = [
        rule("s", f"[{_UNSEEN}]+", _unseen),
        rule("s", "，", _comma),
        rule("s", "[①-⓿❶-➓Ⅰ-ⅿ]", _numeral),
        rule("s", f"[{_SQUARED}]", _squared),
        rule("l", r"[Α-ω](?![Ͱ-Ͼἀ-ῼ])", _greek),
    ]
    return [
        *made,
        rule("l", r"[A-Za-z]{2,40}\(e?s\)(?!\w)", _plural),
        rule(
            "l",
            r"(?=[A-Za-z]{1,40}[\u0300-\u036f])(?:[A-Za-z][\u0300-\u036f]{0,8}){1,60}",
            _composed,
        ),
        rule(
            "l",
            rf"(?=[{_LATIN}]{{0,40}}[{_LIKE_LATIN}])[{_LATIN}{_LIKE_LATIN}]{{2,80}}",
            _look_alikes,
        ),
        rule("l", rf"(?:(?![{own}])[^\W\d_][{scripts.MARKS}]{{0,4}}){{1,80}}", _transliterated),
        rule("s", r"[\u0300-\u036f]+", _loose_marks),
    ]


def _unseen(_found: re.Match[str], _language: Language) -> str:
    return ""


def _comma(_found: re.Match[str], _language: Language) -> str:
    return ","


def _numeral(found: re.Match[str], language: Language) -> str:
    """① is an item's, Ⅳ a number: 、 keeps what stands behind it apart."""
    number = language.cardinal(str(int(unicodedata.numeric(found[0]))))
    return number if language.spaced else f"{number}、"


def _squared(found: re.Match[str], language: Language) -> str:
    said: str = language.table("squared").get(found[0], unicodedata.normalize("NFKC", found[0]))
    return said if said.isascii() or not language.spaced else anyascii(said)


def _greek(found: re.Match[str], language: Language) -> str | None:
    name: str | None = language.table("greek").get(found[0])
    return name


def _plural(found: re.Match[str], language: Language) -> str:
    """`file(s)` is said as files."""
    return found[0].replace("(", "").replace(")", "")


def _composed(found: re.Match[str], language: Language) -> str:
    """Accents become part of their letter; lines through it and under it are not said."""
    return re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFC", found[0]))


def _look_alikes(found: re.Match[str], _language: Language) -> str | None:
    """Ligatures, and a Cyrillic letter in a Latin word; a Cyrillic word is none."""
    if not re.search(f"[{_LATIN}]", found[0]):
        return None
    return re.sub(f"[{_LIKE_LATIN}]", lambda letter: anyascii(letter[0]), found[0])


def _transliterated(found: re.Match[str], language: Language) -> str:
    """Said as it would be written in Latin letters; a space where there is nothing to say."""
    letters = scripts.latin(found[0])
    return " ".join(re.findall("[A-Za-z]+", letters)) or " "


def _loose_marks(_found: re.Match[str], _language: Language) -> str:
    return ""
