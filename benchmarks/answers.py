"""What the sessions of a load say: short answers, cut as a language model writes them."""

from __future__ import annotations

from dataclasses import dataclass

from firstword.tokens import tokens
from services.segmenter.core import Segment, Segmenter, SegmenterOptions

ANSWERS = (
    "Your parcel left the depot this morning. It should be with you before noon.",
    "I found two tables for tonight. One is by the window, the other is in the garden.",
    "The next train to the coast leaves at a quarter past. Platform four is the one you want.",
    "Yes, that plan covers it. You pay the first part yourself, and we take care of the rest.",
    "Let me check that for you. The account was opened in spring and it is in good order.",
    "It will rain until the evening. Tomorrow looks better, with a light wind from the west.",
    "I have moved your meeting to Thursday. Everyone can come, and the room is free.",
    "That light means the filter is full. Take it out, rinse it, and let it dry for an hour.",
    "We close at six on weekdays. On Saturday somebody is here until the early afternoon.",
    "The refund is on its way. Banks need a few days, so please look again next week.",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Pieces to publish one after the other.

    `mark` is the piece with the first sentence's last character, `certain` the one that makes it
    a sentence: the same, or the one after it.
    """

    pieces: tuple[str, ...]
    mark: int
    certain: int


def answer(text: str, options: SegmenterOptions, *, together: bool, opening: bool) -> Answer:
    """`text` in pieces like tokens. `together`: the first sentence's last token and the next come
    as one piece. `opening`: cut off soon after the first sentence.

    Raises ValueError for a text whose first sentence is not certain before its end.
    """
    pieces = tokens(text)
    certain, sentence = _first_sentence(pieces, options)
    mark = 0
    while len("".join(pieces[: mark + 1]).strip()) < len(sentence):
        mark += 1
    if opening:
        pieces = pieces[: certain + 3]
    if together:
        joined = "".join(pieces[mark : certain + 1])
        return Answer((*pieces[:mark], joined, *pieces[certain + 1 :]), mark, mark)
    return Answer(tuple(pieces), mark, certain)


def _first_sentence(pieces: list[str], options: SegmenterOptions) -> tuple[int, str]:
    """The piece after which the first segment is certain, and its text."""
    segmenter = Segmenter(options)
    for number, piece in enumerate(pieces):
        for event in segmenter.push(piece, 0.0):
            if isinstance(event, Segment):
                return number, event.text
    raise ValueError("the text has no sentence that is certain before its end")
