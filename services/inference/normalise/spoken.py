"""What a text becomes when it is said, and the way back from each said word. Pure."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of what is said stand for `source` to `source_end` of the text.

    `exact`: they are the same characters; otherwise all of them stand for all of the source.
    """

    start: int
    end: int
    source: int
    source_end: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Spoken:
    """`text` as it is said; `spans` cover it without gaps, in order."""

    text: str
    spans: tuple[Span, ...]

    @classmethod
    def plain(cls, text: str) -> Spoken:
        """Said as it is written."""
        return cls(text, (Span(0, len(text), 0, len(text), exact=True),))

    def source(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the original that `start` to `end` (at least one) stand for."""
        first, last = self._at(start), self._at(end - 1)
        begin = first.source + (start - first.start if first.exact else 0)
        past = last.source + (end - last.start) if last.exact else last.source_end
        return begin, past

    def is_exact(self, position: int) -> bool:
        """Whether the character there is one of the original, not one that was put for another."""
        return self._at(position).exact

    def _at(self, position: int) -> Span:
        return self.spans[bisect_right(self.spans, position, key=lambda span: span.start) - 1]


class Writer:
    """Puts a `Spoken` together from left to right."""

    def __init__(self, source: str, *, spaced: bool) -> None:
        self._source = source
        self._spaced = spaced
        self._parts: list[str] = []
        self._spans: list[Span] = []
        self._length = 0
        self._last = ""
        self._read = 0

    def replace(self, start: int, end: int, spoken: str) -> None:
        """Say `spoken` for these characters, and all before them as they stand."""
        self._copy(start)
        if self._spaced and in_word(self._last) and in_word(spoken[:1]):
            spoken = f" {spoken}"
        if self._spaced and in_word(spoken[-1:]) and in_word(self._source[end : end + 1]):
            spoken = f"{spoken} "
        self._add(spoken, start, end, exact=False)

    def finish(self) -> Spoken:
        """The rest as it stands."""
        self._copy(len(self._source))
        return Spoken("".join(self._parts), tuple(self._spans))

    def _copy(self, until: int) -> None:
        self._add(self._source[self._read : until], self._read, until, exact=True)

    def _add(self, spoken: str, start: int, end: int, *, exact: bool) -> None:
        self._read = end
        if spoken:
            past = self._length + len(spoken)
            self._spans.append(Span(self._length, past, start, end, exact))
            self._parts.append(spoken)
            self._length, self._last = past, spoken[-1]


def in_word(character: str) -> bool:
    """Whether it is a part of a word: a letter, a digit, or what is written over and under one."""
    return character.isalnum() or unicodedata.category(character or " ")[0] == "M"
