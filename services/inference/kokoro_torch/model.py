"""Kokoro-82M: a batch of pieces in, their waveforms and durations out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from services.inference.kokoro_torch.albert import WIDTH, Albert
from services.inference.kokoro_torch.layers import STYLE
from services.inference.kokoro_torch.prosody import HIDDEN, Prosody, TextEncoder
from services.inference.kokoro_torch.source import draw_noise
from services.inference.kokoro_torch.valid import Valid
from services.inference.kokoro_torch.vocoder import Alive, Vocoder


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One sequence of a batch. `style`: (256,), half for the sound, half for the prosody."""

    tokens: Sequence[int]
    style: Tensor
    speed: float
    seed: int


@dataclass(frozen=True, slots=True)
class Batching:
    """How lines are put together.

    `tokens` and `frames`: lengths that batches are padded to, so that few shapes occur; none: as
    long as needed. `everything`: run all of the model on the whole batch; otherwise only the
    vocoder is, and pitch and durations are found line by line. It matters for what a line becomes:
    its last bits vary with its neighbours, and the source adds the pitch up over thousands of
    periods, so that a last bit of a float32 is heard by the last sample, if only by a meter.
    `widen` leaves nothing of it.
    """

    tokens: tuple[int, ...] = ()
    frames: tuple[int, ...] = ()
    everything: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Score:
    """What the vocoder plays for some lines, without padding: sounds (length, 512), pitch and
    loudness (2 * length, 2), frames by token."""

    sounds: Tensor
    curves: Tensor
    frames: Tensor


class Kokoro(nn.Module):
    """What is made of a line does not depend on the batch it is in, rounding aside."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = Albert()
        self.bert_encoder = nn.Linear(WIDTH, HIDDEN)
        self.predictor = Prosody()
        self.text_encoder = TextEncoder()
        self.decoder = Vocoder()

    def widen(self) -> None:
        """Find durations and pitch in float64 from here on, all that leads to them included: what
        batches leave of its last bits is then far below those of the sound, a float32."""
        for part in (self.bert, self.bert_encoder, self.predictor):
            part.double()

    def forward(
        self, lines: Sequence[Line], alive: Alive, batching: Batching = Batching()
    ) -> list[tuple[Tensor, Tensor]]:
        """For each line its samples, float32, and frames per token, int64; on the device."""
        scores: list[_Score] = []
        for group in [lines] if batching.everything else [[line] for line in lines]:
            alive()
            scores += self._scores(group, batching)
        waveforms = self._waveforms(lines, scores, alive, batching)
        return [(wave, score.frames) for wave, score in zip(waveforms, scores, strict=True)]

    def rehearse(self, count: int, frames: int) -> None:
        """Run the vocoder once over silence of this shape."""
        device = self.bert_encoder.weight.device
        valid = Valid([frames] * count, frames, device)
        noises = [torch.zeros(600 * frames, 9, device=device)] * count
        sounds = torch.zeros(count, HIDDEN, frames, device=device)
        curves = torch.zeros(count, 2, 2 * frames, device=device)
        style = torch.zeros(count, STYLE, device=device)
        self.decoder(sounds, curves, noises, style, valid, lambda: None)

    def _scores(self, lines: Sequence[Line], batching: Batching) -> list[_Score]:
        device = self.bert_encoder.weight.device
        lengths = [len(line.tokens) for line in lines]
        valid = Valid(lengths, _fitting(max(lengths), batching.tokens), device)
        tokens = _padded([torch.tensor(line.tokens) for line in lines], valid).to(device)
        kind = self.bert_encoder.weight.dtype
        style = torch.stack([line.style[STYLE:] for line in lines]).to(device, kind)
        speed = torch.tensor([[line.speed] for line in lines], device=device, dtype=kind)
        x = self.bert_encoder(self.bert(tokens, valid))
        x, durations = self.predictor.durations(x, style, speed, valid)
        frames = [row[:length] for row, length in zip(durations, lengths, strict=True)]
        totals = torch.stack([row.sum() for row in frames]).tolist()
        spoken = Valid(totals, _fitting(max(totals), batching.frames), device)
        rows = _padded(_spread(x, frames), spoken)
        curves = torch.cat(self.predictor.curves(rows, style, spoken), dim=1).mT.float()
        sounds = _spread(self.text_encoder(tokens, valid).mT, frames)
        cut = [row[: 2 * total] for row, total in zip(curves, totals, strict=True)]
        return [_Score(*score) for score in zip(sounds, cut, frames, strict=True)]

    def _waveforms(
        self, lines: Sequence[Line], scores: Sequence[_Score], alive: Alive, batching: Batching
    ) -> list[Tensor]:
        device = self.bert_encoder.weight.device
        lengths = [len(score.sounds) for score in scores]
        valid = Valid(lengths, _fitting(max(lengths), batching.frames), device)
        sounds = _padded([score.sounds for score in scores], valid).mT
        curves = _padded([score.curves for score in scores], valid.times(2)).mT
        style = torch.stack([line.style[:STYLE] for line in lines]).to(device)
        noises = [
            draw_noise(2 * length, line.seed, device)
            for length, line in zip(lengths, lines, strict=True)
        ]
        return self.decoder(sounds, curves, noises, style, valid, alive)


def _fitting(length: int, sizes: Sequence[int]) -> int:
    return min((size for size in sizes if size >= length), default=length)


def _spread(x: Tensor, frames: Sequence[Tensor]) -> list[Tensor]:
    """Each token as often as it has frames: (batch, tokens, channels), (frames, channels) each."""
    return [
        row[: len(counts)].repeat_interleave(counts, dim=0)
        for row, counts in zip(x, frames, strict=True)
    ]


def _padded(rows: Sequence[Tensor], valid: Valid) -> Tensor:
    """(length, …) each to (batch, size, …), zeros behind."""
    batch = rows[0].new_zeros(len(rows), valid.size, *rows[0].shape[1:])
    for place, row in zip(batch, rows, strict=True):
        place[: len(row)] = row
    return batch
