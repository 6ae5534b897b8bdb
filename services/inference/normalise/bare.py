"""Letters that are a unit only where the words around say so: 37C, 5 A, 99p, 1m70, a 5-km run.

Seat 37C, plan 5 A and figure 9c are written as they are. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.fractions import FRACTIONS, mixed
from services.inference.normalise.language import Language
from services.inference.normalise.numbers import up_to
from services.inference.normalise.rules import (
    DASH,
    Rule,
    any_of,
    is_after_word,
    is_word,
    number,
    rule,
)
from services.inference.normalise.units import names_of

_BITS_AHEAD: Final = re.compile(r"(?<!\d)[01]['’]?s(?:,|,?[ ](?:and|or|y|o|e|ou)|/)?[ ]?$")
_BITS_BEHIND: Final = re.compile(r"(?:,|,?[ ](?:and|or|y|o|e|ou)|/)?[ ]?[01]['’]?s(?!\w)")
_THE: Final = re.compile(r"(?<!\w)[Tt]he[ ]$")
_MANY: Final = re.compile(
    r"(?<!\w)(?:all|many|leading|trailing|several|straight|consecutive|no|more|some|both"
    r"|string of|two|three|four|five|six|seven"
    r"|row of|number of|count of|lots? of|full of|series of)[ ]$",
    re.IGNORECASE,
)
_ELECTRIC: Final = re.compile(r"\d[ ]?[km]?[VWΩ](?![A-Za-z])")
_FUSED: Final = re.compile(
    r"[ ](?:fuse|charger|breaker|circuit|current|supply|outlet|socket|max)\b"
)
_SCHOOL: Final = re.compile(r"[ -](?:levels?|grades?|stars?|students?|teams?|games?|list)\b")
_EACH: Final = re.compile(r"[ ](?:each|apiece|a|an|per|off|coins?|piece)\b")
_COIN: Final = re.compile(r"[ ](?:coins?|piece|stamps?|note)\b")
_WEATHER: Final = re.compile(
    r"[ ](?:outside|inside|today|tonight|tomorrow|out|here|hoy|mañana|afuera|aujourd'hui|dehors"
    r"|demain|oggi|fuori|domani|hoje|amanhã|तापमान)(?!\w)"
)
_HEATED: Final = re.compile(r"temperat|weather|forecast|oven|horno|four|forno|météo|tempo", re.I)
_TO_ANOTHER: Final = re.compile(r"[ ](?:to|or|and|a|à|o|ou)[ ]\d{1,3}[ ]?[CF](?!\w)")
_TEMPERATURE: Final = re.compile(
    r"\d[ ]?°?[ ]?[CF][ ]?(?:[/(–-]|or|and|to|a|à|y|e|et|o|ou|und)[ ]?$"
)


def rules(language: Language) -> list[Rule]:
    """Each is tried before the letter is taken for a part of a name."""
    n = number(language)
    made = [
        rule("d", rf"({n})(?:{DASH}({n}))?([ ]?)([CF])(?![\w°+#/])(?![ ][A-Z])", _degrees),
        rule("d", rf"({n})(?:{DASH}({n}))?([CF])(?=/\d{{1,3}}[CF](?!\w))", _degrees_of_both),
        rule("d", rf"({n})([ ]?)A(?![\w+&'’/])(?!\.\w)", _amperes),
    ]
    if "digit_plurals" in language.tables:
        made.append(rule("d", r"(\d)['’]?s(?![\w'’-])", _several))
    if language.table("small_change"):
        made.append(
            rule("d", r"(\d{1,2})([pc])(?![\w.'’/])|(\d{1,2})([pc])(?=\.(?:[ ]|$))", _coins)
        )
    if "floors" in language.tables:
        made.append(rule("ld", r"(B)?(\d{1,2})F(?![\w°])", _floor))
    if "metres" in language.tables:
        made.append(rule("d", r"([1-9])m(\d\d)(?!\w)", _metres))
    if language.family == "en":
        units = any_of(unit for unit in language.table("units") if unit.isalpha())
        made.append(rule("d", rf"({n})-({units})(?=[ ][a-z])", _compound))
        parts = rf"(\d{{1,3}})(?:[ -](\d{{1,2}}/\d{{1,2}})|[ ]?([{''.join(FRACTIONS)}]))"
        made.append(rule("d", rf"{parts}[ ]?({units})(?![\w/])", _mixed_units))
        made.append(
            rule("d", r"(\d{1,3})[ -](\d{1,2}/\d{1,2})(?:[ ]?in(?!\w)|[\"”″])", _mixed_inches)
        )
    return made


def _head(found: re.Match[str]) -> str:
    return found.string[max(0, found.start() - 32) : found.start()]


def _is_place(found: re.Match[str], language: Language) -> bool:
    """Seat 14C, my seat is 14C: something with a number and a letter is spoken of."""
    clause = re.split("[,;.]", _head(found).lower())[-1]
    words = re.findall(r"\w+", clause)[-3:] if language.spaced else [_head(found)]
    names = {*language.tables["places"], *language.tables.get("lettered", ())} - {"and", "or", "to"}
    if not language.spaced:
        return words[0].endswith(tuple(names))
    return not names.isdisjoint(words)


def _degrees(found: re.Match[str], language: Language) -> str | None:
    """Behind a minus, behind a word as `near`, between two of them."""
    first, last, gap, scale = found.groups()
    before = _head(found)
    if _is_place(found, language) or is_after_word(found):
        return None
    is_below = re.search(r"(?:^|[\s(])[-−–]$", before) or (last and not gap)
    near = _TEMPERATURE.search(before) or _WEATHER.match(found.string, found.end())
    exact = not first.isdecimal() or _HEATED.search(before)
    if is_below or near or exact or _TO_ANOTHER.match(found.string, found.end()):
        return _measured(first, last, f"°{scale}", language)
    head = before.rstrip(" ~")
    named = re.search(rf"{any_of(language.tables['heat'])}$", head, re.IGNORECASE)
    if named is None or len(first) < 2 or (language.spaced and is_word(head[: named.start()][-1:])):
        return None
    return _measured(first, last, f"°{scale}", language)


def _degrees_of_both(found: re.Match[str], language: Language) -> str:
    """350F/180C."""
    return f"{_measured(found[1], found[2], f'°{found[3]}', language)},"


def _measured(first: str, last: str | None, unit: str, language: Language) -> str:
    singular, plural, gender = names_of(unit, language)
    said = language.number(first, gender)
    if last:
        said = up_to(said, language.number(last, gender), language)
    name = singular if last is None and language.is_one(first) else plural
    return name.format(said) if "{}" in name else language.joined([said, name])


def _amperes(found: re.Match[str], language: Language) -> str | None:
    """5 A beside volts; 2.4 A; not five A levels."""
    around = found.string[max(0, found.start() - 24) : found.end() + 24]
    after = found.string[found.end() : found.end() + 16]
    if is_after_word(found) or _is_place(found, language) or _SCHOOL.match(after):
        return None
    is_electric = bool(_ELECTRIC.search(around) or _FUSED.match(after))
    is_apart = bool(found[2]) and (
        not re.fullmatch(r"\d+", found[1]) or not after[:2].strip(" .,;)")
    )
    if not is_electric and not is_apart:
        return None
    singular, plural, gender = language.tables["ampere"]
    name = singular if language.is_one(found[1]) else plural
    return language.joined([language.number(found[1], gender), name])


def _coins(found: re.Match[str], language: Language) -> str | None:
    """99p, 50c; 5c is one only where something costs so much."""
    digits, coin = found[1] or found[3], found[2] or found[4]
    if _is_place(found, language) or is_after_word(found):
        return None
    if len(digits) == 1 and not _EACH.match(found.string, found.end()):
        return None
    one, many = language.table("small_change")[coin]
    if coin == "c" and _COIN.match(found.string, found.end()):
        many = one
    return f"{language.number(digits)} {one if digits == '1' else many}"


def _several(found: re.Match[str], language: Language) -> str | None:
    """Zeros and ones; a wait of 5s is one of seconds."""
    before, after = _head(found), found.string[found.end() : found.end() + 12]
    is_bit = found[1] in "01" and (
        _BITS_AHEAD.search(before) or _BITS_BEHIND.match(after) or _THE.search(before)
    )
    if not is_bit and not _MANY.search(before):
        return None
    name: str = language.tables["digit_plurals"][int(found[1])]
    return name


def _metres(found: re.Match[str], language: Language) -> str:
    """A height: un mètre soixante-dix."""
    template: str = language.tables["metres"][found[1] != "1"]
    return template.format(
        language.cardinal(found[1], "m"), language.cardinal(found[2].lstrip("0"))
    )


def _floor(found: re.Match[str], language: Language) -> str | None:
    """3F and B1F of a building."""
    if is_after_word(found):
        return None
    template: str = language.tables["floors"][bool(found[1])]
    return template.format(language.cardinal(found[2]))


def _compound(found: re.Match[str], language: Language) -> str:
    """A ten kilogram bag."""
    return f"{language.number(found[1])} {names_of(found[2], language)[0]}"


def _mixed_units(found: re.Match[str], language: Language) -> str | None:
    """2-1/4 tsp, 2½ lb."""
    part = mixed(found[1], found[2] or FRACTIONS[found[3]], language)
    return None if part is None else f"{part} {names_of(found[4], language)[1]}"


def _mixed_inches(found: re.Match[str], language: Language) -> str | None:
    """1-1/2 in, 2 3/4"."""
    part = mixed(found[1], found[2], language)
    return None if part is None else f"{part} {language.tables['inch'][1]}"
