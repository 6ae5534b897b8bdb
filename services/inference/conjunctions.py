"""Where a new clause begins without a mark: "… because it rained". Pure.

A voice may take breath before such a word. Words that as often join nouns ("and", "or") or belong
to what stands before them ("even if", "as though") are no such places: a listener would notice.
"""

from __future__ import annotations

import re
from typing import Final

_LETTERS: Final = r"(?:[^\W\d_]|[\u0900-\u0963])+"  # Devanagari's vowel signs are no letters
_WORD: Final = re.compile(rf"{_LETTERS}(?:['’]{_LETTERS})*")

_BEGIN: Final = {
    "en": "although because but if once since though unless until whereas whether while",
    "es": "aunque cuando mientras pero porque si sino",
    "fr": "car lorsque mais parce pendant puisque quand quoique si tandis",
    "hi": "अगर इसलिए क्योंकि जब ताकि मगर लेकिन हालाँकि",
    "it": "finché mentre perché però poiché quando se sebbene",
    "pt": "embora enquanto mas porque quando se",
}
"""Words that begin a clause, by the first part of a language tag."""

_CLOSE: Final = {
    "en": "about all anything as but even ever everything except had has have if is just know not "
    "nothing of on only or and see than the wonder",
    "es": "aun como de ni o que y sino",
    "fr": "comme de et même ni ou que",
    "hi": "और कि तो या",
    "it": "anche che come di e né o",
    "pt": "como de e mesmo nem ou que",
}
"""Words that belong so closely to such a word behind them that nobody pauses between."""

_TABLES: Final = {
    language: (frozenset(words.split()), frozenset(_CLOSE[language].split()))
    for language, words in _BEGIN.items()
}


def clause_starts(text: str, lang: str) -> frozenset[int]:
    """The characters of `text` at which such a word begins; none in languages not known here."""
    begin, close = _TABLES.get(lang.split("-")[0], (frozenset(), frozenset()))
    found = []
    before = ""
    for match in _WORD.finditer(text) if begin else ():
        word = match.group().lower()
        if before and word in begin and before not in close:
            found.append(match.start())
        before = word
    return frozenset(found)
