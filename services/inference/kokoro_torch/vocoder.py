"""From sounds, pitch and loudness to the waveform: ISTFTNet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from services.inference.kokoro_torch.layers import StyledBlock, StyledNorm
from services.inference.kokoro_torch.prosody import HIDDEN
from services.inference.kokoro_torch.source import BINS, FFT, Source, spectrum, waveform
from services.inference.kokoro_torch.valid import Valid

Alive = Callable[[], None]
"""Called between two steps of the long part; raises what ends it."""

_WIDE: Final = 1024
_SIDE: Final = 64
_UP: Final = ((10, 20), (6, 12))  # factor and kernel of each stage
_KERNELS: Final = (3, 7, 11)
_DILATIONS: Final = (1, 3, 5)


def _same(channels: int, kernel: int, dilation: int = 1) -> nn.Conv1d:
    padding = (kernel - 1) * dilation // 2
    return nn.Conv1d(channels, channels, kernel, padding=padding, dilation=dilation)


class _Residual(nn.Module):
    """Three times: styled norm, snake, dilated convolution; norm, snake, convolution; add."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        steps = len(_DILATIONS)
        self.convs1 = nn.ModuleList(_same(channels, kernel, d) for d in _DILATIONS)
        self.convs2 = nn.ModuleList(_same(channels, kernel) for _ in range(steps))
        self.adain1 = nn.ModuleList(StyledNorm(channels) for _ in range(steps))
        self.adain2 = nn.ModuleList(StyledNorm(channels) for _ in range(steps))
        self.alpha1 = nn.ParameterList(torch.ones(1, channels, 1) for _ in range(steps))
        self.alpha2 = nn.ParameterList(torch.ones(1, channels, 1) for _ in range(steps))

    def forward(self, x: Tensor, style: Tensor, valid: Valid, alive: Alive) -> Tensor:
        """x: (batch, channels, size), as is the result; style: (batch, 128). Raises what `alive`
        raises."""
        first = zip(self.adain1, self.alpha1, self.convs1, strict=True)
        second = zip(self.adain2, self.alpha2, self.convs2, strict=True)
        for (norm1, alpha1, conv1), (norm2, alpha2, conv2) in zip(first, second, strict=True):
            alive()
            y = conv1(_snake(norm1(x, style, valid), alpha1))
            x = x + conv2(_snake(norm2(y, style, valid), alpha2))
        return x


def _snake(x: Tensor, alpha: Tensor) -> Tensor:
    return torch.addcdiv(x, torch.sin(alpha * x).square_(), alpha)


class Generator(nn.Module):
    """Up-samples 60 times, adding the source's spectrum, and reads the result as a spectrum."""

    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.m_source = Source()
        self.ups = nn.ModuleList()
        self.noise_convs = nn.ModuleList(
            [nn.Conv1d(2 * BINS, 256, 12, stride=6, padding=3), nn.Conv1d(2 * BINS, 128, 1)]
        )
        self.noise_res = nn.ModuleList([_Residual(256, 7), _Residual(128, 11)])
        self.resblocks = nn.ModuleList()
        channels = HIDDEN
        for factor, kernel in _UP:
            self.ups.append(
                nn.ConvTranspose1d(
                    channels, channels // 2, kernel, factor, padding=(kernel - factor) // 2
                )
            )
            channels //= 2
            self.resblocks.extend(_Residual(channels, kernel) for kernel in _KERNELS)
        self.conv_post = nn.Conv1d(channels, 2 * BINS, 7, padding=3)
        self.register_buffer("window", torch.hann_window(FFT), persistent=False)

    def halve(self) -> None:
        """Compute in float16 from here on, but for the source, which is a matter of last bits."""
        for part in (self.ups, self.noise_convs, self.noise_res, self.resblocks, self.conv_post):
            part.half()

    def forward(
        self, x: Tensor, style: Tensor, source: Tensor, valid: Valid, alive: Alive
    ) -> list[Tensor]:
        """x: (batch, 512, size); source: its spectrum, (batch, 22, 60 * size + 1).

        Gives the waveforms, 300 samples for each of the real part.
        """
        stages = len(self.ups)
        last = valid.times(60, 1)
        for stage, (up, from_source, residual) in enumerate(
            zip(self.ups, self.noise_convs, self.noise_res, strict=True)
        ):
            x = up(valid.clear(functional.leaky_relu(x, 0.1)))
            valid = valid.times(10) if stage == 0 else last
            if stage == stages - 1:
                x = functional.pad(x, (1, 0), mode="reflect")
            x = x + residual(from_source(source), style, valid, alive)
            blocks = self.resblocks[3 * stage : 3 * stage + 3]
            x = sum(block(x, style, valid, alive) for block in blocks) / len(blocks)
        x = self.conv_post(valid.clear(functional.leaky_relu(x, 0.01))).float()
        magnitudes, phases = torch.exp(x[:, :BINS]), torch.sin(x[:, BINS:])
        return [
            waveform(magnitudes[i, :, :length], phases[i, :, :length], self.window)
            for i, length in enumerate(valid.lengths)
        ]


class Vocoder(nn.Module):
    """Frames in, waveforms out: 600 samples a frame."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = StyledBlock(HIDDEN + 2, _WIDE)
        wide = _WIDE + _SIDE + 2
        self.decode = nn.ModuleList(
            [*(StyledBlock(wide, _WIDE) for _ in range(3)), StyledBlock(wide, HIDDEN, doubles=True)]
        )
        self.F0_conv = nn.Conv1d(1, 1, 3, stride=2, padding=1)
        self.N_conv = nn.Conv1d(1, 1, 3, stride=2, padding=1)
        self.asr_res = nn.ModuleList([nn.Conv1d(HIDDEN, _SIDE, 1)])
        self.generator = Generator()

    def forward(
        self,
        sounds: Tensor,
        curves: Tensor,
        noises: Sequence[Tensor],
        style: Tensor,
        valid: Valid,
        alive: Alive,
    ) -> list[Tensor]:
        """sounds: (batch, 512, size); curves: pitch and loudness, (batch, 2, 2 * size), zeros in
        the padding; noises: (600 * length, 9) for each sequence."""
        pitch, loudness = curves[:, :1], curves[:, 1:]
        low = [self.F0_conv(pitch), self.N_conv(loudness)]
        side = self.asr_res[0](sounds)
        x = self.encode(torch.cat([sounds, *low], dim=1), style, valid)
        for block in self.decode:
            alive()
            x = block(torch.cat([x, side, *low], dim=1), style, valid)
        kind = self.generator.conv_post.weight.dtype
        source = self._source(pitch, noises, valid)
        return self.generator(x.to(kind), style.to(kind), source.to(kind), valid.times(2), alive)

    def _source(self, pitch: Tensor, noises: Sequence[Tensor], valid: Valid) -> Tensor:
        window = self.generator.window
        spectra = [
            spectrum(self.generator.m_source(row[0, : 2 * length], noise), window).mT
            for row, noise, length in zip(pitch, noises, valid.lengths, strict=True)
        ]
        padded = pad_sequence(spectra, batch_first=True).mT
        return functional.pad(padded, (0, 120 * valid.size + 1 - padded.shape[-1]))
