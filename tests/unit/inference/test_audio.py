"""Samples: trimming, clipping, rates, frames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.audio import FrameStream, to_pcm, trim
from services.inference.synthesizer import Samples

RATE = 24_000


def sine(seconds: float, amplitude: float = 0.5, pitch: float = 300) -> Samples:
    phase = np.arange(round(seconds * RATE)) * (2 * np.pi * pitch / RATE)
    return (amplitude * np.sin(phase)).astype(np.float32)


def silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * RATE), np.float32)


def decoded(pcm: bytes) -> list[int]:
    return np.frombuffer(pcm, "<i2").tolist()


def test_silence_is_cut_to_a_lead_and_a_pause() -> None:
    trimmed = trim(np.concatenate([silence(0.3), sine(1), silence(0.6)]), RATE, 0.2)
    assert trimmed.lead == round(0.27 * RATE)
    assert len(trimmed.samples) == round(1.23 * RATE)
    assert trimmed.sounds == ((round(0.03 * RATE), round(1.03 * RATE)),)


def test_no_more_pause_than_there_is() -> None:
    trimmed = trim(np.concatenate([sine(1), silence(0.1)]), RATE, 0.3)
    assert (trimmed.lead, len(trimmed.samples)) == (0, round(1.1 * RATE))


def test_a_quiet_breath_is_kept() -> None:
    breath = sine(0.1, amplitude=0.008)  # -45 dBFS
    trimmed = trim(np.concatenate([silence(0.2), breath, sine(0.5), silence(0.2)]), RATE, 0)
    assert trimmed.lead == round(0.17 * RATE)


def test_breath_behind_the_last_word_is_no_sound() -> None:
    """It crosses what counts as silence for moments: they must not make a pause longer."""
    breath = np.concatenate([silence(0.2), sine(0.02, amplitude=0.006), silence(0.2)])
    trimmed = trim(np.concatenate([sine(1), breath]), RATE, 0.15)
    assert len(trimmed.samples) == round(1.15 * RATE)
    assert trimmed.sounds == ((0, RATE),)
    before = trim(np.concatenate([breath, sine(1)]), RATE, 0)
    assert before.lead == round(0.39 * RATE)


def test_a_quiet_consonant_at_the_end_is_heard() -> None:
    consonant = sine(0.05, amplitude=0.006)  # -47 dBFS
    trimmed = trim(np.concatenate([sine(1), silence(0.01), consonant, silence(0.5)]), RATE, 0)
    assert len(trimmed.samples) == round(1.06 * RATE)


@pytest.mark.parametrize("seconds", [0.01, 0.05, 1.0])
def test_who_only_whispers_is_heard(seconds: float) -> None:
    whisper = sine(seconds, amplitude=0.006)
    assert len(trim(np.concatenate([whisper, silence(1)]), RATE, 0).samples) == len(whisper)
    assert len(trim(sine(seconds), RATE, 0).samples) == round(seconds * RATE)


def test_cuts_do_not_click() -> None:
    trimmed = trim(sine(0.5) + np.float32(0.2), RATE, 0)
    assert trimmed.samples[0] == 0 and abs(trimmed.samples[-1]) < 1e-6
    assert np.abs(np.diff(trimmed.samples)).max() < 0.06


@pytest.mark.parametrize("samples", [silence(0), silence(0.001), silence(1)])
def test_nothing_to_hear_gives_no_samples(samples: Samples) -> None:
    assert len(trim(samples, RATE, 0.3).samples) == 0


def test_too_loud_is_bent_below_full_scale_and_never_wraps() -> None:
    nan, inf = float("nan"), float("inf")
    samples = np.array([0, 0.5, -0.9, 1.0, -1.0, 1.5, -40.0, inf, -inf, nan], np.float32)
    pcm = decoded(to_pcm(samples))
    assert pcm[:3] == [0, 16384, -29490], "what is not too loud stays as it is"
    assert pcm[-1] == 0
    assert max(map(abs, pcm)) == 32439
    assert [np.sign(p) for p in pcm[3:9]] == [1, -1, 1, -1, 1, -1]
    assert pcm[3] < pcm[5], "louder stays louder"


@given(st.lists(st.floats(width=32), max_size=50))
def test_any_samples_become_pcm(values: list[float]) -> None:
    pcm = decoded(to_pcm(np.array(values, np.float32)))
    assert len(pcm) == len(values)
    assert all(np.sign(p) in (0, np.sign(v)) for p, v in zip(pcm, values, strict=True) if v == v)


@given(
    st.lists(st.integers(min_value=0, max_value=20_000), min_size=1, max_size=5),
    st.integers(min_value=0, max_value=50_000),
    st.sampled_from([8_000, 16_000, 24_000, 44_100, 48_000]),
)
def test_frames_hold_every_sample_but_the_skipped_ones(
    sizes: list[int], skip: int, rate: int
) -> None:
    rng = np.random.default_rng(1)
    pieces = [rng.uniform(-1, 1, size).astype(np.float32) for size in sizes]

    def run(skip: int) -> tuple[list[bytes], FrameStream]:
        stream = FrameStream(RATE, rate, skip)
        frames: list[bytes] = []
        for index, piece in enumerate(pieces):
            frames += stream.feed(piece, last=index == len(pieces) - 1)
        return frames, stream

    whole = b"".join(run(0)[0])
    frames, stream = run(skip)
    assert b"".join(frames) == whole[2 * skip :]
    assert (stream.samples + stream.skipped) * 2 == len(whole)
    assert abs(len(whole) / 2 - sum(sizes) * rate / RATE) <= len(sizes) + 1
    assert all(0 < len(frame) <= 16_000 and len(frame) % 2 == 0 for frame in frames)
    if frames:
        assert len(frames[0]) <= 2 * 0.04 * rate
        assert max(map(len, frames)) <= 2 * 0.32 * rate


@pytest.mark.parametrize("rate", [RATE, 16_000])
def test_a120_little_is_converted_before_the_first_frame_leaves(rate: int) -> None:
    stream = FrameStream(RATE, rate)
    frames = stream.feed(sine(60), last=True)
    assert len(next(frames)) / 2 == stream.samples == 0.04 * rate
    assert len(stream._held) < 0.4 * rate, "the rest is not even resampled"
    assert sum(len(frame) for frame in frames) / 2 == pytest.approx(59.96 * rate, abs=2)


def test_frames_grow() -> None:
    frames = list(FrameStream(RATE, RATE).feed(sine(1.2), last=True))
    assert [len(frame) / 2 / RATE for frame in frames] == [0.04, 0.08, 0.16, 0.32, 0.32, 0.28]


def test_a_resampled_tone_keeps_its_pitch() -> None:
    stream = FrameStream(RATE, 16_000)
    pcm = b"".join(stream.feed(sine(1, pitch=1000), last=True))
    spectrum = np.abs(np.fft.rfft(np.frombuffer(pcm, "<i2")))
    assert len(pcm) == 32_000
    assert int(spectrum.argmax()) == 1000


def test_where_something_is_heard_is_told() -> None:
    """From one silence to the next, in the trimmed samples."""
    trimmed = trim(
        np.concatenate([silence(0.2), sine(0.5), silence(0.1), sine(0.3), silence(0.2)]), RATE, 0
    )
    assert trimmed.sounds == tuple(
        (round(first * RATE), round(past * RATE)) for first, past in ((0.03, 0.53), (0.63, 0.93))
    )
