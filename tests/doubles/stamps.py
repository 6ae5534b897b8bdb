"""Samples that say where they belong: any four in a row name session, sentence and place.

A sample is 15 bits around 0, well below full scale, where the path may bend peaks. Two of them say
which of four lanes it is, thirteen carry that lane's part of the stamp: the session's number, the
sentence's number, the high and the low half of the place, counted in fours. So a listener can tell
what is missing, what comes twice, what comes out of order and what is another's, from the samples
alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Stamps = npt.NDArray[np.int16]
"""Samples as they are heard: 16 bits, shape (n,)."""

SAMPLE_RATE = 24_000
MOST = 1 << 13
"""Numbers of sessions and sentences are below this."""
MIDDLE = 1 << 14

_SPOKEN = re.compile(r"\b[Ss]ession (\d+)\b.*?\bsentence (\d+)\b")


class Place(NamedTuple):
    """Where a sample belongs. `fours` counts groups of four samples from the sentence's start."""

    session: int
    sentence: int
    fours: int


def stamp(session: int, sentence: int, start: int, stop: int) -> Stamps:
    """Samples `start` to `stop` of a sentence."""
    place = np.arange(start, stop, dtype=np.int64)
    lane, fours = place & 3, place >> 2
    parts = [np.full_like(place, session), np.full_like(place, sentence)]
    carried = np.choose(lane, [*parts, fours >> 13, fours & (MOST - 1)])
    samples: Stamps = ((lane << 13 | carried) - MIDDLE).astype(np.int16)
    return samples


def read(samples: Stamps) -> list[Place | None]:
    """What each whole group of four says; None where lanes do not follow each other."""
    bits = samples.astype(np.int64) + MIDDLE
    lanes = bits >> 13
    groups: list[Place | None] = []
    at = int(np.argmax(lanes == 0)) if (lanes == 0).any() else len(samples)
    while at + 4 <= len(samples):
        group = bits[at : at + 4]
        if list(group >> 13) == [0, 1, 2, 3]:
            session, sentence, high, low = (int(part) for part in group & (MOST - 1))
            groups.append(Place(session, sentence, high << 13 | low))
            at += 4
        else:
            groups.append(None)
            at += 1
    return groups


def named_in(text: str) -> tuple[int, int]:
    """The session and the sentence that a text names, the highest numbers if it names none."""
    found = _SPOKEN.search(text)
    return (int(found[1]), int(found[2])) if found else (MOST - 1, MOST - 1)
