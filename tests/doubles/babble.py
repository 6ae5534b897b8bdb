"""Audio that passes for speech and is none: syllables of a voice, as many as a text is long.

For tests of what tells speech from other sounds; a pure function of the text.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

RATE = 24_000
CHARACTERS_PER_S = 16
_SYLLABLE_S = 0.22
_VOICED = 0.8  # of a syllable
_HARMONICS = np.arange(1, 12)


def babble(text: str, rate: int = RATE) -> bytes:
    """s16le mono samples for a text, at the pace of a person."""
    total = round(len(text) / CHARACTERS_PER_S * rate)
    out = np.zeros(total)
    size = round(_SYLLABLE_S * rate)
    seed = zlib.crc32(text.encode())
    for number, at in enumerate(range(0, total - size, size)):
        pitch_hz = 100 + (seed >> number % 16) % 60
        out[at : at + size] = _syllable(pitch_hz, size, rate)
    pcm: bytes = (out * 12_000).astype("<i2").tobytes()
    return pcm


def _syllable(pitch_hz: float, size: int, rate: int) -> npt.NDArray[np.float64]:
    voiced = round(size * _VOICED)
    phase = 2 * np.pi * pitch_hz / rate * np.arange(voiced)
    tones = np.sin(np.outer(phase, _HARMONICS)) @ (1 / _HARMONICS)
    sound = np.zeros(size)
    sound[:voiced] = tones * np.hanning(voiced) / 2
    return sound
