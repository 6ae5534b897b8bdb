"""Capitals, and letters with digits: FBI, APIs, B2B, AT&T, C++, 4K, COVID-19. Pure."""

from __future__ import annotations

import re

from services.inference.normalise.language import Language
from services.inference.normalise.numbers import in_pairs
from services.inference.normalise.rules import Rule, any_of, is_after_word, rule


def rules(language: Language) -> list[Rule]:
    """Names with signs, words with a reading of their own, capitals, letters with digits."""
    return [
        rule("ls", rf"({any_of(language.tables['named'])})(?![\w+#])", _named),
        rule("l", r"([A-Z])&([A-Z])(?!\w)", _pair),
        rule("l", r"(AD|CE|BCE|BC)(?!\w)", _era),
        rule(
            "l",
            r"([A-Z][A-Za-z]{0,3}[A-Z]|[A-Z]{2,6})(?=$|[^\w&]|['’]?s(?!\w))(?:(['’]?s)(?!\w))?",
            _capitals,
        ),
        rule(
            "ld",
            r"(?=[A-Za-z]{1,12}\d|\d{1,12}[A-Za-z])[A-Za-z\d]{2,40}(?:(?<=\d)\.\d{1,4}(?!\.?\d))?(?!\w)",
            _mixed,
        ),
        rule("d", r"\d{3,4}(?!\w|[.,:/-]\d)", _model),
    ]


def _named(found: re.Match[str], language: Language) -> str | None:
    if is_after_word(found):
        return None
    said: str = language.table("named")[found[1]]
    return said


def _era(found: re.Match[str], language: Language) -> str | None:
    """79 AD, AD 79."""
    behind = re.search(
        r"(?:\d|century|centuries)[ ]$", found.string[max(0, found.start() - 10) : found.start()]
    )
    before = re.match(r"[ ]\d", found.string[found.end() : found.end() + 2])
    return language.letters(found[0]) if behind or before else None


def _pair(found: re.Match[str], language: Language) -> str:
    return f"{language.letters(found[1])} {language.word('and')} {language.letters(found[2])}"


def _capitals(found: re.Match[str], language: Language) -> str | None:
    """Letters where it cannot be a word or is known for them; others are the dictionary's."""
    name, plural = found.groups()
    known = language.table("acronyms").get(name)
    if known is None:
        if not name.isupper():
            return None
        if re.search("[AEIOUY]", name) and name not in language.tables["spelled"]:
            return None
        if _is_shouted(found):
            return None
        known = language.letters(name)
    return f"{known}{'’s'.replace('’', chr(39)) if plural else ''}"


def _is_shouted(found: re.Match[str]) -> bool:
    """DO NOT GO THERE: whether the words around it are in capitals as well."""
    before = found.string[max(0, found.start() - 30) : found.start()].split()[-2:]
    after = found.string[found.end() : found.end() + 30].split()[:2]
    near = [*before, *after]
    loud = sum(word.isalpha() and word.isupper() and len(word) > 1 for word in near)
    return loud > 1 and not any(word.lower() == word for word in near)


def _mixed(found: re.Match[str], language: Language) -> str | None:
    """Groups of letters one by one, groups of digits as numbers: B two B, C O V I D stays."""
    if is_after_word(found):
        return None
    parts = re.findall(r"[A-Za-z]+|\d+(?:\.\d+)?", found[0])
    if len(parts) > 3 and (len(parts) > 5 or max(map(len, parts)) > 4):
        return language.letters(found[0])
    return " ".join(_group(part, language) for part in parts)


def _group(part: str, language: Language) -> str:
    """Letters or digits of a name that has both."""
    if part[0].isdecimal():
        if len(part) > 4 and part.isdecimal():  # a code: DNI 12345678Z
            return language.digits(part)
        if len(part) in (3, 4) and part.isdecimal() and part[0] != "0":
            return in_pairs(part, language)
        whole, _, decimals = part.partition(".")
        point = [language.word("point"), language.digits(decimals)] if decimals else []
        return language.joined([language.cardinal(whole), *point])
    known: str | None = language.table("acronyms").get(part)
    if known is not None:
        return known
    is_short = len(part) == 1 or (len(part) < 4 and not re.search("[aeiou]", part))
    has_no_vowel = len(part) < 6 and part.isupper() and not re.search("[AEIOUY]", part)
    if is_short or has_no_vowel or part in language.tables["spelled"]:
        return language.letters(part)
    return part


def _model(found: re.Match[str], language: Language) -> str | None:
    """RTX 4090: forty ninety; flight BA 237."""
    before = re.sub("(?<=light )[A-Z]{2} $", "", found.string[: found.start()][-16:])
    names = tuple(f"{name} " for name in language.tables.get("models", ()))
    return in_pairs(found[0], language) if names and before.endswith(names) else None
