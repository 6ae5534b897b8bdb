"""Days and months: 2024-05-01, 05/01/2024, May 1, 1 May 2024, Jan. 5, 2024-05-01T10:30Z. Pure."""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.numbers import up_to
from services.inference.normalise.rules import Rule, any_of, ends_text, is_after_word, rule

_DECADE_AHEAD: Final = re.compile(r"\d\d\d0s(?: (?:and|or|to)|[-–])$")
_YEAR: Final = r"(1\d{3}|20\d{2}|2[1-9]\d{2})"


def rules(language: Language) -> list[Rule]:
    """Numbers first, then months by name, in front of the day and behind it."""
    months = any_of(months_of(language))
    day = r"(3[01]|[12]\d|0?[1-9])"
    th = language.tables["day_marks"]
    to = r"(?:[ ]?[-–—][ ]?(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?)?"
    of = language.tables["day_of"]
    year = rf"(?:,?[ ](?:{of})?{_YEAR}(?![\d,.:/-]\d|\d))?"
    # "May 5" is a day, "may 5 people" is not: months that are words need their capital.
    made = [
        rule(
            "d",
            rf"{_YEAR}([-/.])(0?[1-9]|1[0-2])\2{day}(?!\d|[-/.]\d)(?:T(?=\d)|[ ](?=\d\d:\d\d))?",
            _iso,
        ),
        rule("d", r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\w/]|[.-]\d)", _numeric),
        rule("d", rf"{day}{th}{to}[ ](?:{of})?({months})(?!\w)(?:\.(?=,?[ ]))?{year}", _day_month),
    ]
    if language.family == "en":
        made.append(rule("ds", r"(\d\d|['’])?(\d0)s[-–—](\d\d|['’])?(\d0)s(?!\w)", _decades))
        made.append(rule("ds", r"(?:(\d\d)|(['’])?)(\d0)['’]?s(?!\w)", _decade))
        made.append(
            rule(
                "l",
                rf"({months})\.?[ ]{day}{th}{to}(?![\w%]|[.,:/-]\d|[ ]?(?:%|am\b|pm\b)){year}",
                _month_day,
            )
        )
    made.append(rule("s", r"['’](\d\d)(?![\w'’])", _short_year))
    if language.family == "it":
        made.append(rule("s", r"['’]([2-9]00)(?![\w'’])", _century_of))
    short = any_of(language.table("month_short"))
    weekdays = any_of(language.table("weekday_short"))
    made.append(rule("l", rf"(?P<x>({short})\.?)(?=[ ]{_YEAR}(?!\d))", _month))
    near = rf"(?:\.(?=,?[ ][\w&])|(?=,[ ]|[ ]\d|[ ]?[&/][ ]?{weekdays}))"
    made.append(rule("l", rf"({weekdays}){near}", _weekday))
    made.append(rule("l", rf"({weekdays})\.?[-–]({weekdays})\.?(?!\w)", _weekdays))
    made.append(rule("l", rf"({weekdays})(?!\w)", _another_weekday))
    made.append(
        rule(
            "l",
            rf"({months})\.?([-–/]|[ ]&[ ])({months})(?!\w)(?:\.(?=,|[ ][a-z\d]))?",
            _months_between,
        )
    )
    return made


def months_of(language: Language) -> dict[str, str]:
    """Every way to write a month, and its name."""
    names = {name: name for name in language.tables["months"]}
    return names | dict(language.table("month_short"))


def say(
    year: str | None,
    month: str,
    day: str,
    last: str | None,
    language: Language,
    *,
    day_first: bool = False,
    elided: bool = False,
) -> str:
    """A date as the language says it; `last`: the day up to which it goes."""
    said = _day(day, language, counted=elided)
    if last:
        said = up_to(said, _day(last, language), language)
    if language.tables["date_order"] == "mdy" and not day_first:
        date = f"{month} {said}"
    else:
        date = language.tables["day_month"].format(day=said, month=month)
    if not year:
        return date
    template: str = language.tables["date_year"]
    return template.format(date=date, year=language.year(year))


def _day(day: str, language: Language, *, counted: bool = False) -> str:
    """The first of a month has a name of its own, unless it is `counted`: l'1 maggio."""
    digits = day.lstrip("0")
    if counted:
        return language.cardinal(digits)
    if language.family == "en" or digits in language.table("first_days"):
        return language.ordinal(digits)
    return language.cardinal(digits)


def _iso(found: re.Match[str], language: Language) -> str:
    year, _, month, day = found.groups()
    said = say(year, language.tables["months"][int(month) - 1], day, None, language)
    if found[0][-1].isdecimal():
        return said
    return language.joined([said, language.word("time_at")]) + (" " if language.spaced else "")


def _numeric(found: re.Match[str], language: Language) -> str | None:
    first, mark, second, year = found.groups()
    month_first = language.tables["date_order"] == "mdy" and mark != "."
    month, day = (first, second) if month_first else (second, first)
    if int(month) > 12:
        month, day = day, month
    if not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return None
    if len(year) == 2:
        if mark != "/":
            return None
        year = f"20{year}" if int(year) < 70 else f"19{year}"
    return say(year, language.tables["months"][int(month) - 1], day, None, language)


def _century_of(found: re.Match[str], language: Language) -> str | None:
    """Nel '900."""
    return language.cardinal(found[1])


def _day_month(found: re.Match[str], language: Language) -> str | None:
    day, last, month, year = found.groups()
    before = found.string[max(0, found.start() - 4) : found.start()].lower()
    of = re.search(r"\d(?:st|nd|rd|th) of ", found[0])
    if language.family == "en" and (of or before == "the "):  # the fifth of May stays so
        said = say(
            None, months_of(language)[month], day, last, language, day_first=True
        ).removeprefix("the ")
        return said + (f", {language.year(year)}" if year else "")
    elided = before.endswith("'")
    return say(year, months_of(language)[month], day, last, language, elided=elided)


def _month_day(found: re.Match[str], language: Language) -> str | None:
    month, day, last, year = found.groups()
    said = f"{months_of(language)[month]} {_day(day, language)}"
    if last:
        said = up_to(said, _day(last, language), language)
    return said + (f", {language.year(year)}" if year else "")


def _month(found: re.Match[str], language: Language) -> str | None:
    months = months_of(language)
    return months.get(found["x"]) or months[found["x"].rstrip(".")]


def _weekdays(found: re.Match[str], language: Language) -> str:
    names = language.table("weekday_short")
    said = up_to(names[found[1]], names[found[2]], language)
    return said + ("." if found[0].endswith(".") and ends_text(found) else "")


def _weekday(found: re.Match[str], language: Language) -> str | None:
    if found[1] == "Sun" and found.string[max(0, found.start() - 4) : found.start()] == "the ":
        return None
    name: str = language.table("weekday_short")[found[1]]
    return name


def _another_weekday(found: re.Match[str], language: Language) -> str | None:
    """The last of Mon/Wed/Fri, Sat & Sun."""
    before = found.string[max(0, found.start() - 6) : found.start()]
    names = any_of(language.table("weekday_short"))
    return _weekday(found, language) if re.search(rf"{names}\.?[ ]?[&/][ ]?$", before) else None


def _months_between(found: re.Match[str], language: Language) -> str:
    """Jan-Mar, Jan & Feb, and Apr/May beside each other."""
    first, mark, last = months_of(language)[found[1]], found[2], months_of(language)[found[3]]
    if mark in ("-", "–"):
        return up_to(first, last, language)
    return " ".join([first, *([language.word("and")] if "&" in mark else []), last])


def _short_year(found: re.Match[str], language: Language) -> str | None:
    """'99, but not a quoted number."""
    if found.string[found.start() - 1 : found.start()] != " ":
        return None
    digits = found[1]
    if language.family != "en":
        return language.cardinal(digits.lstrip("0") or "0")
    return f"oh {language.cardinal(digits[1])}" if digits[0] == "0" else language.cardinal(digits)


def _decade(found: re.Match[str], language: Language) -> str | None:
    century, mark, tens = found.groups()
    if not century and not mark and (is_after_word(found) or not _of_people(found)):
        return None
    return _named_decade(century, tens, language)


def _decades(found: re.Match[str], language: Language) -> str | None:
    """1920s-30s."""
    if not found[1] and (is_after_word(found) or not _of_people(found)):
        return None
    centuries = [(found[i] or "").strip("'’") for i in (1, 3)]
    first, last = (
        _named_decade(century, found[2 * i + 2], language) for i, century in enumerate(centuries)
    )
    return up_to(first, last, language)


def _named_decade(century: str | None, tens: str, language: Language) -> str:
    if century and tens == "00":
        return f"{language.year(century + tens)}s" if century != "20" else "two thousands"
    name = language.cardinal(tens)
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{language.cardinal(century)} {plural}" if century else plural


def _of_people(found: re.Match[str]) -> bool:
    """`in her 30s`, `the 80s`: other numbers with an s are seconds."""
    before = found.string[max(0, found.start() - 12) : found.start()].lower().rstrip()
    words = (
        "the",
        "her",
        "his",
        "their",
        "my",
        "our",
        "your",
        "early",
        "late",
        "mid",
        "mid-",
    )
    return before.endswith(words) or _DECADE_AHEAD.search(before) is not None
