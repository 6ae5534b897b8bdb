"""Digits that are no amount: telephone numbers, IP and MAC addresses, PINs, UUIDs. Pure."""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, any_of, is_after_word, rule

_HEX: Final = r"[0-9A-Fa-f]"
_IPV6: Final = re.compile(r"(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}", re.IGNORECASE)


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
        rule("d", r"\d{2,4}(?:[ .-]\d{2,4}){1,4}(?![\w-])", _called_in_groups),
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


def _called(found: re.Match[str], language: Language) -> str | None:
    """`Dial 911`, `PIN: 1234`: behind a word for what is a code."""
    words = language.tables.get("called", ())
    before = found.string[max(0, found.start() - 24) : found.start()].lower()
    head = re.sub(
        r"(?:[ ]?[:：#]|[ ](?:is|es|est|è|é|number|号码|是|は|no\.?|n[°º]))?[ ]*$", "", before
    )
    longest = re.search(rf"{any_of(words)}$", head)
    if longest is None or (language.spaced and head[: longest.start()][-1:].isalnum()):
        return None
    return ", ".join(_spelled(group, language) for group in re.findall(r"\d+", found[0]))


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
