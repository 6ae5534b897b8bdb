"""Times of day and ratios: 10:30 a.m., 14:05, 3pm, 12h30, 16:9. Pure."""

from __future__ import annotations

import re

from services.inference.normalise.fractions import and_a_half
from services.inference.normalise.language import Language
from services.inference.normalise.numbers import is_year, up_to
from services.inference.normalise.rules import Rule, ends_text, rule
from services.inference.normalise.units import names_of

_HALF = r"(?:[ \u00a0\u202f]?([aApP])\.?[ ]?[mM](?:\.|(?!\w)))"
_CLOCK = r"([01]?\d|2[0-4])"


def rules(language: Language) -> list[Rule]:
    """Times with a half of the day, times without, ratios."""
    after = language.tables.get("clock_end", "")
    parts = r"\." if language.tables["decimal"] == "." else "[.,]"
    plain = rf"{_CLOCK}:([0-5]\d)"
    oclock = "(?:[ ]o'clock(?!\\w))?" if language.family == "en" else ""
    made = [
        rule(
            "d",
            rf"{plain}[ ]?[-–—][ ]?{plain}(?:[ ]?h(?!\w))?(?![:\d]|[ ]?[aApP]\.?[mM]){after}",
            _clocks,
        ),
        rule(
            "d",
            rf"{_CLOCK}(?::([0-5]\d))?[ ]?[-–][ ]?{_CLOCK}(?::([0-5]\d))?(?![\d:\w-]|[.,]\d)"
            r"(?![ ]?(?:[aApP]\.?[mM]|[a-z]{1,3}(?!\w)))",
            _clock_and_hour,
        ),
        rule("d", rf"(\d{{1,2}}):([0-5]\d){parts}(\d{{1,3}})(?![\d:]|[.,]\d)", _lap),
        rule("d", rf"{_CLOCK}\.([0-5]\d)[ ]?h(?!\w)", _pointed_hour),
        rule("d", rf"{_CLOCK}\.([0-5]\d)(?![\d.,]\d|[ ]?[%€]|\d)", _pointed),
        rule("l", r"(?:UTC|GMT)[+−-]\d{1,2}(?!\d)", _zone),
        rule("l", r"(?:[PMCE][SD]?T|[BC]ST|JST|IST)(?!\w)", _zone_behind),
        rule(
            "d",
            rf"{_CLOCK}(?:[:.]([0-5]\d))?{_HALF}?[ ]?[-–—][ ]?{_CLOCK}(?:[:.]([0-5]\d))?{_HALF}",
            _span,
        ),
        rule("d", rf"{_CLOCK}(?:[:.]([0-5]\d))?{_HALF}", _half),
        rule(
            "d",
            rf"{_CLOCK}:([0-5]\d)(?::([0-5]\d)(?:\.\d{{1,6}})?)?"
            rf"(Z(?!\w)|[+-]\d\d:?\d\d(?!\d))?(?:[ ]h(?!\w))?(?![:\d]|\.\d){after}{oclock}",
            _clock,
        ),
        rule("d", r"(\d{1,5}):(\d{1,3}(?:,\d{3})+|\d{1,5})(?![:\d]|\.\d)", _ratio),
    ]
    optional = "?" if language.family in ("fr", "pt") else ""  # elsewhere 5h are five hours
    hours = rf"{_CLOCK}[ ]?h[ ]?([0-5]\d){optional}"
    end = r"(?!\w|/\d|[ ]?(?:min|m|s)(?!\w))"
    made.insert(0, rule("d", rf"{hours}(?:[ ]?[-–][ ]?{hours})?{end}", _hours))
    return made


def _span(found: re.Match[str], language: Language) -> str:
    hour, minute, first_half, last_hour, last_minute, half = found.groups()
    first, last = _named(hour, minute, language), _named(last_hour, last_minute, language)
    if first_half:
        first = f"{first} {_half_of_day(first_half, language)}"
    return f"{up_to(first, last, language)} {_half_of_day(half, language)}{_end(found)}"


def _half(found: re.Match[str], language: Language) -> str:
    hour, minute, half = found.groups()
    return f"{_named(hour, minute, language)} {_half_of_day(half, language)}{_end(found)}"


def _clocks(found: re.Match[str], language: Language) -> str:
    """9:00-17:00."""
    hour, minute, last_hour, last_minute = found.groups()
    return up_to(
        _on_the_clock(hour, minute, language),
        _on_the_clock(last_hour, last_minute, language),
        language,
    )


def _clock_and_hour(found: re.Match[str], language: Language) -> str | None:
    """9:30-11 and 9-10:30; without minutes on both sides they are only numbers."""
    hour, minute, last_hour, last_minute = found.groups()
    if (minute is None) == (last_minute is None):
        return None
    first = _on_the_clock(hour, minute, language) if minute else _hour(hour, language)
    last = (
        _on_the_clock(last_hour, last_minute, language)
        if last_minute
        else _hour(last_hour, language)
    )
    return up_to(first, last, language)


def _lap(found: re.Match[str], language: Language) -> str:
    """1:23.456, minutes and seconds."""
    minutes, seconds, parts = found.groups()
    said = [_hour(minutes, language), _minutes(seconds, language)] if int(minutes) else []
    rest = [language.word("point"), language.digits(parts)]
    return language.joined([*(said or [language.cardinal(str(int(seconds)))]), *rest])


def _pointed(found: re.Match[str], language: Language) -> str | None:
    """alle 14.30: where a word in front says that it is a time."""
    words = tuple(f"{word} " for word in language.tables.get("hours", ()))
    before = found.string[max(0, found.start() - 8) : found.start()].lower()
    if not words or not before.endswith(words):
        return None
    return _on_the_clock(found[1], found[2], language)


def _pointed_hour(found: re.Match[str], language: Language) -> str | None:
    """A las 15.30 h."""
    return None if language.family == "en" else _on_the_clock(found[1], found[2], language)


def _zone_behind(found: re.Match[str], language: Language) -> str | None:
    """3 pm ET: behind a time only."""
    before = found.string[max(0, found.start() - 6) : found.start()].lower()
    is_time = re.search(r"(?:[ap]\.?m\.?|:\d\d) $", before)
    return language.letters(found[0]) if is_time else None


def _zone(found: re.Match[str], language: Language) -> str:
    """UTC+2, GMT-5."""
    return f"{language.letters(found[0][:3])} {_offset(found[0][3:], language)}"


def _offset(written: str, language: Language) -> str:
    """`plus two`, `minus five thirty` for +02:00 and -05:30."""
    sign = language.word("plus" if written[0] == "+" else "minus")
    hours, minutes = written[1:3].rstrip(":"), written[3:].lstrip(":")
    said = [sign, language.cardinal(hours.lstrip("0") or "0")]
    if int(minutes or 0):
        said.append(language.cardinal(minutes.lstrip("0")))
    return " ".join(said)


def _half_of_day(letter: str, language: Language) -> str:
    name: str = language.table("half_days")[letter.lower()]
    return name


def _end(found: re.Match[str]) -> str:
    """The point of an abbreviation that ends the text ends the sentence too."""
    return "." if found[0].endswith(".") and ends_text(found) else ""


def _named(hour: str, minute: str | None, language: Language) -> str:
    """`three oh five`; the hour alone where there are no minutes."""
    said = _hour(hour, language)
    if minute and int(minute) and language.family != "en":
        return _with_hours(hour, minute, language)
    if minute and int(minute):
        said = language.joined([said, _minutes(minute, language)])
    return said


def _hour(hour: str, language: Language) -> str:
    if language.family == "zh" and hour in ("2", "02"):
        return "两"
    return language.cardinal(hour.lstrip("0") or "0", language.tables["hour_gender"])


def _minutes(minute: str, language: Language) -> str:
    if minute[0] == "0" and language.family == "zh":
        return f"零{language.cardinal(minute[1])}"
    if minute[0] == "0" and language.family == "en":
        return f"oh {language.cardinal(minute[1])}"
    return language.cardinal(minute.lstrip("0"))


def _seconds(digits: str, language: Language) -> str:
    if language.family == "en":
        return _minutes(digits, language) if digits != "00" else "flat"
    seconds = language.cardinal(digits.lstrip("0") or "0", names_of("s", language)[2])
    if not language.spaced:
        return f"分{seconds}秒"
    name = language.tables["second_names"][0 if digits == "01" else 1]
    minutes = names_of("min", language)[1]
    return " ".join([minutes, language.word("and"), seconds, name])


def _clock(found: re.Match[str], language: Language) -> str:
    hour, minute, second, zulu = found.groups()
    said = _on_the_clock(hour, minute, language)
    if second and int(second):
        name = language.tables["second_names"][0 if second == "01" else 1]
        amount = language.cardinal(second.lstrip("0") or "0")
        said = language.joined([said, language.word("and"), amount, name])
    if not zulu:
        return said
    offset = "" if zulu == "Z" or not int(zulu[1:].replace(":", "")) else _offset(zulu, language)
    return f"{said} {language.letters('UTC')} {offset}".rstrip()


def _on_the_clock(hour: str, minute: str, language: Language) -> str:
    if language.family != "en":
        return _with_hours(hour, minute, language)
    if int(minute):
        return _named(hour, minute, language)
    if int(hour) in (0, 24):
        return "midnight"
    return " ".join([_hour(hour, language), "o'clock" if int(hour) < 13 else "hundred"])


def _hours(found: re.Match[str], language: Language) -> str:
    hour, minute, last_hour, last_minute = found.groups()
    said = _on_the_clock(hour, minute or "00", language)
    if last_hour:
        said = up_to(said, _on_the_clock(last_hour, last_minute or "00", language), language)
    return said


def _with_hours(hour: str, minute: str, language: Language) -> str:
    """`douze heures trente`: the language's own pattern, with minutes and without."""
    midnight: str | None = language.table("clock").get("midnight")
    if midnight and hour == "00" and not int(minute):
        return midnight
    said = _hour(hour, language)
    one = "one" if int(hour) == 1 or (language.family == "fr" and not int(hour)) else "many"
    if not int(minute):
        template: str = language.table("clock")[one]
        return template.format(hour=said)
    if minute == "30" and int(hour) in range(1, 13) and language.table("and_a_half"):
        said = and_a_half(hour.lstrip("0"), language)
        return str(language.table("clock")["many"]).format(hour=said)
    template = language.table("clock")[f"{one}_minutes"]
    return template.format(hour=said, minute=_minutes(minute, language))


def _ratio(found: re.Match[str], language: Language) -> str:
    first, second = found[1], found[2]
    if len(first) > 3 and is_year(second):  # ISO 27001:2022
        return f"{language.cardinal(first)}{language.word('edition')}{language.year(second)}"
    if re.fullmatch("[2-5][0-9]:0[0-9]", found[0]):  # 45:02, of minutes
        return language.joined([language.cardinal(first), _seconds(second, language)])
    pair = language.cardinal(found[1]), language.cardinal(found[2].replace(",", ""))
    return language.between(pair[0], "ratio", pair[1])
