"""Words that are written short: Dr., e.g., St., No. 5, initials. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, any_of, ends_text, rule


def rules(language: Language) -> list[Rule]:
    """What is always short for something, and what is so in front of a number or a name only."""
    before_number, before_name = language.table("before_number"), language.table("before_name")
    anywhere, streets = language.table("anywhere"), language.table("street_or_saint")
    made = [
        rule("l", rf"({any_of(streets)})\.?(?!\w)", _street_or_saint),
        rule("l", rf"({any_of(before_number)})(?=[ ]?#?\d)", _Short(before_number)),
        rule(
            "l",
            rf"(?!S\.[ ]\w\.)({any_of(before_name)})(?:(?<=-)|(?=[ ]))(?=[ ]*[^\W\d_a-z])",
            _Short(before_name),
        ),
        rule("l", rf"({any_of(anywhere)})(?!\w)", _Short(anywhere), re.IGNORECASE),
    ]
    if "titles" in language.tables:
        made.insert(0, rule("l", r"D\.(?=[ ]([^\W\d_a-z]\w{1,30}))", _don))
    if language.family == "en":
        made.append(rule("l", r"(p\.a)\.(?!\w)", _per_annum))
        made.append(rule("l", r"[A-Za-z](?:\.[A-Za-z]){1,5}\.?(?!\w)", _initialism))
        made.append(rule("l", r"([A-Z])\.(?=[ ]([A-Z]\w{0,40}))", _initial))
    return made


def _don(found: re.Match[str], language: Language) -> str:
    """D. João is a man's, D. Maria a woman's."""
    titles = language.tables["titles"]
    return str(titles["f" if found[1].endswith("a") else "m"])


class _Short:
    """Says the long form that a table has."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def __call__(self, found: re.Match[str], _language: Language) -> str | None:
        written = found[1]
        said = self._words.get(written, self._words.get(written.lower()))
        if said is None:
            return None
        return said + ("." if written.endswith(".") and ends_text(found) else "")


def _street_or_saint(found: re.Match[str], language: Language) -> str | None:
    """Behind a name it is a street (Baker St.), in front of one a saint (St. Louis)."""
    saint, street = language.table("street_or_saint")[found[1]]
    before = found.string[max(0, found.start() - 30) : found.start()].split()
    after = found.string[found.end() : found.end() + 2]
    last = before[-1] if before else " "
    behind_name = last[-1].isalnum() and (last[0].isupper() or last[0].isdecimal())
    numbered = any(word[0].isdecimal() for word in before[-3:])
    if after[:1] == " " and after[1:].isupper() and not (behind_name and numbered):
        return str(saint)
    if not behind_name and not found[0].endswith("."):
        return None
    dot = "." if found[0].endswith(".") and ends_text(found) else ""
    return f"{street if behind_name else saint}{dot}"


def _per_annum(found: re.Match[str], _language: Language) -> str:
    """3.75% p.a."""
    return "per annum" + ("." if ends_text(found) else "")


def _initialism(found: re.Match[str], language: Language) -> str:
    return language.letters(found[0]) + ("." if found[0].endswith(".") and ends_text(found) else "")


def _initial(found: re.Match[str], language: Language) -> str | None:
    """The J of J. Smith: not the I that ends a sentence, nor the B of plan B."""
    before = found.string[max(0, found.start() - 20) : found.start()].split()
    lettered = bool(before) and before[-1].lower() in language.tables["lettered"]
    if found[1] == "I" or lettered or found[2] in language.tables["starters"]:
        return None
    return language.letters(found[1])
