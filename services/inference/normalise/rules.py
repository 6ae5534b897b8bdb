"""What a rule is, and the patterns that several kinds of rules share. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from services.inference.normalise.language import Language
from services.inference.normalise.spoken import in_word

Say: TypeAlias = Callable[[re.Match[str], Language], str | None]
"""What is said for a match; None if it is not what it looked like."""

DASH: Final = r"(?:[-–—‒−]|[ ][–—‒-][ ])"
"""Between two numbers: up to."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` is tried where a letter, a digit or a sign stands (`starts`).

    What is replaced is the group `x` where the pattern has one, else the whole match.
    """

    starts: str
    pattern: re.Pattern[str]
    say: Say


def rule(starts: str, pattern: str, say: Say, flags: int = 0) -> Rule:
    """`starts`: `l`, `d`, `s`, or several; `z` for a sign that nothing else spoke for."""
    return Rule(starts, re.compile(pattern, flags), say)


def any_of(words: Iterable[str]) -> str:
    """A pattern for one of these words, the longest that fits; for nothing if none."""
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word) for word in ordered) + ")" if ordered else "(?!)"


@cache
def number(language: Language) -> str:
    """A number as the language writes it. Every repetition ends where digits end."""
    group = f"[{language.tables['group']}]"
    sizes = rf"\d{{1,3}}(?:{group}\d{{3}})+"
    if language.tables["decimal"] == ".":
        # Groups as in India, with spaces or apostrophes, and with points as on the continent.
        others = (
            r"\d{1,2}(?:,\d{2})+,\d{3}|\d{1,2}(?:[ ]\d{3}){2,}|\d{1,3}[ ]000"
            r"|\d{1,3}(?:['\u00a0\u202f]\d{3})+"
        )
        pointed = r"\d{1,3}(?:\.\d{3})+,\d{1,2}|[1-9]\d{0,2}(?:\.\d{3}){2,3}(?!\.\d)"
        sizes = rf"(?:(?:{pointed})(?!\d)|{sizes}(?!\d|,\d)|(?:{others}))"
        decimals = r"(?:\.\d+)?"
    else:  # a point before three digits is a thousand there, any other one is meant as decimal
        # In Switzerland, apostrophes.
        sizes = rf"(?:{sizes}|\d{{1,3}}(?:['’]\d{{3}})+)"
        decimals = r"(?:,\d+|\.\d{1,2}(?!\d)|\.\d{4,})?"
    return rf"(?:{sizes}(?!\d){decimals}|\d+{decimals})"


def is_after_word(found: re.Match[str]) -> bool:
    """Whether the match stands directly behind a letter, a digit or a closing bracket."""
    before = found.string[found.start() - 1 : found.start()]
    return is_word(before) or before in (")", "]")


def is_word(character: str) -> bool:
    """Whether it belongs to a word in a language that puts spaces between them."""
    return in_word(character) and not "\u3040" <= character <= "\u9fff"


def ends_text(found: re.Match[str]) -> bool:
    """Whether nothing but closing marks comes behind the match."""
    return not found.string[found.end() : found.end() + 4].strip(" )\"'”’»]*\n")
