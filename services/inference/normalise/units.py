"""Numbers with a unit of measure: 5 kg, 20 °C, 60 km/h, 3.5 %. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from services.inference.normalise.fractions import FRACTIONS, fraction, is_scored
from services.inference.normalise.language import Language
from services.inference.normalise.numbers import up_to, year_or_number
from services.inference.normalise.rules import (
    DASH,
    Rule,
    any_of,
    ends_text,
    is_after_word,
    number,
    rule,
)

_ADJECTIVE: Final = re.compile(
    r"[ ](?!(?:of|in|to|at|from|per|and|or|a|is|was|for|on|by|each|with|as|long|wide|tall|high|deep"
    r"|away|if|but|so|than|that|before|after|then|less|more)\b)[a-z]{2}"
)
"""What stands behind a unit and is its noun."""
_MODEL: Final = re.compile(r"[A-Z]-$")
_NO_LENGTHS: Final = frozenset("mg g kg ml mL cl l L oz lb µg mcg min h W kW V GB MB TB".split())
"""So many times that amount: 2 x 500 mg."""


def rules(language: Language) -> list[Rule]:
    """Units that may stand apart from their number, and those that must stand at it."""
    n = number(language)
    scales = any_of(language.table("scales"))
    rates = language.tables.get("rates", ())
    apart, attached = language.table("units"), language.table("attached_units")
    both = any_of([*apart, *attached])
    quantity = rf"({n})(?:(?:[ ]?{both})?{DASH}({n}))?"
    slashed = any_of(name for name in apart if "/" in name and name[0].isascii())
    end = r"((?:/[^\W\d_]{1,12}[²³23]?){1,2})?(?![\w°]|/(?!\d)|['’]s)"
    # The point of a unit that is written short, inside a sentence.
    point = r"(?:\.(?=[ ][a-z\d]|[,;]))?"
    mark = re.escape(language.tables["decimal"])
    side = rf"\d{{1,5}}(?:{mark}\d{{1,3}})?(?:[\"”″](?=[ ]?[x×]))?"
    sides = rf"({side}(?:(?:[ ]x[ ]|x|[ ]?×[ ]?){side}){{1,3}})"
    made = [
        rule(
            "d",
            r"(\d{1,3})°[ ]?(\d{1,2})['’′](?:[ ]?(\d{1,2}(?:\.\d{1,3})?)(?:[\"”″]|''))?"
            r"(?:[ ]?([NSEW])(?!\w))?",
            _angle,
        ),
        rule(
            "d",
            rf"{sides}(?:[ ]?({any_of(apart)}|in\b(?:\.(?=[ ][a-z]))?)|([\"”″]))?(?![\w^])",
            _by,
        ),
        rule(
            "d",
            r"(\d{1,4}(?:\.\d{1,3})?)[ ]in"
            r"(?=[ ](?:long|wide|tall|high|deep|thick|across|of rain)(?!\w))",
            _inches_long,
        ),
        rule(
            "d",
            rf"({n})(?:[ ]?m?{DASH}({n}))?[ ]?m"
            rf"(?=[ ]{any_of(language.tables.get('counted', ()))}(?!\w))",
            _millions,
        ),
        rule(
            "d",
            rf"({n})([kKMB])?{DASH}({n})([kKMB])(?:/({any_of(rates)}))?(?![\w/])",
            _scaled_range,
        ),
        rule("d", r"(\d{1,3}(?:,\d{3}){1,2}(?=[kK])|\d{3}(?=K))[kK](?!\w)", _thousands),
        rule("d", r"(\d{1,3})([hj])/(\d{1,2})(?!\w)", _out_of_all),
        rule("l", rf"({slashed})(?![\w/])", _unit_alone),
        rule("s", rf"/({any_of([*apart, *rates])})(?![\w/])", _per_behind),
        rule("d", r"(\d{1,2})['’′][ ]?(\d{1,2})(?:[\"”″]|'')", _feet),
        rule("d", r"([3-8])['’′](1[01]|\d)(?![\w'’/]|[.,]\d)", _height),
        rule("d", r"(\d{1,2})[ ]?ft\.?[ ]?(\d{1,2})[ ]?in(?!\w)(?:\.(?=[ ][a-z]|[,;]))?", _feet),
        rule(
            "d",
            rf"(\d{{1,3}}(?:{mark}\d{{1,2}})?)(?:[\"”″](?=[ ][^\W\d_]|[,.;)、，。]|$))",
            _inches,
        ),
        rule("d", r"(\d{1,3}/\d{1,3})[\"”″](?=[ ][a-z])", _part_of_inch),
        rule("d", rf"({n})/({any_of(rates)})(?!\w)", _rate),
        rule(
            "ds", rf"(\d{{1,3}}/\d{{1,3}}|[½⅓⅔¼¾])[ ]?({any_of(apart)})(?![\w/]){point}", _part_of
        ),
        rule("d", rf"{quantity}[ \u00a0\u202f]?({any_of(apart)}){end}{point}", _measure),
        rule("d", rf"{quantity}({any_of(attached)}){end}", _measure),
        rule("d", rf"({n})[ ]K(?!\w)", _kelvin),
        rule("d", rf"({n})[ ]?({scales})(?!\w)", _scaled),
    ]
    if language.spaced:
        made.insert(
            0,
            rule("d", rf"(\d{{1,2}})[ ]?x[ ]?/[ ]?({any_of([*apart, *rates])})(?!\w)", _times_per),
        )
    if language.family == "pt":
        made.insert(0, rule("d", r"(\d{1,2})/\1[ ]?h(?!\w)", _every))
    # 1h30m: units of time in a row are one amount.
    if language.table("durations"):
        hours, minutes, seconds = (any_of(names) for names in language.tables["durations"])
        pattern = (
            rf"(?:(\d{{1,3}})[ ]?{hours}[ ]?)?(\d{{1,2}})[ ]?{minutes}"
            rf"(?:[ ]?(\d{{1,2}})[ ]?{seconds})?(?!\w)"
        )
        made.insert(0, rule("d", pattern, _duration))
    return made


def _scaled(found: re.Match[str], language: Language) -> str | None:
    """1.5M, 7B: a million, a billion."""
    number_, sign = found[1], found[2]
    after = found.string[found.end() : found.end() + 2]
    if sign in ("k", "K") and len(number_) < 3:
        return None  # 4K, 10k: said as they are written
    if sign == "T" and found[0][-2] == " ":
        return None  # a tablespoon
    if sign == "B" and not after[1:].islower():
        return None  # 221B Baker Street, seat 12B
    return f"{language.number(number_)} {language.table('scales')[sign]}"


def names_of(unit: str, language: Language) -> Sequence[str]:
    """Singular, plural and gender of a unit."""
    apart: Sequence[str] | None = language.table("units").get(unit)
    names: Sequence[str] = apart or language.table("attached_units").get(unit, (unit, unit, "m"))
    return names


def each(unit: str, language: Language) -> str:
    """`per day`; all'ora, where the language has a word of its own for it."""
    phrase: str | None = language.table("each").get(unit)
    return phrase or language.joined([language.word("per"), names_of(unit, language)[0]])


def _measure(found: re.Match[str], language: Language) -> str | None:
    first, last, unit, per = found.groups()
    if unit == "s" and _MODEL.search(found.string[max(0, found.start() - 6) : found.start()]):
        return _plural(language.number(first)) if language.family == "en" else None
    singular, plural, gender = names_of(unit, language)
    said = language.number(first, gender)
    if last:
        said = up_to(said, language.number(last, gender), language)
    is_one = last is None and (
        language.is_one(first) or (not per and _is_adjective(found, language))
    )
    name = singular if is_one else plural
    if last is None and not is_one:
        name = f"{language.link(first, name)}{name}"
    said = name.format(said) if "{}" in name else language.joined([said, name])
    for unit_ in per.strip("/").split("/") if per else ():
        said = language.joined([said, each(unit_, language)])
    if unit.endswith(".") and ends_text(found):
        said += "."
    # un'ora
    return re.sub("^una (?=[aeiou])", "un'", said) if language.family == "it" else said


def _plural(name: str) -> str:
    """The fifty twos of B-52s."""
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("x") else f"{name}s"


def _is_adjective(found: re.Match[str], language: Language) -> bool:
    """A 5 km run is a five kilometer run."""
    before = found.string[max(0, found.start() - 4) : found.start()].lower()
    return (
        language.family == "en"
        and re.search(r"(?:^|\s)an? $", before) is not None
        and found[3][0].isalpha()
        and _ADJECTIVE.match(found.string, found.end()) is not None
    )


def _by(found: re.Match[str], language: Language) -> str:
    """1920x1080, 10 × 20 cm: sides, or 3×4, which is a product."""
    sides = re.findall(r"\d+(?:[.,]\d+)?", found[1])
    unit = found[2]
    if found[0] == "24x7":
        return language.joined([language.cardinal("24"), language.cardinal("7")])
    if unit is None and not found[3] and is_scored(found, language) and max(map(len, sides)) == 1:
        return language.between(language.cardinal(sides[0]), "ratio", language.cardinal(sides[1]))
    if found[3] or (unit or "").startswith("in"):
        unit = '"'
    elif unit in _NO_LENGTHS and len(sides) == 2:  # 2 x 500 mg
        amount = _measured_side(sides[1], unit, language)
        return language.between(language.number(sides[0]), "times", amount)
    equals = found.string.startswith(("=", " ="), found.end())
    is_product = equals or ("×" in found[1] and max(map(len, sides)) < 3 and not found[2])
    word = language.word("times" if is_product else "by")
    gap = " " if language.spaced else ""
    said = f"{gap}{word}{gap}".join(map(_side, sides, [language] * len(sides)))
    if unit == '"':
        is_adjective = language.family == "en" and _ADJECTIVE.match(found.string, found.end())
        dot = "." if found[0].endswith(".") and ends_text(found) else ""
        return language.joined([said, language.tables["inch"][not is_adjective]]) + dot
    return language.joined([said, names_of(unit, language)[1]]) if unit else said


def _measured_side(digits: str, unit: str, language: Language) -> str:
    singular, plural, gender = names_of(unit, language)
    name = singular if language.is_one(digits) else plural
    return language.joined([language.number(digits, gender), name])


def _side(digits: str, language: Language) -> str:
    return year_or_number(digits, language) if language.family == "en" else language.number(digits)


def _part_of(found: re.Match[str], language: Language) -> str | None:
    """`three quarters of a teaspoon`."""
    part = fraction(found[1], language)
    if part is None:
        pair = f" {language.word('over')} ".join(
            map(language.number, FRACTIONS.get(found[1], found[1]).split("/"))
        )
        return f"{pair} {names_of(found[2], language)[1]}"
    half = language.table("half").get(names_of(found[2], language)[2])
    if half is not None and found[1] in ("1/2", "½"):
        return f"{half} {names_of(found[2], language)[0]}"
    link, name = language.word("part_of"), names_of(found[2], language)[0]
    if language.family == "en" and name[0] in "aeio":
        link = "of an "
    if language.family == "en" and found[1] in ("1/2", "½"):
        part, link = "half", link.removeprefix("of ")
    return f"{part} {link}{name}"


def _part_of_inch(found: re.Match[str], language: Language) -> str | None:
    part = fraction(found[1], language) if language.family == "en" else None
    return f"{part} inch" if part else None


def _rate(found: re.Match[str], language: Language) -> str:
    """3/day, 5/wk."""
    return f"{language.number(found[1])} {each(found[2], language)}"


def _per_behind(found: re.Match[str], language: Language) -> str | None:
    """365 days/yr: behind something that was counted."""
    before = found.string[max(0, found.start() - 40) : found.start()]
    counted = language.spaced and re.search(r"\d[ ][^\W\d_]{3,20}$", before)
    return f" {each(found[1], language)}" if counted else None


def _times_per(found: re.Match[str], language: Language) -> str:
    """3x/day."""
    times = f"{language.cardinal(found[1], 'f')} {language.word('times_a')}"
    return f"{times} {each(found[2], language)}"


def _every(found: re.Match[str], language: Language) -> str:
    """De 8/8 h is every eight hours in Portuguese."""
    count = language.cardinal(found[1], "f")
    return f"{count} em {count} horas"


def _angle(found: re.Match[str], language: Language) -> str | None:
    """40° 26′ 46″ N."""
    names = language.tables.get("durations")
    if not names:
        return None
    degrees, minutes, seconds, way = found.groups()
    said = [f"{language.number(degrees)} {names_of('°', language)[1]}"]
    for amount, unit in ((minutes, names[1][-1]), (seconds, names[2][-1])):
        if amount:
            said.append(f"{language.number(amount)} {names_of(unit, language)[1]}")
    compass = language.table("compass").get(way or "")
    return " ".join([*said, compass] if compass else said)


def _inches_long(found: re.Match[str], language: Language) -> str | None:
    if language.family != "en":
        return None
    return f"{language.number(found[1])} {names_of('in.', language)[not language.is_one(found[1])]}"


def _millions(found: re.Match[str], language: Language) -> str:
    """5m users, 10-20m people."""
    said = language.number(found[1])
    if found[2]:
        said = up_to(said, language.number(found[2]), language)
    return f"{said} {language.table('scales')['M']}"


def _thousands(found: re.Match[str], language: Language) -> str | None:
    """300K, 1,500K; of i7-700K they are a name's."""
    if language.family != "en" or found.string[found.start() - 1 : found.start()] == "-":
        return None
    return language.cardinal(found[1].replace(",", "") + "000")


def _scaled_range(found: re.Match[str], language: Language) -> str:
    """5-10k, 100K-200K, 500K-2M, 5-10k/day."""
    first, first_sign, last, sign, per = found.groups()
    names = language.table("magnitudes")
    low, high = language.number(first), language.number(last)
    if first_sign and first_sign != sign:
        low = f"{low} {names[first_sign][1] if first_sign in names else first_sign}"
    name = names[sign][1] if sign in names else language.letters(sign)
    said = f"{up_to(low, high, language)} {name}"
    return f"{said} {each(per, language)}" if per else said


def _height(found: re.Match[str], language: Language) -> str | None:
    """He is 5'4."""
    return _feet(found, language) if language.family == "en" else None


def _out_of_all(found: re.Match[str], language: Language) -> str | None:
    """24h/24 and 7j/7 in French."""
    if language.family != "fr":
        return None
    amount = f"{language.cardinal(found[1], 'f')} {names_of(found[2], language)[1]}"
    return f"{amount} {language.word('out_of')} {language.cardinal(found[3])}"


def _unit_alone(found: re.Match[str], language: Language) -> str | None:
    """Speed in km/h."""
    return None if is_after_word(found) else names_of(found[1], language)[1].replace("{}", "")


def _kelvin(found: re.Match[str], language: Language) -> str | None:
    """300 K; 300K is 300,000."""
    name: str | None = language.tables.get("kelvin")
    return f"{language.number(found[1])} {name}" if name else None


def _feet(found: re.Match[str], language: Language) -> str:
    """5'11\"."""
    template: str = language.tables["feet"]
    return template.format(language.cardinal(found[1]), language.cardinal(found[2]))


def _inches(found: re.Match[str], language: Language) -> str | None:
    """A 12" pizza: the mark does not end a quotation."""
    before = found.string[max(0, found.start() - 200) : found.start()]
    if re.search(r'[“„«]|(?<!\d)"', before):
        return None
    one, many = language.tables["inch"]
    is_adjective = language.family == "en" and _ADJECTIVE.match(found.string, found.end())
    name = one if is_adjective or language.is_one(found[1]) else many
    return language.joined([language.number(found[1]), name])


def _duration(found: re.Match[str], language: Language) -> str | None:
    counts = found.groups()
    if sum(count is not None for count in counts) < 2:
        return None
    said = []
    for count, names in zip(counts, language.tables["durations"], strict=True):
        if count is not None:
            singular, plural, gender = names_of(names[-1], language)
            name = singular if language.is_one(count) else plural
            said.append(f"{language.cardinal(count.lstrip('0') or '0', gender)} {name}")
    return " ".join(said)
