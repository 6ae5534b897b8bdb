"""Numbers that stand alone: whole, decimal, ordinal, fractions, ranges, versions, phones. Pure."""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.rules import DASH, Rule, any_of, is_after_word, number, rule

POWERS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ₀₁₂₃₄₅₆₇₈₉", "0123456789-n0123456789")

_DEGREES: Final = (
    "all alla sott sopra nord ovest celsius centigrad oggi domani acima abaixo norte leste oeste "
    "hoje amanh quando nel dell circa negativ gradi com para fora durante "
    "bajo este hoy maña cuando grados centígrad afuera hasta desde"
).split()
"""Beginnings of what stands behind a temperature."""
_STAGE: Final = r"(?:[-.]?(rc|alpha|beta|dev|pre|preview|next|canary|nightly)(?:[-.]?(\d{1,3}))?)"
"""What stands behind a version that is not out yet."""
_MILLIONS_OF: Final = r"(\d{1,3}(?:[.\u00a0\u202f ]\d{3}){2,4}|[1-9]\d{0,5}0{6})[ ][^\W\d_]{3,30}"
_TH: Final = "(?:st|nd|rd|th)"
_YEARS: Final = range(1010, 2100)


def rules(language: Language) -> list[Rule]:
    """The longest and least mistakable stands first."""
    n = number(language)
    marks = any_of(language.table("ordinal_marks"))
    unit = rf"(?:[ ]({any_of(language.table('units'))})(?![\w/]))?"
    return [
        rule("d", rf"(\d{{1,6}}(?:\.\d{{1,6}}){{1,5}}){_STAGE}(?!\.?\w)", _staged_version),
        rule("d", r"\d{1,4}(?:\.\d{1,4}){1,4}(?![.\w]\w)", _named_version),
        rule("d", r"\d{1,6}(?:\.\d{1,6}){2,5}(?!\.?\d|,\d{1,2}(?!\d))", _version),
        rule(
            "l",
            rf"(?:v|V(?=\d+\.\d))(\d{{1,6}}(?:\.\d{{1,6}}){{0,5}}){_STAGE}?(?![\w]|\.\d)",
            _marked_version,
        ),
        rule("d", r"\d{1,4}(?:-\d{1,4}){2}(?![-\w])", _block),
        rule("d", rf"({n})[eE]([+-]?)(\d{{1,3}})(?!\w)", _scientific),
        rule(
            "d",
            rf"({n})[ ]?[x×·*][ ]?10(?:\^?\(?([-−]?)(\d{{1,3}})\)?|(⁻?)([⁰¹²³⁴-⁹]{{1,3}})){unit}",
            _power_of_ten,
        ),
        rule("d", r"(\d{3,4})([pi])(?!\w)", _lines),
        rule("d", rf"(\d{{1,9}}|\d{{1,3}}(?:,\d{{3}}){{1,3}})({marks})(?!\w)", _ordinal),
        rule("s", r"\.(\d+)(?![\w]|\.\w)", _decimals),
        rule("d", rf"({n}){DASH}({n})(?![-–\w/]|[.,:]\d)", _range),
        *([rule("d", _MILLIONS_OF, _millions_of)] if language.word("magnitude_of") else []),
    ]


def ordinals(language: Language) -> list[Rule]:
    """3° piano, il 2°: before a noun and behind an article it is no temperature."""
    made = []
    if language.family == "en":
        made.append(rule("d", rf"(\d{{1,3}}){_TH}[-–](\d{{1,3}}){_TH}(?![-–\w])", _ordinals))
    if language.family in ("es", "it", "pt"):
        day = r"([1-9]|[12]\d|3[01])°"
        made.append(rule("d", rf"{day}(?=[ ](?!{any_of(_DEGREES)})[a-zà-ú]{{4,}})", _nth))
        made.append(rule("d", rf"{day}(?![ ]?[CFK\d]|\w)", _nth_behind_article))
    return made


def _ordinals(found: re.Match[str], language: Language) -> str:
    """1st-3rd."""
    return up_to(language.ordinal(found[1]), language.ordinal(found[2]), language)


def _nth_behind_article(found: re.Match[str], language: Language) -> str | None:
    """Il 1° e il 2°; behind a verb, and where more is said of it, it is a temperature."""
    before = found.string[max(0, found.start() - 8) : found.start()].lower().split(" ")
    is_named = len(before) > 1 and before[-2] in language.tables["articles"] and not before[-1]
    ahead = re.compile(rf"[ ]{any_of(_DEGREES)}").match(found.string, found.end())
    return language.ordinal(found[1]) if is_named and not ahead else None


def _nth(found: re.Match[str], language: Language) -> str:
    noun = language.noun(found.string, found.end())
    return language.ordinal(found[1], language.gender(noun), noun)


def plain(language: Language) -> Rule:
    """The last resort: no digit is ever left."""
    return rule("d", rf"({number(language)})", _plain)


def _plain(found: re.Match[str], language: Language) -> str:
    behind = found.string[found.end() : found.end() + 1]
    if not language.spaced and behind and behind in language.tables["measures"]:
        before = found.string[found.start() - 1 : found.start()]
        return _counted(found[1], behind, language, before)
    if language.family == "zh" and behind != "年" and found[1] < "1900":
        return language.number(found[1])
    gender = language.gender(language.noun(found.string, found.end()))
    return year_or_number(found[1], language, gender)


def _millions_of(found: re.Match[str], language: Language) -> str | None:
    """Un millón de habitantes."""
    noun = language.noun(found.string, found.end(1))
    link = language.link(found[1], noun)
    return f"{language.number(found[1])} {link}{noun}" if noun and link else None


def _counted(text: str, behind: str, language: Language, before: str = "") -> str:
    """A number of things; two is another word before what things are counted by in Chinese."""
    if text == "2" and before != "第" and behind and behind in language.tables.get("two", ""):
        return "两"
    return language.number(text)


def year_or_number(text: str, language: Language, gender: str = "") -> str:
    """A number of four digits that can be a year is read as one."""
    if is_year(text):
        return language.year(text)
    return language.number(text, gender)


def is_year(text: str) -> bool:
    """Whether it is a number that is read as a year."""
    return len(text) == 4 and text.isdecimal() and int(text) in _YEARS


def version(text: str, language: Language) -> str:
    """`three point twelve point one`."""
    point = language.word("dot" if language.tables["decimal"] == "," else "point")
    return language.joined(f" {point} ".join(map(language.cardinal, text.split("."))).split())


def _version(found: re.Match[str], language: Language) -> str | None:
    if language.tables["decimal"] == "," and re.fullmatch(r"\d{1,3}(?:\.\d{3})+", found[0]):
        return None  # a million
    return version(found[0], language)


def _named_version(found: re.Match[str], language: Language) -> str | None:
    """Python 3.12: three point twelve."""
    before = found.string[max(0, found.start() - 24) : found.start()]
    names = language.tables.get("versioned", ())
    named = before.endswith(" ") and before[:-1].endswith(tuple(names))
    return version(found[0], language) if named else None


def _marked_version(found: re.Match[str], language: Language) -> str | None:
    if is_after_word(found):
        return None
    said = _staged_version(found, language)
    name = language.word("version")
    before = found.string[max(0, found.start() - 10) : found.start()].lower()
    return said if name in before else f"{name} {said}"


def _staged_version(found: re.Match[str], language: Language) -> str:
    """2.0.0-rc.1."""
    said, stage, number = version(found[1], language), found[2], found[3]
    if stage is None:
        return said
    named = language.letters(stage) if stage == "rc" else stage
    return " ".join([said, named, *([language.cardinal(number)] if number else [])])


def _decimals(found: re.Match[str], language: Language) -> str | None:
    if is_after_word(found):
        return None
    return language.joined([language.word("point"), language.digits(found[1])])


def _block(found: re.Match[str], language: Language) -> str | None:
    """1-2-3, in an address in Japanese."""
    if language.family != "ja":
        return None
    return "の".join(map(language.cardinal, found[0].split("-")))


def _scientific(found: re.Match[str], language: Language) -> str:
    return _times_ten(found[1], found[2], found[3], language)


def _times_ten(first: str, sign: str, digits: str, language: Language) -> str:
    minus = language.word("minus") if sign == "-" else ""
    exponent = language.cardinal(digits.lstrip("0") or "0")
    ten, times = language.cardinal("10"), language.word("times")
    if not language.spaced:
        power = language.word("power_of").format(f"{minus}{exponent}")
        return f"{language.number(first)}{times}{ten}{power}"
    words = [language.number(first), times, ten, language.word("power"), minus, exponent]
    return language.joined(words)


def _power_of_ten(found: re.Match[str], language: Language) -> str | None:
    """3×10⁸ m/s; 2 x 10-4 is not one."""
    first, minus, exponent, minus_above, above, unit = found.groups()
    if not above and "^" not in found[0]:
        return None
    digits = exponent or above.translate(POWERS)
    sign = "-" if minus or minus_above else ""
    said = _times_ten(first, sign, digits, language)
    return language.joined([said, language.table("units")[unit][1]]) if unit else said


def _lines(found: re.Match[str], language: Language) -> str | None:
    """1080p, as one says it of a screen."""
    return f"{in_pairs(found[1], language)} {language.letters(found[2])}"


def in_pairs(digits: str, language: Language) -> str:
    """Ten eighty for 1080, where a number is a name; other languages say it as a number."""
    if language.family != "en" or digits.endswith("00"):
        return language.cardinal(digits)
    if len(digits) == 3:
        rest = f"oh {language.cardinal(digits[2])}" if digits[1] == "0" else ""
        return f"{language.cardinal(digits[0])} {rest or language.cardinal(digits[1:])}"
    return language.year(digits)


def _ordinal(found: re.Match[str], language: Language) -> str | None:
    gender = language.table("ordinal_marks")[found[2]]
    noun = language.noun(found.string, found.end())
    return language.ordinal(found[1].replace(",", ""), gender, noun)


def _range(found: re.Match[str], language: Language) -> str | None:
    first, last = found[1], found[2]
    if is_after_word(found) or found.string[found.start() - 1 : found.start()] == "-":
        return None
    behind = found.string[found.end() : found.end() + 1]
    pair = [_counted(first, behind, language), _counted(last, behind, language)]
    if "=" in found.string[found.end() : found.end() + 2]:
        return language.between(pair[0], "less", pair[1])
    if first == last and len(first) == 2:  # fifty-fifty
        return language.joined(pair)
    if is_year(first) and len(last) == 2 and 0 < int(last) <= min(12, int(first[2:])):
        month = language.tables["months"][int(last) - 1]
        template: str = language.tables["date_year"].replace(",", "")
        return template.format(date=month, year=language.year(first))
    if len(last) > 2 and last[0] == "0" and last.isdecimal():  # 2024-0113, of an invoice
        return f"{pair[0]}, {language.digits(last)}"
    if is_year(first) and (is_year(last) or (len(last) == 2 and last.isdecimal())):
        return up_to(language.year(first), language.year(last), language)
    won = re.compile(language.tables.get("won", "(?!)")).match(found.string, found.end())
    if won and len(first) == len(last) == 1:  # 3-1 से जीता
        return language.joined(pair)
    if len(first) < 4 and first.isdecimal() and last.isdecimal() and int(first) > int(last):
        if language.code == "en-gb" and last == "0":
            return f"{pair[0]} nil"
        return language.between(pair[0], "ratio", pair[1])
    return up_to(pair[0], pair[1], language)


def up_to(first: str, last: str, language: Language) -> str:
    """`first to last`."""
    return language.between(first, "to", last)
