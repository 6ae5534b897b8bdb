"""Samples: trimming, conversion to 16 bits, sample rates, and the frames that leave. No clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import soxr

from services.inference.synthesizer import Samples

SILENCE_DBFS: Final = -50.0
"""What counts as silence. Above -45 dBFS the breath of an initial h would be cut."""

CLEAR_DBFS: Final = -45.0
"""Anything louder is not breath. Some voices breathe out for half a second after the last word,
now and then above `SILENCE_DBFS`."""

NEAR_S: Final = 0.06
"""Sound quieter than `CLEAR_DBFS` counts only this near to louder sound: a final f is as quiet."""

LEAD_S: Final = 0.03
"""Silence that is left before the first sound."""

TRIMMING: Final = f"trim {SILENCE_DBFS:g} {CLEAR_DBFS:g} {NEAR_S:g} {LEAD_S:g}"
"""How `trim` cuts, as part of plans: a container of another version may cut differently."""

FIRST_FRAME_S: Final = 0.04
FRAME_S: Final = 0.32
"""The first frame is short, since a listener waits for it; each next one is twice as long, up to
this."""

MAX_FRAME_BYTES: Final = 16_000

KNEE: Final = 0.9
CEILING: Final = 0.99
"""Samples over `KNEE` are bent towards `CEILING`: the int8 model has rare peaks over full scale."""

_WINDOW_S: Final = 0.01
_FADE_S: Final = 0.002


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What `trim` left, how many samples it cut at the front, and the ranges of samples in what is
    left (start, past the end) in which something is heard."""

    samples: Samples
    lead: int
    sounds: tuple[tuple[int, int], ...]


def trim(samples: Samples, rate: int, pause_s: float) -> Trimmed:
    """Cut silence to `LEAD_S` before the first sound and at most `pause_s` after the last.

    The cuts are faded, so that joined pieces do not click. Silence alone gives no samples.
    """
    window = round(_WINDOW_S * rate)
    count = len(samples) // window
    power = np.square(samples[: count * window].reshape(count, window)).mean(axis=1)
    loud = np.flatnonzero(_heard(power, round(NEAR_S / _WINDOW_S)))
    if loud.size == 0:
        return Trimmed(samples[:0], 0, ())
    start = max(0, int(loud[0]) * window - round(LEAD_S * rate))
    sound_end = (int(loud[-1]) + 1) * window
    end = min(len(samples), sound_end + round(pause_s * rate))
    runs = np.split(loud, np.flatnonzero(np.diff(loud) > 1) + 1)
    sounds = [(int(r[0]) * window - start, (int(r[-1]) + 1) * window - start) for r in runs]
    return Trimmed(_faded(samples[start:end], round(_FADE_S * rate)), start, tuple(sounds))


def _heard(power: npt.NDArray[np.floating], near: int) -> npt.NDArray[np.bool_]:
    """Which windows are heard; quiet ones only if they are at most `near` from a clear one."""
    loud = power > 10 ** (SILENCE_DBFS / 10)
    clear = power > 10 ** (CLEAR_DBFS / 10)
    if not clear.any():
        return loud
    return loud & (np.convolve(clear, np.ones(2 * near + 1))[near:-near] > 0)


def _faded(samples: Samples, length: int) -> Samples:
    faded = samples.copy()
    ramp = np.linspace(0, 1, length, endpoint=False, dtype=np.float32)
    faded[:length] *= ramp
    faded[-length:] *= ramp[::-1]
    return faded


def to_pcm(samples: Samples) -> bytes:
    """16-bit little-endian PCM; bent below full scale if too loud, silent if NaN.

    Each sample is converted on its own, so a sound gives the same bytes however it is cut.
    """
    values = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0).astype(np.float64)
    loud = np.flatnonzero(np.abs(values) > KNEE)
    if loud.size:
        size = np.abs(values[loud])
        bent = KNEE + (CEILING - KNEE) * np.tanh((size - KNEE) / (CEILING - KNEE))
        values[loud] = np.copysign(bent, values[loud])
    return np.rint(values * 32767).astype("<i2").tobytes()


class FrameStream:
    """Samples of consecutive pieces in, frames of PCM out: a small one first, then larger.

    `skip` samples, counted at the output rate, are left out at the start. The same input gives
    the same bytes, however it is cut into frames.
    """

    def __init__(self, native_rate: int, rate: int, skip: int = 0) -> None:
        self.samples = 0
        """Samples sent in frames so far."""
        self.skipped = 0
        """Samples left out so far."""
        self._rate = rate
        self._skip = skip
        self._frame_s = FIRST_FRAME_S
        self._held = np.zeros(0, np.float32)
        self._step = round(FRAME_S * native_rate)
        self._resampler = (
            soxr.ResampleStream(native_rate, rate, 1, dtype="float32")
            if rate != native_rate
            else None
        )

    def feed(self, samples: Samples, *, last: bool) -> Iterator[bytes]:
        """The frames of a piece; the last piece also releases what the resampler held back.

        The work is done in small steps, so that the first frame leaves at once and other tasks run.
        """
        for start in range(0, max(1, len(samples)), self._step):
            block = samples[start : start + self._step]
            if self._resampler is not None:
                final = last and start + self._step >= len(samples)
                block = self._resampler.resample_chunk(block, last=final)
            skipped = min(self._skip - self.skipped, len(block))
            self.skipped += skipped
            self._held = np.concatenate([self._held, block[skipped:]])
            while len(self._held) >= self._frame_samples():
                yield self._frame()
        if self._held.size:
            yield self._frame()

    def _frame(self) -> bytes:
        count = self._frame_samples()
        pcm = to_pcm(self._held[:count])
        self._held = self._held[count:]
        self.samples += len(pcm) // 2
        self._frame_s = min(2 * self._frame_s, FRAME_S)
        return pcm

    def _frame_samples(self) -> int:
        return min(int(self._frame_s * self._rate), MAX_FRAME_BYTES // 2)
