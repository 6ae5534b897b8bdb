"""The sound of vocal folds: sines at the pitch and its overtones, noise where there is no pitch.

One sequence at a time, never batched: it is a hundredth of the work, and everything here depends on
where a sequence ends.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor, nn

HOP: Final = 5
FFT: Final = 20
BINS: Final = FFT // 2 + 1
SAMPLES_PER_PITCH: Final = 300
"""Audio samples for one value of the pitch curve."""

_RATE: Final = 24_000
_SINES: Final = 9  # the pitch and eight overtones
_LOUDNESS: Final = 0.1
_BREATH: Final = 0.003
_VOICED_ABOVE_HZ: Final = 10.0


def draw_noise(pitches: int, seed: int, device: torch.device) -> Tensor:
    """The noise of a sequence: always the same for a seed, on whichever device; (samples, 9)."""
    generator = torch.Generator("cpu").manual_seed(seed)
    noise = torch.randn(pitches * SAMPLES_PER_PITCH, _SINES, generator=generator)
    return noise.to(device)


class Source(nn.Module):
    """Mixes the sines into one signal."""

    def __init__(self) -> None:
        super().__init__()
        self.l_linear = nn.Linear(_SINES, 1)

    def forward(self, pitch: Tensor, noise: Tensor) -> Tensor:
        """pitch: (pitches,) in Hz; gives (300 * pitches,) samples."""
        voiced = (pitch > _VOICED_ABOVE_HZ).float().repeat_interleave(SAMPLES_PER_PITCH)[:, None]
        loudness = _BREATH * voiced + _LOUDNESS / 3 * (1 - voiced)
        sines = _LOUDNESS * voiced * torch.sin(_phases(pitch)) + loudness * noise
        return torch.tanh(self.l_linear(sines)).squeeze(-1)


def _phases(pitch: Tensor) -> Tensor:
    """Phases in radians at each sample, (samples, 9).

    The phase advances by whole steps of 300 samples and is interpolated between the middles of
    the steps. Added up in float64 and wrapped there: thousands of turns leave float32 few digits.
    """
    overtones = torch.arange(1, _SINES + 1, device=pitch.device)
    turns = SAMPLES_PER_PITCH * (pitch[:, None].double() * overtones / _RATE % 1)
    reached = turns.cpu().cumsum(dim=0).to(turns.device)  # a GPU's sums do not repeat to the bit
    place = (torch.arange(len(pitch) * SAMPLES_PER_PITCH, device=pitch.device) + 0.5).double()
    place = (place / SAMPLES_PER_PITCH - 0.5).clamp(0, len(pitch) - 1)
    before = place.long()
    after = (before + 1).clamp(max=len(pitch) - 1)
    share = (place - before)[:, None]
    phases = reached[before] % 1 + share * turns[after] * (after > before)[:, None]
    return (2 * math.pi * (phases % 1)).float()


def spectrum(samples: Tensor, window: Tensor) -> Tensor:
    """Magnitudes and phases, (22, len(samples) / 5 + 1)."""
    found = torch.stft(samples, FFT, HOP, FFT, window, center=True, return_complex=True)
    return torch.cat([found.abs(), found.angle()])


def waveform(magnitudes: Tensor, phases: Tensor, window: Tensor) -> Tensor:
    """Samples, (5 * (frames - 1),), from (11, frames) each."""
    return torch.istft(torch.polar(magnitudes, phases), FFT, HOP, FFT, window, center=True)
