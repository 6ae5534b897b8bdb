"""Cutting a pronounced text into pieces that one run of the model speaks well. Pure.

Kokoro takes up to 510 phonemes, but long inputs fade and rush towards their end; pieces stay
below `LIMIT`. Where a piece ends depends on the text alone, never on load, so that a synthesis
that is repeated gives the same samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Final

LIMIT: Final = 250
"""Most phonemes of a piece."""

SENTENCE, CLAUSE, SPACE, NOTHING = 3, 2, 1, 0
_SENTENCE_MARKS: Final = frozenset(".!?…")
_CLAUSE_MARKS: Final = frozenset(",;:—")
_MARKS: Final = (_SENTENCE_MARKS | _CLAUSE_MARKS) - {"—"}
_CLOSING: Final = frozenset(")")

PAUSE_S: Final = {SENTENCE: 0.3, CLAUSE: 0.15, SPACE: 0.03, NOTHING: 0.0}
"""Silence that is left after the last sound of a piece, by what it ends with."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word or mark of the text (`start` to `end`, characters) with its phonemes."""

    phonemes: str
    space: bool
    start: int
    end: int
    is_word: bool


@dataclass(frozen=True, slots=True)
class Word:
    """Where a word is: characters of the text, and phonemes of its piece."""

    start: int
    end: int
    first: int
    past: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Phonemes for one run of the model, its words, and the silence to leave behind it."""

    phonemes: str
    words: tuple[Word, ...]
    pause_s: float


def cut(tokens: Sequence[Token], limit: int = LIMIT) -> tuple[Piece, ...]:
    """Cut at sentence marks, else clause marks, else spaces, into pieces of similar length.

    Nothing is dropped but pieces without a single word, which the model turns into noise.
    """
    units = [part for token in tokens for part in _bounded(token, limit)]
    ranks = _ranks(units)
    pieces = []
    start = 0
    while start < len(units):
        end = _best_end(units, ranks, start, limit)
        piece = _piece(units[start:end], ranks[end - 1])
        if piece is not None:
            pieces.append(piece)
        start = end
    return tuple(pieces)


def _bounded(token: Token, limit: int) -> list[Token]:
    """The token itself, or parts of it where its phonemes alone go beyond the limit."""
    room = limit - 1  # one for the space behind it
    if len(token.phonemes) <= room:
        return [token]
    parts = [token.phonemes[i : i + room] for i in range(0, len(token.phonemes), room)]
    last = len(parts) - 1
    return [
        Token(part, token.space and i == last, token.start, token.end, token.is_word and i == 0)
        for i, part in enumerate(parts)
    ]


def _size(token: Token) -> int:
    return len(token.phonemes) + token.space


def _ranks(units: Sequence[Token]) -> list[int]:
    """How good a cut behind each unit is. A closing bracket belongs to what it closes."""
    ranks: list[int] = []
    for index, unit in enumerate(units):
        last = unit.phonemes[-1:]
        if last in _CLOSING and ranks:
            rank, ranks[-1] = max(ranks[-1], SPACE * unit.space), NOTHING
        elif last in _SENTENCE_MARKS:
            rank = SENTENCE
        elif last in _CLAUSE_MARKS:
            rank = CLAUSE
        elif not unit.phonemes and ranks:  # an unspoken mark: a quote behind a full stop
            rank, ranks[-1] = max(ranks[-1], SPACE * unit.space), NOTHING
        else:
            rank = SPACE if unit.space or index == len(units) - 1 else NOTHING
        ranks.append(rank)
    return ranks


def _best_end(units: Sequence[Token], ranks: Sequence[int], start: int, limit: int) -> int:
    sizes = list(accumulate(map(_size, units[start:])))
    left = sizes[-1]
    if left <= limit:
        return len(units)
    target = left / ceil(left / limit)

    def merit(end: int, size: int) -> tuple[int, float]:
        # Early marks do not count: a short first piece would leave too much for the others.
        return ranks[end - 1] if size >= target / 2 else NOTHING, -abs(size - target)

    ends = ((end, size) for end, size in enumerate(sizes, start + 1) if size <= limit)
    return max(ends, key=lambda candidate: merit(*candidate))[0]


def _piece(units: Sequence[Token], rank: int) -> Piece | None:
    phonemes = ""
    words = []
    for unit in units:
        if unit.is_word and unit.phonemes:
            first = len(phonemes)
            words.append(Word(unit.start, unit.end, first, first + len(unit.phonemes)))
        if unit.phonemes[:1] in _MARKS:  # a space before a mark is a pause that nobody wrote
            phonemes = phonemes.rstrip()
        phonemes += unit.phonemes + " " * unit.space
    lead = len(phonemes) - len(phonemes.lstrip())
    phonemes = phonemes.strip()
    if not any(character.isalpha() for character in phonemes):
        return None
    moved = tuple(Word(w.start, w.end, w.first - lead, w.past - lead) for w in words)
    return Piece(phonemes, moved, PAUSE_S[rank])
