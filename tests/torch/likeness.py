"""How alike two waveforms are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]


def decibels(made: Samples, expected: Samples) -> float:
    """Expected power over that of the difference."""
    assert made.shape == expected.shape
    error = np.square(made - expected).mean()
    return float(10 * np.log10(np.square(expected).mean() / max(error, 1e-20)))


def loudness(samples: Samples) -> Samples:
    """By hundredths of a second, in dB above silence."""
    windows = samples[: len(samples) // 240 * 240].reshape(-1, 240)
    return np.log10(np.square(windows).mean(axis=1) + 1e-6)
