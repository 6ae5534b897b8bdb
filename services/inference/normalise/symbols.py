"""Signs: %, &, =, arrows, powers, Greek letters; and those that stand before a number. Pure."""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.numbers import POWERS
from services.inference.normalise.rules import Rule, any_of, is_after_word, is_word, rule

_OPERATORS: Final = {
    "!=": "≠", "!==": "≠", "=!=": "≠", "=/=": "≠", "<>": "≠",
    ">=": "≥", "<=": "≤", "==": "=", "===": "=", "&&": "&",
}  # fmt: skip
_CONDITION: Final = re.compile(r"(?:[(&|=]|(?<!\w)(?:if|while|return|and|or))[ ]?$")
"""What stands in front of a `!` that is `not` in a program."""
_MAY_STAND_APART: Final = "~≈±#§№"


def rules(language: Language) -> list[Rule]:
    """Powers, arrows, dashes, single signs."""
    return [
        rule("s", r"§{2,3}", _sections),
        rule("s", r"\*", _star),
        rule("s", r"<[-=]+>", _arrow),
        rule("s", r"([-+*/%])=(?![=>])|--(?=[;)])", _assigned),
        rule("s", r"!==?|=[!/]=|[<>]=|={2,3}|&&|(?<=[ ])<>(?=[ ])", _operator),
        rule("s", r"!(?=[a-z_][\w.]{0,60}(?:[()&|;,]|[ ](?:&&|\|\||\{)|[;.]?$))", _not),
        rule("s", r"::(?=[A-Za-z_~])", _scope),
        rule("s", r"\|\|", _either),
        rule("s", r"<-(?=\d)", _below),
        rule("z", r"([⁰¹²³⁴-⁹]{0,2})([⁺⁻])(?![⁰¹²³⁴-⁹])", _charge),
        rule("z", r"\^\{?([A-Za-z])\}?(?!\w)", _power_of_letter),
        rule("zl", r"\^\{?\(?(-?\d{1,3})\)?\}?|([⁻]?[⁰¹²³⁴-⁹]{1,4}|ⁿ)", _power),
        rule("z", r"[₀-₉]{1,4}", _index),
        rule("z", r"-{2,}>?|=>|->|<-", _arrow),
        rule("z", r"[*×·x](?=[ ]?\d)", _times),
        rule("z", r"-(?=\d)", _hyphen),
        rule("z", r"/(?=[ ]\d)", _divided),
        rule("z", r"[^\w\s]", _sign),
        rule("l", r"[ºª](?!\w)", _raised),
    ]


def prefix(text: str, at: int, language: Language) -> str | None:
    """What a sign directly before a number is called there: minus, about, number."""
    before = text[at - 1 : at] if at else ""
    if is_word(before) or before in (")", "]", "'", "′", text[at]):
        return None
    if text[at + 1 : at + 2] == " " and text[at] not in _MAY_STAND_APART:
        return None
    name: str | None = language.table("prefixes").get(text[at])
    return name


def _power(found: re.Match[str], language: Language) -> str | None:
    exponent = (found[1] or found[2]).translate(POWERS)
    if not is_word(found.string[found.start() - 1 : found.start()]) and not is_after_word(found):
        # The mass of an isotope: ¹⁴C.
        return language.cardinal(exponent) if exponent.isdecimal() and found[2] else None
    gap = " " if language.spaced and found.string[found.start() - 1] in ")]}" else ""
    named: str | None = language.table("powers").get(exponent)
    if named is not None:
        return f"{gap}{named}"
    digits = exponent.lstrip("-")
    number = language.cardinal(digits) if digits.isdecimal() else digits
    minus = language.word("minus") if exponent[0] == "-" else ""
    if not language.spaced:
        return language.word("power_of").format(f"{minus}{number}")
    return gap + language.joined([language.word("power"), minus, number])


def _power_of_letter(found: re.Match[str], language: Language) -> str | None:
    """e^x."""
    if not is_after_word(found) or not language.spaced:
        return None
    return f"{language.word('power')} {found[1]}"


def _charge(found: re.Match[str], language: Language) -> str | None:
    """Na⁺, SO₄²⁻."""
    if not found.string[found.start() - 1 : found.start()].strip():
        return None
    number = found[1].translate(POWERS)
    sign = language.word("plus" if found[2] == "⁺" else "minus")
    return language.joined([language.cardinal(number) if number else "", sign])


def _sections(_found: re.Match[str], language: Language) -> str:
    return language.word("sections")


def _star(found: re.Match[str], language: Language) -> str | None:
    """Press * to repeat."""
    before = found.string[max(0, found.start() - 60) : found.start()]
    if is_word(before[-1:]) or before.endswith("*") or not is_key(before, language):
        return None
    return language.word("star")


def is_key(before: str, language: Language) -> bool:
    """Whether this sentence speaks of the keys of a telephone: press 1 or *."""
    sentence = re.split("[.!?。]", before)[-1].lower()
    heads = any_of(language.tables["keys"])
    return re.search(rf"(?<!\w){heads}(?!\w)" if language.spaced else heads, sentence) is not None


def _operator(found: re.Match[str], language: Language) -> str | None:
    name: str | None = language.table("signs").get(_OPERATORS[found[0]])
    return name


def _either(_found: re.Match[str], language: Language) -> str:
    return language.word("or")


def _assigned(found: re.Match[str], language: Language) -> str | None:
    """x -= 2, i--; behind a name only."""
    before = found.string[max(0, found.start() - 2) : found.start()]
    if not is_word(before.rstrip()[-1:]):
        return None
    signs = language.table("signs")
    names = {"-": language.word("less"), "+": signs["+"], "*": signs["×"], "/": signs["÷"]}
    first = names.get(found[1] or "-", signs["%"])
    return language.joined([first, signs["="] if found[1] else first])


def _not(found: re.Match[str], language: Language) -> str | None:
    """if (!done): the `!` that ends an exclamation stands elsewhere."""
    before = found.string[max(0, found.start() - 8) : found.start()]
    return f"{language.word('not')} " if _CONDITION.search(before) else None


def _scope(found: re.Match[str], _language: Language) -> str | None:
    """std::vector."""
    return " " if is_after_word(found) else None


def _below(found: re.Match[str], language: Language) -> str:
    """x<-5 is no arrow."""
    return f"{language.table('signs')['<']} {language.word('minus')}"


def _index(found: re.Match[str], language: Language) -> str:
    return language.cardinal(found[0].translate(POWERS))


def _arrow(found: re.Match[str], language: Language) -> str:
    if set(found[0]) != {"-"}:
        return language.word("to")
    after = found.string[found.end() : found.end() + 1]
    if is_word(after) and not is_after_word(found):  # --force
        return f"{language.table('marks')['-']} {language.table('marks')['-']}"
    return "—"


def _times(found: re.Match[str], language: Language) -> str | None:
    before = found.string[max(0, found.start() - 2) : found.start()].rstrip()
    return language.word("times") if before[-1:].isdecimal() else None


def _divided(found: re.Match[str], language: Language) -> str | None:
    """10 / 2, between two numbers."""
    before = found.string[max(0, found.start() - 2) : found.start()]
    name: str | None = language.table("signs").get("÷")
    return name if before[:1].isdecimal() and before[1:] == " " else None


def _hyphen(found: re.Match[str], language: Language) -> str | None:
    """GPT-4, UTF-8: nothing is heard between a name and its number."""
    return " " if found.string[found.start() - 1 : found.start()].isalpha() else None


def _raised(found: re.Match[str], language: Language) -> str:
    """36,6º is a temperature; behind anything else the mark is of an ordinal that is none here."""
    name: str = language.table("signs").get(found[0], "")
    return name if found.string[found.start() - 1 : found.start()].isdecimal() else ""


def _sign(found: re.Match[str], language: Language) -> str | None:
    sign = found[0]
    if sign == "/" and is_after_word(found):
        return " "
    if sign == "~" and re.match(r"[;,.)]|$", found.string[found.end() : found.end() + 1]):
        return str(language.table("marks")[sign])  # cd ~;
    name: str | None = language.table("signs").get(sign)
    return name
