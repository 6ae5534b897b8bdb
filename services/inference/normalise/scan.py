"""One pass over a text, from left to right: what no rule speaks for stays as it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from services.inference.normalise import (
    abbreviations,
    acronyms,
    addresses,
    bare,
    characters,
    codes,
    dates,
    emoticons,
    fractions,
    markup,
    money,
    numbers,
    references,
    romans,
    short_dates,
    symbols,
    times,
    units,
)
from services.inference.normalise.language import Language, language
from services.inference.normalise.rules import Rule
from services.inference.normalise.spoken import Spoken, Writer

_SIGNS: Final = "⁰¹²³⁴-⁹ⁿ₀-₉½⅓⅔¼¾⅕-⅞①-⓿❶-➓Ⅰ-ⅿ"
"""What is a letter or a digit to Python and a sign to us."""

# What may begin something that is not said as it is written; lower case words are passed quickly.
_CANDIDATE: Final = re.compile(
    rf"[^\W\d_{_SIGNS}]+|[\d{_SIGNS}]|[^\w\s.,;:!?'\"()—…-]|[.'(-](?=[\w$€£¥￥₹₩₽₿₺₪₫฿₴₦./>=])|--|_"
    r"|!(?=[\[=])|(?<=[\s(&|=])!(?=[a-z_])|:(?=:\w)|(?<!\S)[:;](?=\S)|(?<!\S)-(?=_)"
)


Fixed: TypeAlias = tuple[int, int, str | None]
"""Characters, and what is said for them; None: as they are."""


class _Place(NamedTuple):
    """A place in a text, of which nothing from `end` on is looked at."""

    text: str
    at: int
    end: int


_CANDIDATE_UNSPACED: Final = re.compile(_CANDIDATE.pattern, re.ASCII)

# Most words are only words: no rule has to look at them.
_PLAIN: Final = re.compile(r"[A-ZÀ-Þ]?[a-zß-öø-ÿ]+(?=[\s,;!?…)\"”»'’]|[.:](?:\s|$)|$)")
_HEAD: Final = re.compile(r"[^\W\d_]+")
_TABLES: Final = (
    *("before_number", "before_name", "before_roman", "anywhere", "street_or_saint", "numbered"),
    *("numbered_ordinal", "reigns", "versioned", "named", "acronyms", "months", "month_short"),
    *(
        "weekday_short",
        "currencies",
        "codes",
        "hours",
        "roman_heads",
        "books",
        "weekday_before_date",
    ),
)

_SIGNED: Final = re.compile(
    r"[ ]?(?=\.?\d|[$€£¥￥₹₩₽₿₺₪₫฿₴₦]|[A-Z]{1,2}\$[ ]?\d|(?:CHF|Rs\.?|रु\.?)[ ]?\d)"
)


@cache
def _rules(code: str) -> dict[str, tuple[Rule, ...]]:
    """The rules of a language by what they start with."""
    words = language(code)
    every = [
        *emoticons.rules(words),
        *markup.rules(words),
        *(characters.rules(words) if words.spaced else ()),
        *addresses.rules(words),
        *codes.rules(words),
        *references.rules(words),
        *romans.rules(words),
        *fractions.named(words),
        *short_dates.rules(words),
        *dates.rules(words),
        *times.rules(words),
        *money.rules(words),
        *numbers.ordinals(words),
        *bare.rules(words),
        *units.rules(words),
        *codes.phones(words),
        *fractions.rules(words),
        *numbers.rules(words),
        *abbreviations.rules(words),
        *acronyms.rules(words),
        *symbols.rules(words),
        numbers.plain(words),
    ]
    if not words.spaced:  # a word of such a language may stand at any other letter
        every = [*characters.rules(words), *(_ascii(one) for one in every)]
    return {start: tuple(r for r in every if start in r.starts) for start in "ldsz"}


def _ascii(one: Rule) -> Rule:
    flags = (one.pattern.flags & ~re.UNICODE) | re.ASCII
    return Rule(one.starts, re.compile(one.pattern.pattern, flags), one.say)


def normalise(text: str, code: str, fixed: Sequence[Fixed] = ()) -> Spoken:
    """`text` as the language says it. `fixed`: parts for which that is known already, in order.

    Raises KeyError for a language that the model has not.
    """
    writer = Writer(text, spaced=language(code).spaced)
    position = 0
    for start, end, said in fixed:
        _scan(text, position, start, code, writer)
        if said is not None:
            writer.replace(start, end, said)
        position = end
    _scan(text, position, len(text), code, writer)
    return writer.finish()


@cache
def _heads(code: str) -> frozenset[str]:
    """The words, in lower case, that something begins with for which there is a rule."""
    words = language(code)
    entries = (entry for name in _TABLES for entry in words.table(name))
    found = (_HEAD.match(entry) for entry in entries)
    return frozenset(head[0].lower() for head in found if head is not None)


def _scan(text: str, position: int, end: int, code: str, writer: Writer) -> None:
    words, rules = language(code), _rules(code)
    candidate = _CANDIDATE if words.spaced else _CANDIDATE_UNSPACED
    heads = _heads(code)
    while (found := candidate.search(text, position, end)) is not None:
        if _PLAIN.match(text, found.start()) and found[0].lower() not in heads:
            position = found.end()
            continue
        edit = _apply(_Place(text, found.start(), end), rules, words)
        if edit is None:
            position = found.end()
            continue
        start, position, said = edit
        writer.replace(start, position, said)


def _apply(
    place: _Place, rules: Mapping[str, tuple[Rule, ...]], words: Language
) -> tuple[int, int, str] | None:
    """What to say for which characters, by the first rule that fits there."""
    character = place.text[place.at]
    if character.isdecimal():
        return _first(place, rules["d"], words)
    if character.isalpha():
        return _first(place, rules["l"], words)
    return (
        _first(place, rules["s"], words)
        or _signed(place, rules, words)
        or _first(place, rules["z"], words)
    )


def _first(place: _Place, rules: tuple[Rule, ...], words: Language) -> tuple[int, int, str] | None:
    for one in rules:
        found = one.pattern.match(*place)
        said = None if found is None else one.say(found, words)
        if found is not None and said is not None:
            group = "x" if "x" in one.pattern.groupindex else 0
            return found.start(group), found.end(group), said
    return None


def _signed(
    place: _Place, rules: Mapping[str, tuple[Rule, ...]], words: Language
) -> tuple[int, int, str] | None:
    """-5, ~20, #3: a sign and the number behind it are one."""
    text, at, end = place
    name = symbols.prefix(text, at, words)
    following = _SIGNED.match(text, at + 1, end)
    if name is None or following is None:
        return None
    edit = _apply(_Place(text, following.end(), end), rules, words)
    if edit is None or edit[0] != following.end():
        return None
    return at, edit[1], words.joined([name, edit[2]])
