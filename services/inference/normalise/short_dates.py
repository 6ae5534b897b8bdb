"""Days without a year, months of a year: Tue 3/4, le 28/11, 12/2027, in Oct., closed Sun. Pure.

3/4 may be three quarters as well: what stands in front and behind decides.
"""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.dates import months_of, say
from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, any_of, ends_text, rule

_NO_DATES: Final = frozenset("24/7 16/9 21/9 9/11 20/10 18/10 15/10 14/10".split())
_COMMON_PARTS: Final = frozenset("1/2 1/3 2/3 1/4 3/4".split())
_DIVIDED_IN: Final = (16, 20, 24, 25, 30)
"""No day of the month, unless it is said so."""
_OF: Final = re.compile(r"[ ]*(?:of|de|des|di|del|da|do|d'|cup|inch|full|done)(?!\w)|%")
_ENDS: Final = re.compile(
    r"$|[,.;:)!?]|[ ][-–]"
    r"|[ ](?:to|at|and|or|until|works?|is|à|au|et|ou|al?|alle|y|e|o|às|ao|até)(?!\w)"
)
_ELIDED: Final = re.compile(r"(?:^|[\s(])(?:l|all|dall|dell|nell)'$", re.IGNORECASE)
"""L'8/5; of most fractions one speaks without it."""
_IN: Final = re.compile(
    r"(?:^|[\s(])(?:in|of|since|until|by|from|to|late|early|mid|last|next|this)[ -]$"
)
_ON: Final = re.compile(
    r"(?:^|[\s(])(?:on|closed|open|by|until|till|every|each|next|last|this|to)[ ]$"
)


def rules(language: Language) -> list[Rule]:
    """Numbers, then names that are short where a sentence goes on."""
    if not language.spaced:
        return []
    year = r"(1\d{3}|20\d{2}|2[1-9]\d{2})"
    unit = rf"[ ]?(?:{any_of(language.table('units'))}(?!\w)|[\"”″])"
    ahead = any_of(language.table("weekday_before_date"))
    made = [
        rule("d", rf"(\d{{1,2}})/(\d{{1,2}})(?!\d|[/.,:]\d|{unit})", _day),
        rule("d", rf"(0?[1-9]|1[0-2])/{year}(?![\d/])", _month_of_year),
        rule("l", rf"({ahead})(?=[ ]\d{{1,2}}/\d{{1,2}}(?!\d))", _weekday_ahead),
    ]
    if language.family == "en":
        months = any_of(language.table("month_short"))
        weekdays = any_of(language.table("weekday_short"))
        made.append(rule("l", rf"({months})\.(?=[ ][a-z]|[,;:?!]|$)", _month_behind))
        made.append(rule("l", rf"({weekdays})\.(?=$|[ ][a-z])", _weekday_behind))
    return made


def _before(found: re.Match[str], characters: int = 24) -> str:
    return found.string[max(0, found.start() - characters) : found.start()]


def _day(found: re.Match[str], language: Language) -> str | None:
    month_first = language.tables["date_order"] == "mdy"
    day, month = found.groups()[::-1] if month_first else found.groups()
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31) or found[0] in _NO_DATES:
        return None
    elided = language.family == "it" and _ELIDED.search(_before(found)) is not None
    can_be_part = int(day) < 13 or (month_first and int(day) in _DIVIDED_IN)
    is_part = _OF.match(found.string, found.end()) or (
        can_be_part and not _is_dated(found, language)
    )
    if is_part and not elided and not _is_certain(found, language):
        return None
    return say(None, language.tables["months"][int(month) - 1], day, None, language, elided=elided)


def _is_certain(found: re.Match[str], language: Language) -> bool:
    """Behind a weekday, and the second of `from 5/6 to 5/9`."""
    return _is_behind(_weekdays(language), found) or _is_last(language, found)


def _is_dated(found: re.Match[str], language: Language) -> bool:
    """Due 5/6; le 3/4, but not le 3/4 temps; by 6/1."""
    if _is_behind(language.tables["dated"], found):
        return found[0] not in _COMMON_PARTS or bool(_ENDS.match(found.string, found.end()))
    is_improper = int(found[1]) > int(found[2])
    return language.family == "en" and is_improper and _before(found, 4).lower() == " by "


def _weekdays(language: Language) -> list[str]:
    short = language.table("weekday_short")
    ahead = language.table("weekday_before_date")
    return [*language.tables["weekdays"], *short, *short.values(), *ahead]


def _is_behind(words: list[str], found: re.Match[str]) -> bool:
    return re.search(rf"(?:^|[\s(]){any_of(words)}\.?,?[ ](?:the[ ])?$", _before(found)) is not None


def _is_last(language: Language, found: re.Match[str]) -> bool:
    """The second of `from 5/6 to 5/9`."""
    first = rf"{any_of(language.tables['dated'])}[ ]\d{{1,2}}/\d{{1,2}}"
    return re.search(rf"{first}[ ](?:to|until|through|al|au|a|ao)[ ]$", _before(found)) is not None


def _month_of_year(found: re.Match[str], language: Language) -> str:
    """12/2027."""
    template: str = language.tables["date_year"].replace(",", "")
    month = language.tables["months"][int(found[1]) - 1]
    return template.format(date=month, year=language.year(found[2]))


def _weekday_ahead(found: re.Match[str], language: Language) -> str:
    """Mar 3/4 is Tuesday in Spanish; alone it is the sea."""
    name: str = language.table("weekday_before_date")[found[1]]
    return name


def _month_behind(found: re.Match[str], language: Language) -> str | None:
    """The second Monday in Oct. is a holiday."""
    return _named(found, _IN, months_of(language)[found[1]])


def _weekday_behind(found: re.Match[str], language: Language) -> str | None:
    """Closed Sun."""
    return _named(found, _ON, language.table("weekday_short")[found[1]])


def _named(found: re.Match[str], heads: re.Pattern[str], name: str) -> str | None:
    if not heads.search(_before(found, 12)):
        return None
    return name + ("." if ends_text(found) else "")
