"""Digits that are no amount: telephone numbers, IP and MAC addresses, PINs, UUIDs. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, any_of, is_after_word, rule

_HEX: Final = r"[0-9A-Fa-f]"
_NUMBER: Final = r"[ ]?(?:number|num\.?|no\.?|nr\.?|n\.?[°º]|n\.|号码|号|番号|नंबर|संख्या)"
_NUMBER_OF: Final = r"(?:números?|numéro|numero|n[.°º]|nº)[ ](?:d[eiou]l?[ ](?:l[ao][ ])?|d'|del'|)"
_IS: Final = r"(?:[ ]?[:：#=]|[ ](?:is|es|est|è|é):?|[ ]?[是为はが])?[ ]*"
"""What may stand between a word and its digits."""
_COUNTS: Final = re.compile(
    r"[ ](?!(?:now|for|from|with|then|immediately|right|when|before|after|anytime|today|instead)\b)"
    r"[^\W\d_A-Z]"
)
"""Call 300 people."""
_PERCENT: Final = re.compile(r"[ ](?:per cento|por ciento|por cento|pour cent|per ?cent)(?!\w)")
_MEASURES: Final = "个次人元块折通遍名只件万页张本条台円個回枚%"
_BEFORE_ANOTHER: Final = re.compile(r"(?<!\d)\d{3,8}(?:,|[ ](?:or|and|o|ou|y|e|et|या|或))[ ]?$")
"""Dial 112 or 999."""


def rules(_language: Language) -> list[Rule]:
    """Those that cannot be mistaken for anything else."""
    return [
        rule("ld", rf"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?!\w)", _uuid),
        rule("d", rf"0[xXbo]{_HEX}{{1,16}}(?!\w)", _written),
        rule("ld", rf"{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{5}}(?![\w:])", _groups),
        rule(
            "lds",
            rf"(?:{_HEX}{{1,4}}(?=:)|(?=::{_HEX}))(?::{{1,2}}{_HEX}{{1,4}}){{1,7}}(?:::)?"
            r"(?:/(\d{1,3}))?(?![\w:])",
            _ipv6,
        ),
        rule("d", r"(\d{1,3}(?:\.\d{1,3}){3})(?::(\d{1,5}))?(?:/(\d{1,2}))?(?!\.?\d)", _ipv4),
    ]


def phones(language: Language) -> list[Rule]:
    """A country's own way to write telephone numbers, then the ways that are common."""
    own = "|".join(language.tables.get("phones", ("(?!)",)))
    return [
        rule("ds", rf"(?:{own})(?![-\d])", _phone),
        rule("d", r"\d{1,5}(?:[ .-]\d{1,5}){1,6}(?![\w-])", _called_in_groups),
        rule("d", r"\d{3,15}(?![\w.,:/%\s-]?\d|[ ]?[%°€$£]|[A-Za-z])", _called),
        rule("ds", r"(?:1[-. ])?\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?!\d)", _phone),
        rule("ds", r"\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,7}(?!\w)", _phone),
        rule("d", r"\d{1,7}(?:-\d{1,7}){3,6}(?![-\w])", _phone),
        rule("d", r"(?:\d{3}-(?:\d{4}|\d{2}-\d{4})|\d{5}-\d{4})(?![-\d])", _phone),
        rule("d", r"0\d{1,4}(?:[ /-]\d{2,8}){1,5}(?![-\d])", _phone),
    ]


def _uuid(found: re.Match[str], language: Language) -> str:
    return ", ".join(map(language.letters, found[0].split("-")))


def _written(found: re.Match[str], language: Language) -> str:
    """0xFF, 0b1010."""
    return language.letters(found[0])


def _groups(found: re.Match[str], language: Language) -> str | None:
    """A MAC address; six numbers below a hundred are left to others."""
    if not re.search("[A-Fa-f]", found[0]) and "-" in found[0]:
        return None
    return ", ".join(map(language.letters, re.split("[:-]", found[0])))


def _ipv6(found: re.Match[str], language: Language) -> str | None:
    """2001:db8::1; 10:30:05 is a time, and std::move a name."""
    address = found[0].partition("/")[0]
    whole = address.count(":") == 7
    if is_after_word(found) or not (whole or "::" in address) or not re.search(r"\d", address):
        return None
    colon = f" {language.word('colon')} "
    said = colon.join(language.letters(group) for group in address.split(":"))
    return " ".join(said.split()) + _suffix(found[1], "/", language)


def _ipv4(found: re.Match[str], language: Language) -> str | None:
    parts = found[1].split(".")
    if any(int(part) > 255 or part.startswith("00") for part in parts):
        return None
    said = f" {language.word('dot')} ".join(map(language.digits, parts))
    return said + _suffix(found[2], ":", language) + _suffix(found[3], "/", language)


def _suffix(digits: str | None, mark: str, language: Language) -> str:
    """A port, read digit by digit, or the length of a prefix."""
    if not digits:
        return ""
    if mark == "/":
        return f" {language.table('marks')[mark]} {language.cardinal(digits)}"
    return port(digits, language)


def port(digits: str, language: Language) -> str:
    """` colon eight zero eight zero`."""
    return f" {language.word('colon')} {language.digits(digits)}"


@cache
def _cues(language: Language) -> tuple[re.Pattern[str], ...]:
    """What stands in front of a code, of what has a number, of a card's end, and behind a call."""
    edge = r"(?<!\w)" if language.spaced else ""
    words = any_of(language.tables["called"])
    things = rf"({_NUMBER_OF})?{any_of(language.tables['has_number'])}(?P<number>{_NUMBER})?"
    ends = any_of(language.tables["ends_with"])
    return (
        re.compile(rf"{edge}{words}(?:{_NUMBER})?{_IS}$"),
        re.compile(rf"{edge}{things}(?P<mark>[ ]?[:：#])?{_IS}$"),
        re.compile(
            rf"(?:{any_of(language.tables['has_number'])}|{words})[^.!?。]{{0,30}}{ends}[ ]?$"
        ),
        re.compile(any_of(language.tables["calls_behind"])),
    )


def _called(found: re.Match[str], language: Language) -> str | None:
    """`Dial 911`, `PIN: 1234`: behind a word for what is a code."""
    before = found.string[max(0, found.start() - 60) : found.start()].lower()
    if not _is_code(_BEFORE_ANOTHER.sub("", before), found, language):
        return None
    groups = re.findall(r"\d+", found[0])
    emergency = language.table("emergency")
    if found[0] in emergency.get("whole", ()):  # le cent douze
        return language.cardinal(found[0])
    if len(found[0]) == 4 and found[0] in emergency.get("numbers", ()):
        return f"{language.cardinal(found[0][:2])} {language.cardinal(found[0][2:])}"
    return ", ".join(_spelled(group, language) for group in groups)


def _counts(found: re.Match[str], language: Language) -> bool:
    """Call 300 people, 打300个电话."""
    if not language.spaced:
        return found.string.startswith(tuple(_MEASURES), found.end())
    if _PERCENT.match(found.string, found.end()):
        return True
    if found[0] in language.table("emergency").get("numbers", ()):
        return False
    noun = language.noun(found.string, found.end())
    if not noun or not _COUNTS.match(found.string, found.end()):
        return False
    return found[0][-1] == "0" or noun[-1] == "s" or noun == "people"


def _is_code(before: str, found: re.Match[str], language: Language) -> bool:
    """Whether the words around say so; an order or an account may be counted, too."""
    if _counts(found, language):
        return False
    cue, thing, end, behind = _cues(language)
    if cue.search(before) or end.search(before) or behind.match(found.string, found.end()):
        return True
    emergency = language.table("emergency")
    if found[0] in emergency.get("numbers", ()) and before.endswith(tuple(emergency["articles"])):
        return True
    named = thing.search(before)
    if named is None or re.match(r"(?:19|20)\d\d[-/]\d", found[0]):  # an invoice of a year
        return False
    digits = re.sub(r"\D", "", found[0])
    is_numbered = named[1] or named["number"] or named["mark"]
    return bool(is_numbered) or (len(digits) > 4 and not digits.endswith("000"))


def _called_in_groups(found: re.Match[str], language: Language) -> str | None:
    """`Tel. 555 123 456`."""
    return _called(found, language) if sum(map(str.isdecimal, found[0])) > 5 else None


def _phone(found: re.Match[str], language: Language) -> str | None:
    groups = re.findall(r"\d+|[A-Z]{2,}", found[0])
    if is_after_word(found) or not 6 < sum(map(len, groups)) < 16:
        return None
    plus = f"{language.word('plus')} " if found[0][0] == "+" else ""
    if language.family == "fr" and all(len(group) < 3 for group in groups):
        return plus + ", ".join(map(language.cardinal, groups))
    return plus + ", ".join(
        group.lower() if group.isalpha() else _spelled(group, language) for group in groups
    )


def _spelled(digits: str, language: Language) -> str:
    """Digit by digit; what is long in groups of three or four, so that one can follow."""
    size = 4 if len(digits) % 3 else 3
    parts = [digits]
    if len(digits) > 8:
        first = len(digits) % size or size
        parts = [digits[:first], *(digits[i : i + size] for i in range(first, len(digits), size))]
    said = ", ".join(map(language.digits, parts))
    # So that it is not taken for seven, one is called otherwise where a number is dialled.
    return said.replace("一", "幺") if language.family == "zh" else said
