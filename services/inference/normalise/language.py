"""What a language calls things: numbers, letters, signs; read from `data/*.json`. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final

from num2words import num2words

from services.inference.normalise import chinese, hindi

_OWN: Final[Mapping[str, Callable[[int], str]]] = {
    "hi": hindi.cardinal,
    "zh": chinese.cardinal,
}
"""Languages whose numbers num2words does not name."""

MAX_DIGITS: Final = 15
"""A longer number is read digit by digit: nobody follows its name."""

_CONTINENTAL: Final = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+")
_MILLIONS: Final = re.compile(r"\d{1,3}(?:\.\d{3}){2,}")
_SHORT_DECIMAL: Final = re.compile(r"\d+,\d{2}")

_NO_NOUNS: Final = frozenset(
    "para como pero sobre hasta desde entre cuando porque según aunque donde hacia "
    "por per con che dal dalla del della nel nella una com mas sem até nas das elas cada esta essa "
    "más mais più plus menos meno moins "
    "pour par sur dans des les aux que qui est sont era foi fue fra tra alla sulla ella era".split()
)
"""Words that may stand behind a number and are no noun."""

_NOUN: Final = re.compile(r"[ ]([^\W\d_]{3,30})(?!\w)")

FILES: Final[Mapping[str, str]] = {
    "en-us": "en",
    "en-gb": "en",
    "es": "es",
    "fr-fr": "fr",
    "hi": "hi",
    "it": "it",
    "pt-br": "pt",
    "ja": "ja",
    "zh": "zh",
}
"""Language -> the file with its words."""


@dataclass(frozen=True)
class Language:
    """A language's words, and how it makes words from digits. `tables`: its file."""

    code: str
    tables: Mapping[str, Any]

    def __hash__(self) -> int:
        return hash(self.code)

    def table(self, name: str) -> Mapping[str, Any]:
        """One of its tables; empty where it has none."""
        found: Mapping[str, Any] = self.tables.get(name, {})
        return found

    def word(self, name: str) -> str:
        """One of its single words, as `minus`."""
        words: Mapping[str, str] = self.tables["words"]
        return words[name]

    @property
    def family(self) -> str:
        """`en` for `en-gb`."""
        return self.code.split("-")[0]

    @property
    def spaced(self) -> bool:
        """Whether words have spaces between them."""
        return self.family not in ("ja", "zh")

    # ------------------------------------------------------------------ numbers

    def noun(self, text: str, at: int) -> str:
        """The word behind a number that ends at `at`; "" if it can be none."""
        found = _NOUN.match(text, at)
        return found[1] if found is not None and found[1].lower() not in _NO_NOUNS else ""

    def gender(self, noun: str) -> str:
        """`m` or `f`, by the ending; "" where there is no noun or it does not matter."""
        if not noun or "feminine" not in self.tables:
            return ""
        if noun in self.table("magnitudes"):  # un milione
            return "m"
        return "f" if re.search(self.tables["feminine"], noun) else "m"

    def link(self, digits: str, noun: str) -> str:
        """`de ` in un millón de euros: what stands between whole millions and their noun."""
        value = self.plain(digits)
        if not value.isdecimal() or int(value) == 0 or int(value) % 10**6:
            return ""
        link: str = self.table("magnitude_elided").get(noun[:1], self.word("magnitude_of"))
        return link

    def cardinal(self, digits: str, gender: str = "") -> str:
        """The name of a whole number; agrees with a noun behind it where `gender` is `m` or `f`."""
        if len(digits) > MAX_DIGITS or (len(digits) > 1 and digits[0] == "0"):
            return self.digits(digits)
        words = self._named(int(digits), "cardinal")
        for pattern, replacement in self.table("agreement").get(gender, ()):
            words = re.sub(pattern, replacement, words)
        return words

    def ordinal(self, digits: str, gender: str = "m", noun: str = "") -> str:
        """`first` for 1. `noun`: the word behind it, which may shorten it: tercer piso."""
        if len(digits) > MAX_DIGITS:
            return self.digits(digits)
        words = self._named(int(digits), "ordinal")
        for pattern, replacement in self.table("ordinals").get(gender, ()):
            words = re.sub(pattern, replacement, words)
        head, space, last = words.rpartition(" ")
        if len(noun) > 3 and noun.islower():
            last = self.table("apocope").get(last, last)
        return f"{head}{space}{last}"

    def year(self, digits: str) -> str:
        """`nineteen ninety nine` for 1999, where a language reads years so."""
        if self.family == "zh":
            return self.digits(digits)
        if self.family == "hi":
            return hindi.year(int(digits))
        return self._named(int(digits), "year" if self.family == "en" else "cardinal")

    def digits(self, text: str) -> str:
        """Each digit by its name; anything else is left out."""
        own = self.tables.get("digits") if len(text) > 1 else None
        names = [
            own[int(digit)] if own else self._named(int(digit), "cardinal")
            for digit in text
            if digit.isdecimal()
        ]
        return self.joined(names)

    def number(self, text: str, gender: str = "") -> str:
        """A number as it is written: grouped, with decimals."""
        whole, point, decimals = self.plain(text).partition(".")
        if not point:
            return self.cardinal(whole, gender)
        said = self._decimals(decimals)
        return self.joined([self.cardinal(whole or "0"), self.word("point"), said])

    def _decimals(self, digits: str) -> str:
        """Two (French: or three) are a number where Romance is spoken: trois virgule quatorze."""
        as_number = len(digits) in self.tables.get("decimals_named", ()) and digits[0] != "0"
        return self.cardinal(digits) if as_number else self.digits(digits)

    def plain(self, text: str) -> str:
        """`1234.5` for what the language writes as 1,234.5 or 1.234,5."""
        grouped = re.sub(r"[\s'’](?=\d)", "", text)
        if _MILLIONS.fullmatch(grouped):
            return grouped.replace(".", "")
        if self.tables["decimal"] == "," or _CONTINENTAL.fullmatch(grouped):
            return re.sub(r"\.(?=\d{3}(?!\d))", "", grouped).replace(",", ".")
        if _SHORT_DECIMAL.fullmatch(grouped):
            return grouped.replace(",", ".")
        return grouped.replace(",", "")

    def joined(self, words: list[str]) -> str:
        """Words one behind the other."""
        return (" " if self.spaced else "").join(word for word in words if word)

    def between(self, first: str, word: str, last: str) -> str:
        """`first`, one of the language's words, `last`; in a language without spaces, without."""
        return self.joined([first, self.word(word), last])

    def letters(self, text: str) -> str:
        """Letters to be said one by one, digits by their names."""
        names = self.table("letters")
        spelled = [
            self.digits(c) if c.isdecimal() else names.get(c.lower(), c.upper())
            for c in text
            if c.isalnum()
        ]
        return " ".join(spelled)

    def is_one(self, digits: str) -> bool:
        """Whether a noun behind this number stands in the singular."""
        value = self.plain(digits)
        if self.family in ("fr", "pt"):  # 1,5 is singular there
            return value.partition(".")[0] in ("0", "1")
        return value in ("1", "01")

    def _named(self, value: int, kind: str) -> str:
        return _named(self.code, self.tables.get("num2words", ""), value, kind)


@lru_cache(4096)
def _named(code: str, library: str, value: int, kind: str) -> str:
    own = _OWN.get(code)
    if own is not None:
        return own(value)
    words: str = num2words(value, lang=library, to=kind)
    words = words.replace(",", "")
    if library == "it":  # it leaves the accent out in ventitré
        words = re.sub(r"(?<=\w)tre\b", "tré", words)
    if library == "en":
        words = words.replace("-", " ")
        if code == "en-us":
            words = words.replace(" and ", " ")
    return words


@cache
def language(code: str) -> Language:
    """The language of a voice. Raises KeyError for one that the model does not speak."""
    data = resources.files(__package__).joinpath("data", f"{FILES[code]}.json")
    tables: dict[str, Any] = json.loads(data.read_text("utf-8"))
    tables |= tables.get("variants", {}).get(code, {})
    return Language(code, tables)
