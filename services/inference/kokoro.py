"""What all engines of Kokoro-82M share: from an utterance to tokens, from a waveform to audio."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from firstword.assets import Assets, AssetsError
from firstword.errors import FirstwordError
from firstword.session_protocol import Words
from services.inference import voices
from services.inference.audio import TRIMMING, Trimmed, trim
from services.inference.conjunctions import clause_starts
from services.inference.normalise import clean
from services.inference.pieces import LIMIT, Piece, cut
from services.inference.synthesizer import Audio, Prepared, Samples, SynthesisError, Utterance
from services.inference.text import Pronouncer
from services.inference.vocabulary import is_speakable, symbols
from services.inference.word_times import heard_begin, heard_end, joined

SAMPLE_RATE: Final = 24_000
SAMPLES_PER_FRAME: Final = 600
"""One frame of a predicted duration is 25 ms of audio, exactly."""

PAD: Final = 0

Style = npt.NDArray[np.float32]
"""How a voice sounds in a piece of some length: shape (1, 256)."""

Frames = npt.NDArray[np.int64]
"""How many frames each token lasts, padding at both ends included: shape (tokens,)."""


class EngineError(FirstwordError):
    """The engine that the settings ask for cannot run here; the message says what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """All that the model needs for one piece."""

    piece: Piece
    tokens: tuple[int, ...]
    style: Style
    speed: float
    seed: int


class Front:
    """Voices and pronunciation. `engine` names what makes the waveforms; it is part of plans.

    `draws`: whether the engine uses random numbers, so that the seed changes its audio.
    """

    def __init__(
        self, assets: Assets, pronouncer: Pronouncer, engine: str, *, draws: bool = False
    ) -> None:
        self._assets = assets
        self._pronouncer = pronouncer
        self._draws = draws
        self._packs: dict[str, npt.NDArray[np.float32]] = {}
        self.voices = frozenset(assets.installed_voices())
        self.name = f"kokoro-82m {engine} {pronouncer.name} pieces {LIMIT} {TRIMMING}"

    def prepare(self, utterance: Utterance) -> Prepared:
        """The pieces of `Prepared` are `Work`. Raises SynthesisError."""
        text = clean(utterance.text)
        pack = self._pack(utterance.voice)
        pieces: tuple[Piece, ...] = ()
        if is_speakable(text):
            pieces = cut(
                self._pronouncer.pronounce(text, utterance.lang, utterance.lexicon),
                first_words=utterance.first_words,
                clause_starts=clause_starts(text, utterance.lang),
            )
        request = [text, utterance.voice, utterance.lang, utterance.speed]
        if self._draws:
            request.append(utterance.seed)
        cuts = [(piece.phonemes, piece.pause_s) for piece in pieces]
        fixed = json.dumps([self.name, *request, cuts]).encode()
        return Prepared(
            hashlib.sha256(fixed).hexdigest()[:32],
            tuple(self._work(piece, pack, utterance) for piece in pieces),
            tuple(len(piece.phonemes) for piece in pieces),
        )

    def _work(self, piece: Piece, pack: npt.NDArray[np.float32], utterance: Utterance) -> Work:
        table = symbols()
        tokens = (PAD, *(table[symbol] for symbol in piece.phonemes), PAD)
        style = pack[len(piece.phonemes) - 1]
        return Work(piece, tokens, style, utterance.speed, utterance.seed)

    def _pack(self, voice: str) -> npt.NDArray[np.float32]:
        """Style vectors by number of phonemes less one: shape (510, 1, 256).

        Those of a mixture are the weighted mean of its voices'.
        """
        blend = voices.parse(voice)
        if len(blend) == 1:
            return self._pack_of(voice)
        mixed = np.zeros((510, 1, 256), np.float64)
        for name, share in blend:
            mixed += share * self._pack_of(name)
        return mixed.astype(np.float32)

    def _pack_of(self, voice: str) -> npt.NDArray[np.float32]:
        pack = self._packs.get(voice)
        if pack is None:
            try:
                raw = self._assets.read_voice(voice)
            except (AssetsError, OSError):
                message = "the file of this voice is damaged here; `firstword voices fetch --all`"
                raise SynthesisError("voice_damaged", message) from None
            pack = np.frombuffer(raw, "<f4").astype(np.float32).reshape(510, 1, 256)
            self._packs[voice] = pack
        return pack


def to_audio(work: Work, samples: Samples, frames: Frames) -> Audio:
    """A waveform as the model made it, trimmed, with the times of its words."""
    trimmed = trim(samples, SAMPLE_RATE, work.piece.pause_s)
    words = _timed(work.piece, frames, trimmed)
    # Where silence ends may depend on a sample's last bits, and these on the batch.
    lengths = struct.pack("<2I", trimmed.lead, len(trimmed.samples))
    return Audio(trimmed.samples, words, frames.astype("<i2").tobytes() + lengths)


def _timed(piece: Piece, frames: Frames, trimmed: Trimmed) -> Words:
    """When each word sounds, in seconds of the trimmed samples.

    The model knows within a frame or two when sounds change, but not where a pause's silence is.
    """
    ends = np.cumsum(frames) * SAMPLES_PER_FRAME - trimmed.lead  # of token 0, which is padding, on
    sounds = trimmed.sounds
    sound_end = sounds[-1][1] if sounds else 0

    def seconds(sample: float) -> float:
        return round(min(max(int(sample), 0), sound_end) / SAMPLE_RATE, 3)

    def begin(symbol: int) -> float:
        """Of a word: its first sound rises in the second half of the space before it."""
        space = frames[symbol] if piece.phonemes[symbol - 1 : symbol] == " " else 0
        return float(ends[symbol] - space * SAMPLES_PER_FRAME / 2)

    timed, before = [], 0.0
    for word in piece.words:
        end = float(ends[word.past])
        begins = heard_begin(sounds, begin(word.first), before, end)
        timed.append((word.start, word.end, seconds(begins), seconds(heard_end(sounds, end))))
        before = end
    return joined(timed)
