"""Fractions and what is out of something: 1/2, ½, 2 3/4, 4.5/5, 24/7. Pure."""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, rule

FRACTIONS: Final = dict(
    zip(
        "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞",
        "1/2 1/3 2/3 1/4 3/4 1/5 2/5 3/5 4/5 1/6 5/6 1/8 3/8 5/8 7/8".split(),
        strict=True,
    )
)

_OUT_OF: Final = ("10", "100")
_MARKS: Final = frozenset("5 20 25 30 40 50 60 80".split())
_RATINGS: Final = ("24/7", "50/50", "9/11", "20/20")
_NO_DENOMINATORS: Final = frozenset(range(13, 32)) - {16, 20, 24, 25, 30}
_HALVES: Final = r"(\d{1,4})(?:[ ]?½|[ ]1/2)[ ]([^\W\d_]{3,30})(?!\w)"


def rules(language: Language) -> list[Rule]:
    """Signs, whole numbers with a fraction, fractions, ratings."""
    return [
        *([rule("d", _HALVES, _half_behind)] if "half_behind" in language.tables else []),
        rule("ds", rf"(?:(\d{{1,9}})[ ]?)?([{''.join(FRACTIONS)}])", _fraction_sign),
        rule("d", r"(\d{1,4})[ -](\d{1,2}/\d{1,2})(?![/\d])", _mixed),
        rule("d", r"(\d{1,4})/(\d{1,4})(?![/\d])", _fraction),
        rule("d", r"(\d{1,3}[.,]\d{1,2})/(\d{1,3}(?:[.,]\d)?)(?![/\d]|[.,]\d)", _rating),
    ]


def named(language: Language) -> list[Rule]:
    """2/3rds is no day; 2.5 लाख is ढाई लाख."""
    if language.family == "hi":
        return [
            rule("d", r"(\d{1,3})\.50?(?=[ ](?:सौ|हज़ार|हजार|लाख|करोड़|करोड़|अरब|घंट))", _half_of_many)
        ]
    if language.family != "en":
        return []
    return [rule("d", r"(?:(\d{1,3})[ -])?(\d{1,3})/(\d{1,4})(?:st|nd|rd|th)s?(?!\w)", _named_part)]


def _half_of_many(found: re.Match[str], language: Language) -> str:
    if found[1] == "0":
        return str(language.table("half")["m"])
    return and_a_half(found[1], language)


def and_a_half(whole: str, language: Language) -> str:
    """`ढाई`: where a language has words of its own for it."""
    pattern = language.table("and_a_half")
    said: str = pattern.get(whole, pattern[""])
    return said.format(language.cardinal(whole))


def _gender(found: re.Match[str], language: Language) -> str:
    """Of the noun behind; "" if there is none."""
    return language.gender(language.noun(found.string, found.end()))


def _half_behind(found: re.Match[str], language: Language) -> str | None:
    """Dos cucharadas y media: in front of its noun stands the whole number only."""
    noun = language.noun(found.string, found.start(2) - 1)
    if not noun:
        return None
    gender = language.gender(noun)
    half = language.table("half_behind")[gender]
    if found[1] == "1":
        if language.family == "it" and noun[-1] in "ei":
            return None
        noun = re.sub("s$" if language.family == "fr" else "(?<=[rlnzd])es$|s$", "", noun)
    return f"{language.cardinal(found[1], gender)} {noun} {language.word('and')} {half}"


def _fraction_sign(found: re.Match[str], language: Language) -> str:
    numerator, _, denominator = FRACTIONS[found[2]].partition("/")
    gender = _gender(found, language)
    said = _with_whole(found[1], numerator, denominator, language, gender)
    return said or _over(numerator, denominator, language)


def _mixed(found: re.Match[str], language: Language) -> str | None:
    return mixed(found[1], found[2], language, _gender(found, language))


def mixed(whole: str, part: str, language: Language, gender: str = "") -> str | None:
    """`one and a half` for 1 1/2; None if the fraction is no part."""
    numerator, _, denominator = part.partition("/")
    if int(numerator) >= int(denominator):
        return None
    return _with_whole(whole, numerator, denominator, language, gender)


def _with_whole(
    whole: str | None, numerator: str, denominator: str, language: Language, gender: str
) -> str | None:
    part = _part(numerator, denominator, language, "" if whole else gender)
    if not whole or part is None:
        return part
    if numerator == "1" and denominator == "2" and language.table("and_a_half"):
        return and_a_half(whole, language)
    if numerator == "1" and language.spaced:  # one and a half, dos y medio
        halves = language.table("half_behind") or language.table("half")
        half = halves.get(gender or "m") if denominator == "2" else None
        part = half or ("a " if language.family == "en" else "") + part.partition(" ")[2]
    return language.between(language.cardinal(whole, gender), "and_part", part)


def _over(numerator: str, denominator: str, language: Language, word: str = "over") -> str:
    pair = [language.cardinal(numerator), language.cardinal(denominator)]
    return language.between(pair[0], word, pair[1])


def _named_part(found: re.Match[str], language: Language) -> str:
    """2/3rds, 1/20th, 2 2/3rds."""
    whole, numerator, denominator = found.groups()
    part = _part(numerator, denominator, language)
    end = "" if numerator == "1" else "s"
    said = part or f"{language.cardinal(numerator)} {language.ordinal(denominator)}{end}"
    return language.between(language.cardinal(whole), "and_part", said) if whole else said


def _rating(found: re.Match[str], language: Language) -> str:
    """4.5/5."""
    return language.between(language.number(found[1]), "out_of", language.number(found[2]))


def _fraction(found: re.Match[str], language: Language) -> str | None:
    if found.string[found.start() - 1 : found.start()] == "/":
        return None
    numerator, denominator = found[1], found[2]
    if found[0] in _RATINGS:
        return language.joined([language.cardinal(numerator), language.cardinal(denominator)])
    if not language.spaced:
        return _date(int(numerator), int(denominator), language) or _part(
            numerator, denominator, language
        )
    stars = language.family == "en" and found.string.startswith(" star", found.end())
    is_mark = denominator in _MARKS and (stars or is_scored(found, language))
    if numerator == denominator or denominator in _OUT_OF or is_mark:
        return _over(numerator, denominator, language, "out_of")
    said = None
    if int(numerator) < int(denominator):
        said = _part(numerator, denominator, language, _gender(found, language))
    return said or _over(numerator, denominator, language)


def is_scored(found: re.Match[str], language: Language) -> bool:
    """`scored 18/20`, `ganhou por 3x1`: whether the words in front speak of points."""
    before = re.findall(r"\w+", found.string[max(0, found.start() - 24) : found.start()].lower())
    return not set(before[-3:]).isdisjoint(language.tables.get("scored", ()))


def _date(month: int, day: int, language: Language) -> str | None:
    """4/1 and 11/29 are days in Chinese and Japanese; 3/4 and 7/24 are not."""
    if not 0 < month < 13 or not (0 < day < month or day in _NO_DENOMINATORS):
        return None
    return f"{language.tables['months'][month - 1]}{language.cardinal(str(day))}日"


def fraction(text: str, language: Language) -> str | None:
    """`three quarters` for 3/4 and ¾; None where the language has no name for it."""
    numerator, _, denominator = FRACTIONS.get(text, text).partition("/")
    return _part(numerator, denominator, language)


def _part(numerator: str, denominator: str, language: Language, gender: str = "") -> str | None:
    """`three quarters`; None where the language has no name for such a part here."""
    if not language.spaced:
        return (
            f"{language.cardinal(denominator)}{language.word('part')}{language.cardinal(numerator)}"
        )
    names = language.table("fractions").get(denominator)
    if names is None:
        return None
    one = numerator == "1"
    if one and denominator == "2" and gender:
        return str(language.table("half")[gender])
    if one and denominator == "2" and language.table("and_a_half"):
        return str(names[0])
    return f"{language.cardinal(numerator, 'm')} {names[0] if one else names[1]}"
