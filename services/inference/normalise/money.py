"""Amounts of money: $5, 15,50 €, US$3.2bn, 5 million USD. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.numbers import up_to
from services.inference.normalise.rules import DASH, Rule, any_of, is_after_word, number, rule
from services.inference.normalise.scripts import MARKS
from services.inference.normalise.units import each

_THOUSANDS: Final = {"k": 1, "m": 2, "b": 3}


def rules(language: Language) -> list[Rule]:
    """The sign in front, behind, or the code of the currency on either side."""
    # Prices keep the marks of the country they come from: 1.234,56 and 15,50.
    # In $5,17个人 that is none.
    cents = r"(?![\d,])" if language.spaced else "(?![\\d,\u3040-\u9fff])"
    n = (
        rf"(?:\d{{1,3}}(?:\.\d{{3}})+,\d{{2}}(?!\d)|\d{{1,9}},\d{{2}}{cents}|{number(language)}"
        r"|\.\d{1,2}(?!\d))"
    )
    signs, codes = any_of(language.table("currencies")), any_of(language.table("codes"))
    # 元 and 円 are other words in front of a number.
    leading = any_of(
        sign for sign in language.table("currencies") if not "\u3040" <= sign <= "\u9fff"
    )
    scale = rf"(?:[ \u00a0\u202f]?({any_of(language.table('magnitudes'))})(?!\w))?"
    gap = r"[ \u00a0\u202f]?"
    # In $5,100元 there are two amounts, ￥100元 is one.
    yuan = r"(?!\d|(?<=,\d{3})(?<!,000)[元円块])[元円块]?"
    end = r"(?!\d)" if language.spaced else yuan
    word = rf"(?:(?:[^\W\d_][{MARKS}]{{0,3}}){{1,12}}|[\u3040-\u9fff]{{1,3}})"
    many = any_of(language.table("magnitudes"))
    per = rf"(?:[ ]?/[ ]?(\d{{1,4}}[ ]?(?:{many}|[kKmMB])?(?!\w)|{word}(?![\w/])))?"
    return [
        rule(
            "sl",
            rf"(?P<sign>{leading}|{codes}){gap}({n}){scale}(?:{DASH}(?P=sign)?({n}){scale})?{per}{end}",
            _in_front,
        ),
        rule("d", rf"(\d{{1,5}})({leading})(\d\d)(?![\d\w]|[.,]\d)", _inside),
        rule("sl", rf"({leading})[ ]?[-−]({number(language)}|\.\d{{1,2}})(?![\d.,]\d)", _negative),
        rule(
            "d",
            rf"({n}){scale}(?:{DASH}({n}){scale})?{gap}(?P<sign>{signs}|{codes})(?!\w){per}",
            _behind,
        ),
    ]


def _in_front(found: re.Match[str], language: Language) -> str | None:
    sign, first, scale, last, last_scale, per = found.groups()
    if sign[0].isalpha() and is_after_word(found):
        return None
    return _amount(found, language, sign, first, scale, last, last_scale, per)


def _inside(found: re.Match[str], language: Language) -> str:
    """12€50."""
    names = language.table("currencies")[found[2]]
    mark = language.tables["decimal"]
    return _exact(f"{found[1]}{mark}{found[3]}", names, language, one=False)


def _negative(found: re.Match[str], language: Language) -> str | None:
    """$-5."""
    names = language.table("currencies")[found[1]]
    if found[1][0].isalpha() and is_after_word(found):
        return None
    return f"{language.word('minus')} {_exact(found[2], names, language, one=False)}"


def _behind(found: re.Match[str], language: Language) -> str | None:
    first, scale, last, last_scale, sign, per = found.groups()
    return _amount(found, language, sign, first, scale, last, last_scale, per)


def _amount(
    found: re.Match[str], language: Language, sign: str, first: str, *parts: str | None
) -> str:
    scale, last, last_scale, per = parts
    names = language.table("currencies")[language.table("codes").get(sign, sign)]
    if last:
        low = _scaled(first, scale, language) if scale else language.number(first, names[4])
        said = f"{up_to(low, _scaled(last, last_scale, language), language)}"
        said = _of(said, last_scale, names, language)
    elif scale:
        said = _of(
            _scaled(first, scale, language),
            scale,
            names,
            language,
            one=_is_adjective(found, language),
        )
    else:
        said = _exact(first, names, language, one=_is_adjective(found, language))
    if not per:
        return said
    return language.joined([said, _each(per, language)])


def _each(per: str, language: Language) -> str:
    """What the price is for: a kilogram, a month, 1K tokens."""
    scale = per.lstrip("0123456789")
    digits, scale = per[: len(per) - len(scale)], scale.strip()
    if not digits:
        return each(per, language)
    times = _THOUSANDS.get(scale.lower()[:1], 0)
    exact = times or not scale
    count = language.cardinal(digits + "000" * times) if exact else _scaled(digits, scale, language)
    return language.joined([language.word("per_number"), count])


def _scaled(amount: str, scale: str | None, language: Language) -> str:
    if not scale:
        return language.number(amount)
    one, many = language.table("magnitudes")[scale]
    return language.joined([language.number(amount, "m"), one if language.is_one(amount) else many])


def _of(
    said: str, scale: str | None, names: Sequence[str], language: Language, one: bool = False
) -> str:
    """`cinq millions d'euros`: what stands between a large number and its noun."""
    name = names[0] if one else names[1]
    plain = language.tables.get("plain_magnitudes", ())
    if scale and language.table("magnitudes")[scale][0] not in plain:
        link = language.table("magnitude_elided").get(name[0], language.word("magnitude_of"))
        name = f"{link}{name}"
    return language.joined([said, name])


def _exact(amount: str, names: Sequence[str], language: Language, *, one: bool) -> str:
    singular, plural, cent, cents, gender = names
    whole, point, decimals = language.plain(amount).partition(".")
    whole = whole or "0"
    if not cent or (point and len(decimals) != 2):
        single = one or (language.is_one(amount))
        plural = f"{language.link(amount, plural)}{plural}"
        return language.joined([language.number(amount, gender), singular if single else plural])
    plural = f"{language.link(whole, plural)}{plural}"
    said = []
    if int(whole) or not point or not int(decimals):
        said.append(
            language.joined(
                [language.cardinal(whole, gender), singular if one or whole == "1" else plural]
            )
        )
    if point and int(decimals):
        small = decimals.lstrip("0")
        said.append(
            language.joined([language.cardinal(small, "m"), cent if small == "1" else cents])
        )
    return language.between(said[0], "cents_join", said[1]) if len(said) > 1 else said[0]


def _is_adjective(found: re.Match[str], language: Language) -> bool:
    """`a $5 bill` is a five dollar bill."""
    before = found.string[max(0, found.start() - 3) : found.start()].lower().lstrip()
    after = found.string[found.end() : found.end() + 2]
    return (
        language.family == "en"
        and before == "a "
        and after[:1] in (" ", "-")
        and after[1:].isalpha()
    )
