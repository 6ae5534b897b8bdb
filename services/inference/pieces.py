"""Cutting a pronounced text into pieces that one run of the model speaks well. Pure.

Kokoro takes up to 510 phonemes, but long inputs fade and rush towards their end, so pieces stay
below `LIMIT`. A piece also occupies the device, so text longer than `LONG` is cut where a clause
ends. The first piece of a turn may end earlier still, since a listener waits for it. Where a piece
ends depends on text and settings alone, never on load, so that a repeated synthesis gives the same
samples.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil
from typing import Final

LIMIT: Final = 250
"""Most phonemes of a piece."""

LONG: Final = 120
"""A piece of more phonemes than this, some seven seconds, is cut where a clause ends."""

LEAST_FIRST: Final = 20
"""Fewest phonemes of a first piece that ends early: the model speaks one or two words badly."""

SENTENCE, CLAUSE, JOINT, SPACE, NOTHING = 4, 3, 2, 1, 0
_SENTENCE_MARKS: Final = frozenset(".!?…")
_CLAUSE_MARKS: Final = frozenset(",;:—")
_MARKS: Final = (_SENTENCE_MARKS | _CLAUSE_MARKS) - {"—"}
_CLOSING: Final = frozenset(")")

PAUSE_S: Final = {SENTENCE: 0.3, CLAUSE: 0.15, JOINT: 0.06, SPACE: 0.03, NOTHING: 0.0}
"""Silence that is left after the last sound of a piece, by what the piece ends with."""

_GOES_ON: Final = ","
"""Appended to a piece that ends before a conjunction, or its last word would sound final."""


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
    """Phonemes for one run of the model, their words, and the silence to leave after them."""

    phonemes: str
    words: tuple[Word, ...]
    pause_s: float


def cut(
    tokens: Sequence[Token],
    limit: int = LIMIT,
    *,
    first_words: int = 0,
    clause_starts: Collection[int] = (),
) -> tuple[Piece, ...]:
    """Cut at sentence marks, else clause marks, else conjunctions, into pieces of similar length;
    at spaces only where a piece would be longer than `limit`.

    `first_words`: the first piece ends at the first of these places that leaves at least this many
    words on both sides; 0: no early end. `clause_starts`: characters of the text where a
    conjunction begins a clause. Only pieces without a single word are dropped: the model turns them
    into noise.
    """
    units = [part for token in tokens for part in _bounded(token, limit)]
    ranks = _ranks(units, clause_starts)
    pieces = []
    start = 0
    while start < len(units):
        early = _early_end(units, ranks, first_words, limit) if first_words and not start else None
        end = early or _best_end(units, ranks, start, limit)
        piece = _piece(units[start:end], ranks[end - 1])
        if piece is not None:
            pieces.append(piece)
        start = end
    return tuple(pieces)


def _bounded(token: Token, limit: int) -> list[Token]:
    """The token itself, or parts of it if its phonemes alone exceed the limit."""
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


def _ranks(units: Sequence[Token], clause_starts: Collection[int]) -> list[int]:
    """How good a cut after each unit is."""
    ranks = _ranks_of_marks(units)
    for index, (unit, following) in enumerate(pairwise(units)):
        if following.start < unit.end:  # of one date or amount, which may be said with a comma
            ranks[index] = min(ranks[index], SPACE)
        elif following.is_word and following.start in clause_starts and ranks[index] == SPACE:
            ranks[index] = JOINT
    return ranks


def _ranks_of_marks(units: Sequence[Token]) -> list[int]:
    """By the marks alone. A closing bracket belongs to what it closes."""
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


def _early_end(units: Sequence[Token], ranks: Sequence[int], words: int, limit: int) -> int | None:
    """Where the first piece may end early; None if nowhere."""
    most = min(LONG, limit)
    sizes = accumulate(map(_size, units))
    counts = list(accumulate(unit.is_word for unit in units))
    ends = (
        end
        for end, (size, said) in enumerate(zip(sizes, counts, strict=True), 1)
        if ranks[end - 1] >= JOINT
        and LEAST_FIRST <= size <= most
        and words <= said <= counts[-1] - words
    )
    return next(ends, None)


def _best_end(units: Sequence[Token], ranks: Sequence[int], start: int, limit: int) -> int:
    sizes = list(accumulate(map(_size, units[start:])))
    long = min(LONG, limit)
    if sizes[-1] <= long:
        return len(units)
    end = _clause_end(sizes, ranks, start, long)
    if end is not None:
        return end
    return len(units) if sizes[-1] <= limit else _space_end(sizes, ranks, start, limit)


def _clause_end(sizes: Sequence[int], ranks: Sequence[int], start: int, most: int) -> int | None:
    """The best end of a clause that leaves no short rest on either side, if there is one."""
    left = sizes[-1]
    target = left / ceil(left / most)
    ends = [
        (ranks[end - 1], -abs(size - target), end)
        for end, size in enumerate(sizes, start + 1)
        if target / 2 <= size <= min(most, left - target / 2) and ranks[end - 1] >= JOINT
    ]
    return max(ends)[2] if ends else None


def _space_end(sizes: Sequence[int], ranks: Sequence[int], start: int, most: int) -> int:
    target = sizes[-1] / ceil(sizes[-1] / most)

    def merit(end: int, size: int) -> tuple[int, float]:
        # Early marks do not count: a short first piece would leave too much for the others.
        return ranks[end - 1] if size >= target / 2 else NOTHING, -abs(size - target)

    ends = ((end, size) for end, size in enumerate(sizes, start + 1) if size <= most)
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
    if rank == JOINT:
        phonemes += _GOES_ON
    moved = tuple(Word(w.start, w.end, w.first - lead, w.past - lead) for w in words)
    return Piece(phonemes, moved, PAUSE_S[rank])
