"""A synthesizer whose every sample says which session, sentence and place it is of.

Run as the real inference service: `python -m tests.doubles.stamp_inference`.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from dataclasses import dataclass

import numpy as np

from services.inference.synthesizer import Audio, Prepared, Samples, Stop, Stopped, Utterance
from tests.doubles.stamps import SAMPLE_RATE, named_in, stamp

VOICES = frozenset({"af_heart"})


@dataclass(frozen=True, slots=True)
class StampOptions:
    """`rtf`: seconds of work for a second of audio. Two engines of other names make other plans.

    `hangs_on`: a text whose synthesis never ends, whatever is asked; '': none.
    """

    name: str = "stamp 1"
    ms_per_char: float = 15.0
    chars_per_piece: int = 10
    rtf: float = 0.0
    hangs_on: str = ""


@dataclass(frozen=True, slots=True)
class StampPiece:
    session: int
    sentence: int
    start: int
    stop: int
    hangs: bool = False


class StampSynthesizer:
    """Says a text that names its session and sentence; how long, its length tells."""

    sample_rate = SAMPLE_RATE
    voices = VOICES

    def __init__(self, options: StampOptions) -> None:
        self.name = options.name
        self._options = options

    def prepare(self, utterance: Utterance) -> Prepared:
        said = f"{self.name} {utterance.voice} {utterance.speed} {utterance.text}"
        plan = hashlib.sha256(said.encode()).hexdigest()[:32]
        session, sentence = named_in(utterance.text)
        length, step = len(utterance.text), self._options.chars_per_piece
        cuts = [self.samples(characters) for characters in (*range(0, length, step), length)]
        pieces = itertools.pairwise(cuts)
        hangs = utterance.text == self._options.hangs_on
        stamps = (StampPiece(session, sentence, *piece, hangs) for piece in pieces)
        return Prepared(plan, tuple(stamps))

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        piece: StampPiece = prepared.pieces[index]
        if piece.hangs:
            threading.Event().wait()
        self._work((piece.stop - piece.start) / SAMPLE_RATE * self._options.rtf, stop)
        return Audio(_as_float(piece))

    def samples(self, characters: int) -> int:
        """How many samples so many characters take."""
        return samples_of(characters, self._options.ms_per_char)

    @staticmethod
    def _work(seconds: float, stop: Stop) -> None:
        woken = threading.Event()
        stop.on_set(woken.set)
        if seconds > 0:
            woken.wait(seconds)
        if stop.is_set:
            raise Stopped


def samples_of(characters: int, ms_per_char: float) -> int:
    """How long a text of so many characters sounds, in samples."""
    return round(characters * ms_per_char * SAMPLE_RATE / 1000)


def _as_float(piece: StampPiece) -> Samples:
    whole = stamp(piece.session, piece.sentence, piece.start, piece.stop)
    return whole.astype(np.float32) / np.float32(32_767)
