"""Markup that nobody took out: tags, entities, links, emphasis, TeX. Pure.

The segmenter strips what a model marks up; whoever calls the container by another way should hear
words too. A sign is only taken out where it can be nothing but markup.
"""

from __future__ import annotations

import html
import re
from typing import Final

from services.inference.normalise.language import Language
from services.inference.normalise.rules import Rule, any_of, is_word, rule

_ENDING: Final = "br hr p li ul ol tr td th div h1 h2 h3 h4 h5 h6 table break title".split()
_INLINE: Final = (
    "a abbr b big blockquote body cite code del dd dl dt em font head html i img input ins kbd "
    "label mark pre q s say-as samp section small span speak strike strong style sub sup tbody "
    "thead tt u var voice prosody emphasis phoneme audio w think answer"
).split()
_TARGET: Final = r"\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,200})?(?:[ ]\"[^\"]{0,200}\")?\)"
_MATHS: Final = {
    "times": "×", "cdot": "×", "div": "÷", "pm": "±", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥",
    "neq": "≠", "ne": "≠", "approx": "≈", "infty": "∞", "to": "→", "rightarrow": "→", "sqrt": "√",
}  # fmt: skip
_GREEK: Final = dict(
    zip(
        "alpha beta gamma delta epsilon theta lambda mu pi rho sigma tau phi psi omega".split(),
        "αβγδεθλμπρστφψω",
        strict=True,
    )
)
_MUTE: Final = "left right text mathrm mathbf mathit quad displaystyle operatorname".split()


def rules(_language: Language) -> list[Rule]:
    """What frames a text and is not said; what stands for a sign is said as that sign."""
    attribute = r"(?:[ ][\w:-]{1,30}=(?:\"[^\"<>]{0,200}\"|'[^'<>]{0,200}'|[^\s\"'<>]{1,200}))"
    known = any_of([*_ENDING, *_INLINE])
    return [
        rule("s", r"<!--.{0,2000}?-->|<\|[\w-]{1,40}\|>|<[!?][A-Za-z][^<>]{0,300}>", _nothing),
        rule("s", rf"</?({known}){attribute}{{0,10}}[ ]?/?>", _tag, re.IGNORECASE),
        rule("s", rf"<(?:/[\w:-]{{1,30}}|[A-Za-z][\w:-]{{0,30}}{attribute}{{1,10}}[ ]?/?)>", _tag),
        rule("s", r"<(?=[A-Za-z/][^\s<>]{0,200}>)", _space),
        rule("s", r">", _placeholder_end),
        rule("s", r"&(?:#\d{1,6}|#[xX][0-9a-fA-F]{1,5}|[A-Za-z]{2,8}\d{0,2});", _entity),
        rule(
            "s",
            rf"!?\[(?!\d{{1,4}}\]\[)(?=[^\[\]\n]{{1,200}}\](?:{_TARGET}|\[[^\[\]\n]{{0,60}}\]))",
            _nothing,
        ),
        rule("s", rf"\](?:{_TARGET}|\[[^\[\]\n]{{0,60}}\])", _label_end),
        rule("s", r"\[\^\w{1,20}\]", _nothing),
        rule("s", r"~~+", _nothing),
        rule("s", r"_+", _underscores),
        rule("s", r"\\[dt]?frac(?=\{)", _nothing),
        rule("s", r"\}\{", _over),
        rule("s", rf"\\({any_of([*_MATHS, *_GREEK])})(?![A-Za-z])", _command),
        rule("s", rf"\\(?:{any_of(_MUTE)}(?![A-Za-z])|[()\[\],;])", _space),
        rule("s", r"\\(?=[*_#~`|>.!+-]|\$\d)", _nothing),
        rule(
            "s",
            r"\$\$(?=[A-Za-z\\({])|\$\$(?![\w$])|\$(?=[A-Za-z\\({](?:[^$\n]{0,200}[\w})])?\$(?!\w))",
            _nothing,
        ),
        rule("s", r"\$(?!\w)", _maths_end),
    ]


def _nothing(_found: re.Match[str], _language: Language) -> str:
    return ""


def _space(_found: re.Match[str], _language: Language) -> str:
    return " "


def _tag(found: re.Match[str], _language: Language) -> str:
    """Lines and cells are apart; a word in bold goes on behind it."""
    name = found[1].lower() if found.re.groups else ""
    if name not in _ENDING:
        return ""
    before = _before(found, 20).rstrip()
    return ", " if before[-1:].isalnum() and found.string[found.end() : found.end() + 1] else " "


def _before(found: re.Match[str], characters: int) -> str:
    return found.string[max(0, found.start() - characters) : found.start()]


def _placeholder_end(found: re.Match[str], _language: Language) -> str | None:
    """Of `<name>`, whose beginning is taken out too."""
    return " " if re.search(r"<[A-Za-z/][^\s<>]{0,200}$", _before(found, 202)) else None


def _entity(found: re.Match[str], language: Language) -> str | None:
    character = html.unescape(found[0])
    if character == found[0]:
        return None
    if not character.isprintable() or character.isspace():
        return " "
    name: str | None = language.table("signs").get(character)
    return character if name is None else name


def _label_end(found: re.Match[str], _language: Language) -> str | None:
    """Of what has a beginning; [2][3] are two notes and no link."""
    label = re.search(r"\[([^\[\]\n]{1,200})$", _before(found, 201))
    if label is None or (found[0][1] == "[" and label[1].isdecimal()):
        return None
    return ""


def _underscores(found: re.Match[str], _language: Language) -> str:
    """Emphasis, or between two words of a name."""
    inside = is_word(_before(found, 1)) and is_word(found.string[found.end() : found.end() + 1])
    return " " if inside else ""


def _over(found: re.Match[str], language: Language) -> str | None:
    return f" {language.word('over')} " if "frac{" in _before(found, 80) else None


def _command(found: re.Match[str], language: Language) -> str | None:
    if found[1] in _GREEK:
        greek: str | None = language.table("greek").get(_GREEK[found[1]])
        return greek
    name: str | None = language.table("signs").get(_MATHS[found[1]])
    return name


def _maths_end(found: re.Match[str], _language: Language) -> str | None:
    """The second of a pair around a formula."""
    return (
        "" if re.search(r"\$[A-Za-z\\({](?:[^$\n]{0,200}[\w})])?$", _before(found, 203)) else None
    )
