"""A synthesizer that is not one: a tone per text, instantly, and failures on demand.

Its samples are a pure function of text, voice, speed and sample index, so a test that knows what
was asked for can compute every sample that must arrive (`expected_samples`).
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass

import numpy as np

from firstword.session_protocol import Words
from services.inference.synthesizer import (
    Audio,
    Prepared,
    Samples,
    Stop,
    Stopped,
    SynthesisError,
    Utterance,
)

SAMPLE_RATE = 24_000
VOICES = frozenset({"af_heart", "af_bella", "am_adam", "bf_emma", "jf_alpha"})


@dataclass(frozen=True, slots=True)
class ToneOptions:
    """Knobs. Times are real; 0 means at once."""

    ms_per_char: float = 50.0
    chars_per_piece: int = 80
    latency_s: float = 0.0
    """Before the audio of each piece."""
    rtf: float = 0.0
    """Seconds of work per second of audio, on top of the latency."""
    fail_times: int = 0
    """So many pieces fail before one succeeds; counted after the warm-up."""
    hang: bool = False
    """Pieces after the warm-up never end, whatever is asked, until `release`."""
    short: bool = False
    """Half of each piece's audio is missing."""


@dataclass(frozen=True, slots=True)
class TonePiece:
    text: str
    start: int
    utterance: Utterance


class ToneSynthesizer:
    """The named double of every test that does not need to be heard."""

    name = "tone 1"
    sample_rate = SAMPLE_RATE
    voices = VOICES

    def __init__(self, options: ToneOptions | None = None) -> None:
        self.options = options or ToneOptions()
        self.running = threading.Event()
        """Set while a piece is worked on, and afterwards."""
        self.made: list[str] = []
        """The texts of all pieces, the warm-up's too, in the order in which they were made."""
        self._released = threading.Event()
        self._failures = self.options.fail_times
        self._warm = False

    def release(self) -> None:
        """End what hangs."""
        self._released.set()

    def prepare(self, utterance: Utterance) -> Prepared:
        pieces = cut(utterance, self.options.chars_per_piece)
        request = [utterance.text, utterance.voice, utterance.speed]
        digest = hashlib.sha256(json.dumps([self.name, *request]).encode())
        return Prepared(digest.hexdigest()[:32], pieces)

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        piece: TonePiece = prepared.pieces[index]
        samples = tone(piece, self.options.ms_per_char)
        if not self._warm:
            self._warm = True
            self.made.append(piece.text)
            return Audio(samples)
        self.running.set()
        if self.options.hang:
            self._released.wait()
        self.made.append(piece.text)
        self._wait(self.options.latency_s + self.options.rtf * len(samples) / SAMPLE_RATE, stop)
        if self._failures > 0:
            self._failures -= 1
            raise SynthesisError("engine_failed", "failed as told", retryable=True)
        kept = samples[: len(samples) // 2] if self.options.short else samples
        return Audio(kept, words(piece, len(kept)))

    @staticmethod
    def _wait(seconds: float, stop: Stop) -> None:
        woken = threading.Event()
        stop.on_set(woken.set)
        if seconds > 0:
            woken.wait(seconds)
        if stop.is_set:
            raise Stopped


def cut(utterance: Utterance, size: int) -> tuple[TonePiece, ...]:
    text = utterance.text
    if not any(character.isalnum() for character in text):
        return ()
    return tuple(TonePiece(text[i : i + size], i, utterance) for i in range(0, len(text), size))


def tone(piece: TonePiece, ms_per_char: float) -> Samples:
    """A sine whose pitch is told by text and voice; never silent, so that a gap can be seen."""
    utterance = piece.utterance
    seed = hashlib.sha256(f"{utterance.voice} {piece.start} {piece.text}".encode()).digest()
    pitch = 150 + int.from_bytes(seed[:2], "big") % 500
    count = round(len(piece.text) * ms_per_char * SAMPLE_RATE / 1000 / utterance.speed)
    phase = np.arange(count, dtype=np.float64) * (2 * np.pi * pitch / SAMPLE_RATE)
    return (0.5 * np.cos(phase)).astype(np.float32)


def words(piece: TonePiece, samples: int) -> Words:
    """Words at the places that their characters have in the piece's time."""
    found: list[tuple[int, int, float, float]] = []
    per_char = samples / SAMPLE_RATE / len(piece.text)
    cursor = 0
    for word in piece.text.split():
        first = piece.text.index(word, cursor)
        cursor = first + len(word)
        times = round(first * per_char, 3), round(cursor * per_char, 3)
        found.append((piece.start + first, piece.start + cursor, *times))
    return tuple(found)


def expected_samples(
    text: str, voice: str = "af_heart", speed: float = 1.0, options: ToneOptions | None = None
) -> Samples:
    """All samples that a request must give, at the native rate."""
    options = options or ToneOptions()
    utterance = Utterance(text, voice, "en-us", speed)
    pieces = [tone(piece, options.ms_per_char) for piece in cut(utterance, options.chars_per_piece)]
    return np.concatenate([np.zeros(0, np.float32), *pieces])
