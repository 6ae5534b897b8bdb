"""Capitals, and letters with digits: FBI, APIs, B2B, AT&T, C++, 4K, COVID-19. Pure."""

from __future__ import annotations

import re

from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, any_of, is_after_word, rule


def rules(language: Language) -> list[Rule]:
    """Names with signs, words with a reading of their own, capitals, letters with digits."""
    return [
        rule("ls", rf"({any_of(language.tables['named'])})(?![\w+#])", _named),
        rule("l", r"([A-Z])&([A-Z])(?!\w)", _pair),
        rule(
            "l",
            r"([A-Z][A-Za-z]{0,3}[A-Z]|[A-Z]{2,6})(?=$|[^\w&]|['’]?s(?!\w))(?:(['’]?s)(?!\w))?",
            _capitals,
        ),
        rule("ld", r"(?=[A-Za-z]{1,12}\d|\d{1,12}[A-Za-z])[A-Za-z\d]{2,40}(?!\w)", _mixed),
    ]


def _named(found: re.Match[str], language: Language) -> str | None:
    if is_after_word(found):
        return None
    said: str = language.table("named")[found[1]]
    return said


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
    said = []
    parts = re.findall(r"[A-Za-z]+|\d+", found[0])
    if len(parts) > 5:
        return language.letters(found[0])
    for part in parts:
        if part.isdecimal():
            said.append(language.number(part))
        elif len(part) == 1 or (len(part) < 4 and not re.search("[aeiou]", part)):
            said.append(language.letters(part))
        else:
            said.append(part)
    return language.joined(said) if language.spaced else " ".join(said)
