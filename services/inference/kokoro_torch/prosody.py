"""From phonemes to how long, how high and how loud each of them is."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from services.inference.kokoro_torch.albert import VOCABULARY
from services.inference.kokoro_torch.layers import EPSILON, STYLE, StyledBlock
from services.inference.kokoro_torch.valid import Valid

HIDDEN: Final = 512
LONGEST: Final = 50
"""Most frames of a token at speed 1."""

_LAYERS: Final = 3


def _lstm(channels: int) -> nn.LSTM:
    return nn.LSTM(channels, HIDDEN // 2, batch_first=True, bidirectional=True)


class _ChannelNorm(nn.Module):
    """Layer norm over the channels of (batch, channels, size)."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(HIDDEN))
        self.beta = nn.Parameter(torch.zeros(HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 512, size) to the same."""
        rows = functional.layer_norm(x.mT, (HIDDEN,), self.gamma, self.beta, EPSILON)
        return rows.mT


class TextEncoder(nn.Module):
    """Tokens (batch, size) to what the vocoder makes sounds of: (batch, 512, size)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.cnn = nn.ModuleList(
            nn.ModuleList([nn.Conv1d(HIDDEN, HIDDEN, 5, padding=2), _ChannelNorm()])
            for _ in range(_LAYERS)
        )
        self.lstm = _lstm(HIDDEN)

    def forward(self, tokens: Tensor, valid: Valid) -> Tensor:
        """Tokens (batch, size), numbers below VOCABULARY, to (batch, 512, size), zeros in the
        padding."""
        x = self.embedding(tokens).mT
        for convolution, norm in self.cnn:
            x = functional.leaky_relu(norm(convolution(valid.clear(x))), 0.2)
        return valid.run(self.lstm, x.mT).mT


class _StyledChannelNorm(nn.Module):
    """Layer norm over the channels of (batch, size, channels), styled."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * HIDDEN)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """x: (batch, size, 512), as is the result; style: (batch, 128)."""
        gain, offset = self.fc(style)[:, None].chunk(2, dim=-1)
        return torch.addcmul(offset, functional.layer_norm(x, (HIDDEN,), eps=EPSILON), 1 + gain)


class _DurationEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstms = nn.ModuleList(
            layer for _ in range(_LAYERS) for layer in (_lstm(HIDDEN + STYLE), _StyledChannelNorm())
        )

    def forward(self, x: Tensor, style: Tensor, valid: Valid) -> Tensor:
        """x: (batch, size, 512); style: (batch, 128). Gives (batch, size, 640): 512 channels and
        the style beside them."""
        beside = style[:, None].expand(-1, x.shape[1], -1)
        for lstm, norm in zip(self.lstms[::2], self.lstms[1::2], strict=True):
            x = norm(valid.run(lstm, torch.cat([x, beside], dim=-1)), style)
        return torch.cat([x, beside], dim=-1)


class _Projection(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear_layer = nn.Linear(HIDDEN, LONGEST)


def _curve() -> nn.ModuleList:
    return nn.ModuleList(
        [
            StyledBlock(HIDDEN, HIDDEN),
            StyledBlock(HIDDEN, HIDDEN // 2, doubles=True),
            StyledBlock(HIDDEN // 2, HIDDEN // 2),
        ]
    )


class Prosody(nn.Module):
    """Durations from tokens; then pitch and loudness, two values a frame, from frames."""

    def __init__(self) -> None:
        super().__init__()
        self.text_encoder = _DurationEncoder()
        self.lstm = _lstm(HIDDEN + STYLE)
        self.duration_proj = _Projection()
        self.shared = _lstm(HIDDEN + STYLE)
        self.F0 = _curve()
        self.N = _curve()
        self.F0_proj = nn.Conv1d(HIDDEN // 2, 1, 1)
        self.N_proj = nn.Conv1d(HIDDEN // 2, 1, 1)

    def durations(
        self, x: Tensor, style: Tensor, speed: Tensor, valid: Valid
    ) -> tuple[Tensor, Tensor]:
        """x: (batch, size, 512), speed: (batch, 1). Gives what `curves` reads, still by token,
        (batch, size, 640), and whole frames per token, (batch, size)."""
        x = self.text_encoder(x, style, valid)
        share = torch.sigmoid(self.duration_proj.linear_layer(valid.run(self.lstm, x)))
        return x, torch.round(share.sum(dim=-1) / speed).clamp(min=1).long()

    def curves(self, x: Tensor, style: Tensor, valid: Valid) -> tuple[Tensor, Tensor]:
        """Pitch in Hz and loudness, (batch, 1, 2 * size), of frames (batch, size, 640)."""
        x = valid.run(self.shared, x).mT
        curves = []
        for blocks, projection in ((self.F0, self.F0_proj), (self.N, self.N_proj)):
            y, here = x, valid
            for block in blocks:
                y = block(y, style, here)
                here = here.times(2) if block.doubles else here
            curves.append(here.clear(projection(y)))
        return curves[0], curves[1]
