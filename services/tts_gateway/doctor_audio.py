"""Whether samples are somebody speaking a text: what can be told without understanding a word.

Pure, and quick enough for some seconds of audio without any library for numbers.
"""

from __future__ import annotations

import array
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

FULL_SCALE: Final = 32_768
FRAME_S: Final = 0.02
WINDOW_S: Final = 0.04
"""Of a look for a pitch: three periods of the deepest voice."""
PITCHES_HZ: Final = (70.0, 400.0)
LOOK_RATE: Final = 8_000
"""Pitch is looked for at this rate, in Hz."""
LOOKS: Final = 24
"""Windows that are looked at, the loudest ones."""

QUIETEST_DB: Final = -45.0
"""Of the loudest frame, below full scale. Speech peaks 20 to 40 dB above that."""
MOST_CLIPPED: Final = 0.002
"""Share of samples at full scale. Loud speech without a limiter has a few."""
MOST_WRAPPED: Final = 0.0005
"""Share of steps of more than half the range: audio too loud for 16 bits that was not limited."""
LEAST_VOICED: Final = 0.3
"""Share of the loud windows that have a pitch; speech has 0.6 and more, noise next to none."""
PITCHED: Final = 0.5
"""Likeness of a window to itself one period later. Noise of 40 ms stays below 0.4."""
LEAST_RANGE_DB: Final = 12.0
"""From loud to quiet frames, within speech of a sentence; a tone or a hum has none."""
FASTEST: Final = 24.0
SLOWEST: Final = 5.0
"""Characters a second at speed 1. Kokoro's voices speak 10 to 19."""
ABRUPT_DB: Final = -14.0
"""The end below the loudest frame: speech that is over fades out."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured of a synthesis, and what is wrong with it, '' where nothing is."""

    seconds: float
    characters_per_s: float
    peak_db: float
    problem: str = ""
    remedy: str = ""


def judge(pcm: bytes, rate: int, text: str) -> Verdict:
    """Judge s16le mono samples at `rate` Hz that should say `text` at speed 1."""
    samples = _samples(pcm)
    levels = _levels(samples, rate)
    seconds = len(samples) / rate
    loudest = max(levels, default=0.0)
    pace = len(text) / seconds if seconds else 0.0
    problem, remedy = _problem(samples, rate, levels, pace)
    if problem and (other := _container_of(pcm)):
        problem = f"the samples are {other}"
        remedy = "make the server send bare s16le mono samples"
    return Verdict(round(seconds, 2), round(pace, 1), round(_db(loudest), 1), problem, remedy)


def _problem(
    samples: Sequence[int], rate: int, levels: Sequence[float], pace: float
) -> tuple[str, str]:
    """The first thing that is wrong, and what to do."""
    if not samples:
        return "there is no audio", "see the server's log for the engine's error"
    loudest = max(levels)
    if _db(loudest) < QUIETEST_DB:
        return "it is silence", "see that the engine has its weights and its voice"
    clipped = sum(abs(sample) >= FULL_SCALE - 1 for sample in samples) / len(samples)
    if clipped > MOST_CLIPPED:
        told = f"it is clipped: {clipped:.1%} of the samples are at full scale"
        return told, "scale floats to -1 … 1, limit them and make them s16; do not send floats"
    if pace > FASTEST:
        told = f"it is too short: {pace:.0f} characters a second"
        return told, "see that every piece of the audio is sent, at the rate that is announced"
    voiced = _voiced_share(samples, rate)
    if voiced < LEAST_VOICED:
        told = f"it is noise: {voiced:.0%} of it has a pitch"
        return told, "send s16le mono: not floats, not big-endian, not another encoding"
    jumps = sum(abs(a - b) > FULL_SCALE for a, b in pairwise(samples)) / len(samples)
    if jumps > MOST_WRAPPED:
        told = "it wraps around: samples jump from one end of the scale to the other"
        return told, "limit floats to -1 … 1 before they become s16"
    spread = _db(loudest) - _db(sorted(levels)[len(levels) // 20])
    if spread < LEAST_RANGE_DB:
        return "it is a steady tone, no speech", "see that the engine has its weights and its voice"
    if pace < SLOWEST:
        told = f"it is too long: {pace:.1f} characters a second"
        return told, "see that the announced sample rate is the engine's, and speed 1 is asked for"
    if _db(_level(samples[-int(rate * FRAME_S) :])) > _db(loudest) + ABRUPT_DB:
        return "it breaks off at full voice", "see that the last piece of the audio is sent"
    return "", ""


def _samples(pcm: bytes) -> array.array[int]:
    samples = array.array("h", pcm[: len(pcm) - len(pcm) % 2])
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


def _level(samples: Sequence[int]) -> float:
    """Root mean square, 0 to 1."""
    return math.sqrt(sum(sample * sample for sample in samples) / len(samples)) / FULL_SCALE


def _levels(samples: Sequence[int], rate: int) -> list[float]:
    """Of each frame, the last one if it is whole."""
    size = max(1, int(rate * FRAME_S))
    starts = range(0, max(1, len(samples) - size + 1), size)
    return [_level(samples[at : at + size]) for at in starts] if samples else []


def _db(level: float) -> float:
    return 20 * math.log10(max(level, 1e-5))


def _voiced_share(samples: Sequence[int], rate: int) -> float:
    """The share of the loudest windows that repeat themselves as a voice does."""
    step = max(1, rate // LOOK_RATE)
    slow = [sum(samples[at : at + step]) for at in range(0, len(samples) - step + 1, step)]
    slow_rate = rate / step
    size = int(slow_rate * WINDOW_S)
    lags = range(int(slow_rate / PITCHES_HZ[1]), int(slow_rate / PITCHES_HZ[0]) + 1)
    windows = [
        slow[at : at + size + lags[-1]] for at in range(0, len(slow) - size - lags[-1], size)
    ]
    windows.sort(key=lambda window: sum(abs(sample) for sample in window), reverse=True)
    looked_at = windows[:LOOKS]
    pitched = sum(_likeness(window, size, lags) > PITCHED for window in looked_at)
    return pitched / len(looked_at) if looked_at else 0.0


def _likeness(window: Sequence[int], size: int, lags: range) -> float:
    """How much a window is like itself later, at the lag where it is most."""
    here = window[:size]
    energy = sum(sample * sample for sample in here)
    best = 0.0
    for lag in lags:
        later = window[lag : lag + size]
        alike = sum(a * b for a, b in zip(here, later, strict=True))
        best = max(best, alike / math.sqrt(energy * sum(b * b for b in later) + 1.0))
    return best


def _container_of(pcm: bytes) -> str:
    """What a body is that is no bare audio, '' if it does not say."""
    kinds = {b"RIFF": "a WAV file", b"ID3": "MP3", b"OggS": "an Ogg file", b"fLaC": "FLAC"}
    if pcm[:1] == b"\xff" and pcm[1:2] in (b"\xfb", b"\xf3", b"\xf2"):
        return "MP3"
    return next((name for magic, name in kinds.items() if pcm.startswith(magic)), "")
