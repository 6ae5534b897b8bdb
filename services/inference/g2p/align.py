"""Which phonemes of a clause belong to which of its words. Pure.

Said together, words run into each other ("of the" may come out as one), so that the words of the
text and those of the phonemes are not always as many. Each word said alone shows where it begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise


def split(together: str, alone: Sequence[str]) -> list[str]:
    """`together` cut into as many parts as there are words, where words said `alone` suggest it.

    Joined, the parts are `together`. A part may be empty; spaces belong to the part before them.
    """
    if not alone:
        return []
    bare = [word.replace(" ", "") for word in alone]
    places = [index for index, symbol in enumerate(together) if symbol != " "]
    matcher = SequenceMatcher(None, "".join(bare), "".join(together.split()), autojunk=False)
    ends = []
    length = 0
    for word in bare[:-1]:
        length += len(word)
        ends.append(_moved(length, matcher, len(places)))
    cuts = [0, *(places[end] if end < len(places) else len(together) for end in ends)]
    cuts.append(len(together))
    return [together[start:end] for start, end in pairwise(cuts)]


def _moved(position: int, matcher: SequenceMatcher[str], length: int) -> int:
    """Where a place in the words said alone lies in the clause."""
    for _, start, end, other, other_end in matcher.get_opcodes():
        if position <= end:
            if position == end:
                return other_end
            share = (position - start) / (end - start)
            return other + round(share * (other_end - other))
    return length
