"""Which words of a session were heard at a barge-in: the text of its last two turns, word by word.

It is kept beside the progress, one field per segment, where the script that answers a cancel can
read it: `said:N` is msgpack [turn, start, end, text, spoken, samples, marks]. `marks` has a pair
for each word: the samples of the segment after which it has been said, and the bytes of `spoken` up
to its end. `samples` is 0 until the segment is complete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain

import msgpack

from firstword import messages as m
from firstword.session_protocol import Words
from services.tts_gateway.actions import Fields

KEPT = 256
"""Segments of a turn; earlier ones are not known any more."""
CHARACTERS_PER_S = 15
"""A usual pace at speed 1, for words without times of their own."""
_WORD = re.compile(r"\S+")


class Said:
    """The fields to store, and those to delete, as segments begin and end."""

    def __init__(self, saved: Mapping[str, bytes]) -> None:
        self._turn = saved.get("said_turn", b"").decode()
        self._turn_from = int(saved.get("said_turn_from", b"0"))
        self._before_from = int(saved.get("said_before_from", b"0"))

    def begin(self, segment: m.Segment, rate: int) -> Fields:
        """A segment begins: its words get times by the usual pace."""
        gone: Fields = {}
        if segment.turn != self._turn:
            first = max(self._before_from, self._turn_from - KEPT)
            gone = {_field(n): None for n in range(first, self._turn_from)}
            self._before_from, self._turn_from = self._turn_from, segment.n
            self._turn = segment.turn
        elif segment.n - KEPT >= self._turn_from:
            gone = {_field(segment.n - KEPT): None}
        per_character = rate / (CHARACTERS_PER_S * segment.speed)
        return {
            **gone,
            "said_turn": self._turn,
            "said_turn_from": str(self._turn_from),
            "said_before_from": str(self._before_from),
            **_kept(segment, 0, _shared(segment.spoken, per_character)),
        }

    def done(self, segment: m.Segment, samples: int, words: Words, rate: int) -> Fields:
        """A segment is complete: its words get their own times, or times by their length."""
        spoken = segment.spoken
        if words:
            marks = [(round(end_s * rate), _bytes(spoken, end)) for _start, end, _, end_s in words]
        else:
            marks = _shared(spoken, samples / max(1, len(spoken)))
        return _kept(segment, samples, marks)


def _field(n: int) -> str:
    return f"said:{n}"


def _shared(spoken: str, per_character: float) -> list[tuple[int, int]]:
    ends = (word.end() for word in _WORD.finditer(spoken))
    return [(round(end * per_character), _bytes(spoken, end)) for end in ends]


def _bytes(spoken: str, end: int) -> int:
    return len(spoken[:end].encode("utf-8", "surrogateescape"))


def _kept(segment: m.Segment, samples: int, marks: list[tuple[int, int]]) -> Fields:
    place = [segment.turn, segment.start, segment.end, segment.text, segment.spoken]
    packed = msgpack.packb(
        [*place, samples, list(chain.from_iterable(marks))], unicode_errors="surrogateescape"
    )
    return {_field(segment.n): packed}
