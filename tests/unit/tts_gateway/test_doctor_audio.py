"""Speech is told from what is none, and what is none is named."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tts_gateway.doctor_audio import judge
from tests.doubles.babble import RATE, babble

TEXT = "The quick brown fox jumps over the lazy dog, and nobody in the village is surprised."
SPEECH = babble(TEXT)
SAMPLES: npt.NDArray[np.float64] = np.frombuffer(SPEECH, "<i2").astype(float)
SECONDS = len(SAMPLES) / RATE
NOISE = np.random.default_rng(1).normal(0, 3_000, len(SAMPLES))
TONE = 9_000 * np.sin(np.arange(len(SAMPLES)) / 20)


def pcm(samples: npt.NDArray[np.float64]) -> bytes:
    data: bytes = np.clip(samples, -32_768, 32_767).astype("<i2").tobytes()
    return data


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 44_100, 48_000])
def test_speech_passes(rate: int) -> None:
    verdict = judge(babble(TEXT, rate), rate, TEXT)
    assert (verdict.problem, verdict.remedy) == ("", "")
    assert verdict.characters_per_s == pytest.approx(16, abs=0.1)
    assert verdict.seconds == pytest.approx(SECONDS, abs=0.1)
    assert -30 < verdict.peak_db < 0


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no audio"),
        (b"\0", "no audio"),
        (bytes(len(SPEECH)), "silence"),
        (pcm(SAMPLES / 400), "silence"),
        (pcm(SAMPLES * 8), "clipped"),
        (((SAMPLES * 6).astype(np.int64) & 0xFFFF).astype("<u2").tobytes(), "wraps around"),
        (pcm(NOISE), "noise"),
        (pcm(NOISE / 10), "noise"),
        (SAMPLES.astype(">i2").tobytes(), "noise"),
        (pcm(TONE), "tone"),
        (SPEECH[: len(SPEECH) // 4 * 2], "too short"),
        (b"\1\1\2\2", "too short"),
        (pcm(np.tile(SAMPLES, 4)), "too long"),
        (SPEECH[: round(SECONDS * 0.8 / 0.22) * 5_280 * 2 + 5_000], "breaks off"),
        (b"RIFF" + bytes(40), "a WAV file"),
        (b"ID3" + bytes(40), "MP3"),
        (b"\xff\xfb" + bytes(40), "MP3"),
        (b"\xff\x01" + bytes(40), "silence"),
        (b"OggS" + bytes(40), "Ogg"),
    ],
)
def test_what_is_none_is_named_with_a_remedy(data: bytes, problem: str) -> None:
    verdict = judge(data, RATE, TEXT)
    assert problem in verdict.problem
    assert verdict.remedy


def test_a_wav_file_that_passes_for_speech_is_let_pass() -> None:
    """44 bytes of a header are a click that nobody hears: not worth a red light by itself."""
    assert judge(b"RIFF" + SPEECH, RATE, TEXT).problem == ""


@given(st.binary(max_size=2_000), st.integers(8_000, 48_000))
def test_any_bytes_are_judged(data: bytes, rate: int) -> None:
    assert isinstance(judge(data, rate, TEXT).problem, str)


def test_the_machines_byte_order_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    other = "big" if sys.byteorder == "little" else "little"
    monkeypatch.setattr(sys, "byteorder", other)
    swapped = np.frombuffer(SPEECH, "<i2").byteswap().tobytes()
    data = swapped if other == "big" else SPEECH
    assert judge(data, RATE, TEXT).problem == ""
