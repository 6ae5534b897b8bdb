"""The word lists of the segmenter: one JSON file a language, read once at import.

A key without capitals matches any case; a key with capitals only itself (`No` is a number sign in
English, `no` a word). Sources and licences: `data/README.md`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Final, TypedDict

NEVER: Final = 1  # never ends a sentence: titles, "e.g."
NUMBER: Final = 2  # does not end one before a number: "No.", "Fig."
MAY: Final = 4  # ends one only before a word that starts sentences: "U.S.", "Inc."
ENDS: Final = 8  # ends one before any capital: "etc."
TIME: Final = 16  # like ENDS, but a day, a month or a time zone may follow: "p.m."
UNIT: Final = 32  # like ENDS behind a number: "3 oz."

MIN_COMPOUND: Final = 3  # "Montag" is no "Tag"

_LATIN = frozenset("cs de en es fr it nl pl pt sv tr vi".split())
_OTHERS: Final = "und"  # words that hardly any language of Latin script has as ordinary ones
_UNCERTAIN: Final = frozenset({"ex"})  # of those: "de ex." in Romanian, "an ex." in English
# A language without a table reads like its nearest relative that has one.
_RELATIVES: Final = {
    **dict.fromkeys(("ca", "gl", "ast"), "es"),
    **dict.fromkeys(("da", "no", "nb", "nn"), "sv"),
    **dict.fromkeys(("be", "bg", "kk", "ky", "mk"), "ru"),
    **dict.fromkeys(("fa", "ur"), "ar"),
    **dict.fromkeys(("mr", "ne"), "hi"),
    **dict.fromkeys(("lb", "gsw"), "de"),
    "af": "nl",
    "sk": "cs",
    "yue": "zh",
}


@dataclass(frozen=True, slots=True)
class Table:
    """What the rules need to know of one language."""

    lang: str
    classes: dict[str, int]
    starters: frozenset[str] = frozenset()
    wide_starters: frozenset[str] = frozenset()  # and the weak ones
    all_starters: frozenset[str] = frozenset()  # and nouns
    labels: frozenset[str] = frozenset()
    label_ends: tuple[str, ...] = ()  # and what compounds with one end in
    calendar: frozenset[str] = frozenset()
    time_openers: frozenset[str] = frozenset()
    step_labels: frozenset[str] = frozenset()
    speech_verbs: frozenset[str] = frozenset()
    tag_openers: frozenset[str] = frozenset()  # verbs that open what stands behind speech: "قال"
    tag_closers: tuple[str, ...] = ()  # verbs that close it: "उसने कहा।"
    prefixes: frozenset[str] = frozenset()  # letters that are written together with a word
    suffixes: tuple[str, ...] = ()  # abbreviated second parts of compounds: "Hauptstr."
    ordinal_cues: frozenset[str] = frozenset()
    ordinal_nouns: frozenset[str] = frozenset()
    particles: frozenset[str] = frozenset()
    first_parts: frozenset[str] = frozenset()  # "z" of "z.b"
    ordinals: bool = False
    capital_nouns: bool = False
    dotted_dates: bool = False
    elision: bool = False
    function_words: frozenset[str] = frozenset()
    number_words: frozenset[str] = frozenset()  # words that are number signs too: "no. 5"
    quote_particles: dict[str, str] = field(default_factory=dict)

    def lookup(self, word: str) -> int:
        """The classes of `word` as a bit set, 0 for an ordinary word."""
        found = self.classes.get(word)
        if found is not None:
            return found
        if len(word) == 1:  # "M." is a title in French, "m." a metre
            return 0
        found = self.classes.get(word.lower(), 0)
        capitals = len(word) > 2 and "." not in word and word.isupper()
        return found & (NEVER | NUMBER) if capitals else found  # "EST" is no estimate


class _File(TypedDict, total=False):
    """A file of `data/`."""

    never: list[str]
    number: list[str]
    may: list[str]
    ends: list[str]
    time: list[str]
    units: list[str]
    starters: list[str]
    weak_starters: list[str]
    opening_nouns: list[str]
    labels: list[str]
    calendar: list[str]
    time_openers: list[str]
    step_labels: list[str]
    speech_verbs: list[str]
    tag_openers: list[str]
    tag_closers: list[str]
    prefixes: list[str]
    suffixes: list[str]
    capital_nouns: bool
    ordinal_cues: list[str]
    ordinal_nouns: list[str]
    particles: list[str]
    ordinals: bool
    dotted_dates: bool
    elision: bool
    function_words: list[str]
    number_words: list[str]
    ordinary: list[str]
    quote_particles: dict[str, str]


def load(lang: str) -> Table:
    """The table of `lang`, else of a relative, else one with few abbreviations."""
    code = lang.lower().replace("_", "-").split("-", 1)[0]
    return _TABLES.get(_RELATIVES.get(code, code), _TABLES[_OTHERS])


def load_mixed(lang: str) -> Table:
    """The table of a language that is a guess: with the abbreviations that are words nowhere."""
    return _MIXED.get(lang) or load(lang)


def _read_all() -> dict[str, Table]:
    folder = resources.files(__package__) / "data"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".json")), key=lambda f: f.name)
    own = {f.name[:-5]: _table(f.name[:-5], json.loads(f.read_text("utf-8"))) for f in files}
    english = own["en"]
    tables = {
        code: table if code in _LATIN else _with_latin_words(table, english)
        for code, table in own.items()
    }
    return {**tables, _OTHERS: replace(english, lang=_OTHERS, classes=own[_OTHERS].classes)}


def _table(lang: str, raw: _File) -> Table:
    classes: dict[str, int] = {}
    for words, bit in (
        (raw.get("never", []), NEVER),
        (raw.get("number", []), NUMBER),
        (raw.get("may", []), MAY),
        (raw.get("ends", []), ENDS),
        (raw.get("time", []), TIME),
        (raw.get("units", []), UNIT),
    ):
        for word in words:
            classes[word] = classes.get(word, 0) | bit
    classes.update(dict.fromkeys(raw.get("ordinary", []), 0))
    starters = frozenset(raw.get("starters", []))
    wide = starters | frozenset(raw.get("weak_starters", []))
    return Table(
        lang=lang,
        classes=classes,
        starters=starters,
        wide_starters=wide,
        all_starters=wide | frozenset(raw.get("opening_nouns", [])),
        labels=frozenset(raw.get("labels", [])),
        label_ends=tuple(word for word in raw.get("labels", []) if len(word) > MIN_COMPOUND),
        calendar=frozenset(raw.get("calendar", [])),
        time_openers=frozenset(raw.get("time_openers", [])),
        step_labels=frozenset(raw.get("step_labels", [])),
        speech_verbs=frozenset(raw.get("speech_verbs", [])),
        tag_openers=frozenset(raw.get("tag_openers", [])),
        tag_closers=tuple(raw.get("tag_closers", [])),
        prefixes=frozenset(raw.get("prefixes", [])),
        suffixes=tuple(raw.get("suffixes", [])),
        capital_nouns=raw.get("capital_nouns", False),
        ordinal_cues=frozenset(raw.get("ordinal_cues", [])),
        ordinal_nouns=frozenset(raw.get("ordinal_nouns", [])),
        first_parts=_first_parts(classes),
        particles=frozenset(raw.get("particles", [])),
        ordinals=raw.get("ordinals", False),
        dotted_dates=raw.get("dotted_dates", False),
        elision=raw.get("elision", False),
        function_words=frozenset(raw.get("function_words", [])),
        number_words=frozenset(raw.get("number_words", [])),
        quote_particles=raw.get("quote_particles", {}),
    )


def _with_general_words(own: Table, general: Table) -> Table:
    classes = {w: bits for w, bits in general.classes.items() if w not in _UNCERTAIN} | own.classes
    return replace(own, classes=classes, first_parts=_first_parts(classes))


def _first_parts(classes: dict[str, int]) -> frozenset[str]:
    return frozenset(word.split(".", 1)[0] for word in classes if "." in word)


def _with_latin_words(own: Table, latin: Table) -> Table:
    """English words stand inside text of other scripts, abbreviations and all."""
    return replace(
        own,
        classes={**latin.classes, **own.classes},
        starters=own.starters | latin.starters,
        wide_starters=own.wide_starters | latin.wide_starters,
        all_starters=own.all_starters | latin.all_starters,
        labels=own.labels | latin.labels,
        calendar=own.calendar | latin.calendar,
        particles=own.particles | latin.particles,
    )


_TABLES: Final = _read_all()  # at import: a session that needs one does not wait for a disk
_MIXED: Final = {code: _with_general_words(_TABLES[code], _TABLES[_OTHERS]) for code in _LATIN}
