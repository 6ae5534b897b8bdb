"""Numbers that stand alone: whole, decimal, ordinal, fractions, ranges, versions, phones. Pure."""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.rules import DASH, Rule, any_of, is_after_word, number, rule

FRACTIONS: Final = dict(
    zip(
        "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞",
        "1/2 1/3 2/3 1/4 3/4 1/5 2/5 3/5 4/5 1/6 5/6 1/8 3/8 5/8 7/8".split(),
        strict=True,
    )
)

_NOUN: Final = re.compile(r"[ ]([^\W\d_]{3,30})")
_YEARS: Final = range(1010, 2100)
_OUT_OF: Final = ("10", "100")
_RATINGS: Final = ("24/7", "50/50", "9/11", "20/20")


def rules(language: Language) -> list[Rule]:
    """The longest and least mistakable stands first."""
    n = number(language)
    marks = any_of(language.table("ordinal_marks"))
    versioned, called = any_of(language.table("versioned")), any_of(language.table("called"))
    return [
        rule("l", rf"{called} (?P<x>\d{{3}})(?![-\w])", _called, re.IGNORECASE),
        rule(
            "l", rf"{versioned} (?P<x>\d{{1,4}}(?:\.\d{{1,4}}){{1,4}})(?![.\w]\w)", _named_version
        ),
        rule("ds", r"(?:1[-. ])?\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?!\d)", _phone),
        rule("d", r"(\d{1,3}(?:\.\d{1,3}){3})(:\d{1,5})?(?!\.?\d)", _address),
        rule("d", r"\d{1,6}(?:\.\d{1,6}){2,5}(?!\.?\d)", _version),
        rule("l", r"(?:v|V(?=\d+\.))(\d{1,6}(?:\.\d{1,6}){0,5})(?![\w]|\.\d)", _marked_version),
        rule("ds", r"\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,7}(?!\w)", _phone),
        rule("d", r"\d{1,7}(?:-\d{1,7}){3,6}(?![-\w])", _phone),
        rule("d", r"(?:\d{3}-(?:\d{4}|\d{2}-\d{4})|\d{5}-\d{4})(?![-\d])", _phone),
        rule("d", r"0\d{1,4}(?:[ /-]\d{2,8}){1,5}(?![-\d])", _phone),
        rule("ds", rf"(?:(\d{{1,9}})[ ]?)?([{''.join(FRACTIONS)}])", _fraction_sign),
        rule("d", r"(\d{1,4}) (\d{1,2}/\d{1,2})(?![/\d])", _mixed),
        rule("d", r"(\d{1,4})/(\d{1,4})(?![/\d])", _fraction),
        rule("d", r"(\d{1,3}[.,]\d{1,2})/(\d{1,3})(?![/\d])", _rating),
        rule("d", rf"({n})[eE]([+-]?)(\d{{1,3}})(?!\w)", _scientific),
        rule("d", rf"(\d{{1,9}}|\d{{1,3}}(?:,\d{{3}}){{1,3}})({marks})(?!\w)", _ordinal),
        rule("s", r"\.(\d+)(?![\w]|\.\w)", _decimals),
        rule("d", rf"({n}){DASH}({n})(?![-–\w/]|[.,:]\d)", _range),
    ]


def plain(language: Language) -> Rule:
    """The last resort: no digit is ever left."""
    return rule("d", rf"({number(language)})", _plain)


def _plain(found: re.Match[str], language: Language) -> str:
    noun = _NOUN.match(found.string, found.end())
    if noun is None or "feminine" not in language.tables:
        return year_or_number(found[1], language)
    is_feminine = re.search(language.tables["feminine"], noun[1])
    return year_or_number(found[1], language, "f" if is_feminine else "m")


def year_or_number(text: str, language: Language, gender: str = "") -> str:
    """A number of four digits that can be a year is read as one."""
    if is_year(text):
        return language.year(text)
    return language.number(text, gender)


def is_year(text: str) -> bool:
    return len(text) == 4 and text.isdecimal() and int(text) in _YEARS


def _address(found: re.Match[str], language: Language) -> str | None:
    parts = found[1].split(".")
    if any(int(part) > 255 or part.startswith("00") for part in parts):
        return None
    said = f" {language.word('dot')} ".join(map(language.digits, parts))
    return said + (f" {language.word('colon')} {language.digits(found[2])}" if found[2] else "")


def version(text: str, language: Language) -> str:
    """`three point twelve point one`."""
    point = language.word("dot" if language.tables["decimal"] == "," else "point")
    return language.joined(f" {point} ".join(map(language.cardinal, text.split("."))).split())


def _version(found: re.Match[str], language: Language) -> str | None:
    if language.tables["decimal"] == "," and re.fullmatch(r"\d{1,3}(?:\.\d{3})+", found[0]):
        return None  # a million
    return version(found[0], language)


def _named_version(found: re.Match[str], language: Language) -> str:
    return version(found["x"], language)


def _marked_version(found: re.Match[str], language: Language) -> str | None:
    if is_after_word(found):
        return None
    said = version(found[1], language)
    name = language.word("version")
    before = found.string[max(0, found.start() - 10) : found.start()].lower()
    return said if name in before else f"{name} {said}"


def _called(found: re.Match[str], language: Language) -> str:
    return language.digits(found["x"])


def _decimals(found: re.Match[str], language: Language) -> str | None:
    if is_after_word(found):
        return None
    return language.joined([language.word("point"), language.digits(found[1])])


def _phone(found: re.Match[str], language: Language) -> str | None:
    groups = re.findall(r"\d+", found[0])
    if is_after_word(found) or not 6 < sum(map(len, groups)) < 16:
        return None
    plus = f"{language.word('plus')} " if found[0][0] == "+" else ""
    if language.family == "fr" and all(len(group) == 2 for group in groups):
        return plus + ", ".join(map(language.cardinal, groups))
    return plus + ", ".join(map(language.digits, groups))


def _fraction_sign(found: re.Match[str], language: Language) -> str:
    numerator, _, denominator = FRACTIONS[found[2]].partition("/")
    said = _with_whole(found[1], numerator, denominator, language)
    over = f" {language.word('over')} "
    return said or over.join([language.cardinal(numerator), language.cardinal(denominator)])


def _mixed(found: re.Match[str], language: Language) -> str | None:
    numerator, _, denominator = found[2].partition("/")
    if int(numerator) >= int(denominator):
        return None
    return _with_whole(found[1], numerator, denominator, language)


def _with_whole(
    whole: str | None, numerator: str, denominator: str, language: Language
) -> str | None:
    part = _part(numerator, denominator, language)
    if not whole or part is None:
        return part
    if numerator == "1":  # one and a half, dos y medio
        part = ("a " if language.family == "en" else "") + part.partition(" ")[2]
    return f"{language.cardinal(whole)} {language.word('and')} {part}"


def _rating(found: re.Match[str], language: Language) -> str:
    """4.5/5."""
    pair = [language.number(found[1]), language.cardinal(found[2])]
    return f" {language.word('out_of')} ".join(pair)


def _fraction(found: re.Match[str], language: Language) -> str | None:
    if found.string[found.start() - 1 : found.start()] == "/":
        return None
    numerator, denominator = found[1], found[2]
    pair = [language.cardinal(numerator), language.cardinal(denominator)]
    if found[0] in _RATINGS:
        return language.joined(pair)
    said = None
    if numerator == denominator or (language.spaced and denominator in _OUT_OF):
        return f" {language.word('out_of')} ".join(pair)
    if int(numerator) < int(denominator):
        said = _part(numerator, denominator, language)
    return said or f" {language.word('over')} ".join(pair)


def fraction(text: str, language: Language) -> str | None:
    """`three quarters` for 3/4 and ¾; None where the language has no name for it."""
    numerator, _, denominator = FRACTIONS.get(text, text).partition("/")
    return _part(numerator, denominator, language)


def _part(numerator: str, denominator: str, language: Language) -> str | None:
    """`three quarters`; None where the language has no name for such a part here."""
    names = language.table("fractions").get(denominator)
    if names is None:
        return None
    one = numerator == "1"
    if language.family in ("ja", "zh"):
        return f"{names[0]}{language.cardinal(numerator)}"
    return f"{language.cardinal(numerator, 'm')} {names[0] if one else names[1]}"


def _scientific(found: re.Match[str], language: Language) -> str:
    minus = f"{language.word('minus')} " if found[2] == "-" else ""
    power = f"{language.word('power')} {minus}{language.cardinal(found[3].lstrip('0') or '0')}"
    return f"{language.number(found[1])} {language.word('times')} {language.cardinal('10')} {power}"


def _ordinal(found: re.Match[str], language: Language) -> str | None:
    return language.ordinal(found[1].replace(",", ""), language.table("ordinal_marks")[found[2]])


def _range(found: re.Match[str], language: Language) -> str | None:
    first, last = found[1], found[2]
    if is_after_word(found) or found.string[found.start() - 1 : found.start()] == "-":
        return None
    if " - " in found[0] and "=" in found.string[found.end() : found.end() + 10]:
        return f"{language.number(first)} {language.word('minus')} {language.number(last)}"
    if is_year(first) and len(last) in (2, 4) and last.isdecimal():
        return up_to(language.year(first), language.year(last), language)
    return up_to(language.number(first), language.number(last), language)


def up_to(first: str, last: str, language: Language) -> str:
    """`first to last`."""
    return f"{first} {language.word('to')} {last}"
