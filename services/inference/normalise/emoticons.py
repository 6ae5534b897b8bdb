"""Faces made of signs and the heart: :-), ;D, xD, <3. They are seen, not heard. Pure."""

from __future__ import annotations

import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, ends_text, rule

_END: Final = r"(?=$|[\s.,!?])"
_LOVED: Final = r"(?=[ ](?:you|u|ya|it|this|that|my|the|your|our|[A-Z]\w+)(?!\w))"
_COMPARISON: Final = re.compile(r"\d[ ]?[<>]=?[ ]?\d")
_COMPARED: Final = frozenset("is are was be than of to at if when x n y".split())


def rules(language: Language) -> list[Rule]:
    """A face stands apart from the words, and behind something that is said."""
    faces = r"[:;]['’]?[-^o]?(?:[)(\]\[|/\\*3]|[DPpOo](?!\w)){1,3}"
    made = [
        rule("s", rf"(?:{faces}|\^[_.-]?\^|-_+-|>[:;]?[_.]?<|[oO]_[oO]){_END}", _face),
        rule("l", rf"(?:[xX]D+|[oO]_[oO]){_END}", _face),
        rule("s", r"<3+(?![\d%°]|[.,]\d|[ ]?\w)", _heart),
    ]
    if language.family == "en":
        made.append(rule("s", rf"<3{_LOVED}", _love))
    return made


def _before(found: re.Match[str]) -> str:
    return found.string[max(0, found.start() - 40) : found.start()]


def _face(found: re.Match[str], _language: Language) -> str | None:
    before = _before(found)
    return "" if before[-1:].isspace() and re.search(r"\w", before) else None


def _heart(found: re.Match[str], _language: Language) -> str | None:
    """At the end; not where it is less than three of something."""
    before = _before(found)
    words = before.split()
    is_compared = not words or words[-1].lower() in _COMPARED or _COMPARISON.search(before)
    return "" if ends_text(found) and not is_compared else None


def _love(found: re.Match[str], _language: Language) -> str | None:
    return "love" if re.search(r"(?:^|\W)(?:I|i|we|We|they)[ ]$", _before(found)) else None
