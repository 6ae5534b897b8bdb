"""Layers that the prosody predictor and the vocoder share. Names are those of the checkpoint."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from services.inference.kokoro_torch.valid import Valid, at_least_float32

STYLE: Final = 128
"""Half a style vector: one half is for the sound, the other for the prosody."""

EPSILON: Final = 1e-5


class StyledNorm(nn.Module):
    """Instance norm whose gain and offset follow from the style; zeros in the padding."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * channels)

    def forward(self, x: Tensor, style: Tensor, valid: Valid) -> Tensor:
        """x: (batch, channels, size), style: (batch, 128)."""
        gain, offset = at_least_float32(self.fc(style)[..., None]).chunk(2, dim=1)
        variance, mean = valid.moments(x)
        scale = (1 + gain) * torch.rsqrt(variance + EPSILON)
        shift = offset - mean * scale
        return valid.clear(torch.addcmul(shift.to(x.dtype), x, scale.to(x.dtype)))


class StyledBlock(nn.Module):
    """Two convolutions with styled norms and a way around them; may double the length."""

    def __init__(self, channels: int, out: int, *, doubles: bool = False) -> None:
        super().__init__()
        self.norm1 = StyledNorm(channels)
        self.norm2 = StyledNorm(out)
        self.conv1 = nn.Conv1d(channels, out, 3, padding=1)
        self.conv2 = nn.Conv1d(out, out, 3, padding=1)
        if channels != out:
            self.conv1x1 = nn.Conv1d(channels, out, 1, bias=False)
        if doubles:
            self.pool = nn.ConvTranspose1d(
                channels, channels, 3, stride=2, padding=1, output_padding=1, groups=channels
            )
        self._widens = channels != out
        self.doubles = doubles

    def forward(self, x: Tensor, style: Tensor, valid: Valid) -> Tensor:
        """(batch, channels, size) to (batch, out, size or twice that); its padding is undefined."""
        y = functional.leaky_relu(self.norm1(x, style, valid), 0.2)
        if self.doubles:
            valid = valid.times(2)
            y = valid.clear(self.pool(y))
            x = x.repeat_interleave(2, dim=-1)
        y = self.norm2(self.conv1(y), style, valid)
        y = self.conv2(functional.leaky_relu(y, 0.2))
        if self._widens:
            x = self.conv1x1(x)
        return (y + x) * 0.5**0.5
