"""Which part of a padded batch is real.

Sequences of a batch are padded to one length. A network gives each of them what it would give it
alone if every operation that looks along the time axis sees the real part and zeros, nothing else:
`Valid` is handed to all of those (convolutions, norms, attention, LSTMs).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def at_least_float32(x: Tensor) -> Tensor:
    """What sums are made of: float16 has too few digits for them, float64 keeps its own."""
    return x if x.dtype is torch.float64 else x.float()


class Valid:
    """The lengths of the sequences in a batch that is `size` long."""

    def __init__(self, lengths: Sequence[int], size: int, device: torch.device) -> None:
        self.lengths = tuple(lengths)
        self.size = size
        self.device = device
        self.padding: Tensor | None = None
        """True where nothing real is, shape (batch, size); None where all is real."""
        if min(self.lengths) < size:
            ends = torch.tensor(self.lengths, device=device)
            self.padding = torch.arange(size, device=device) >= ends[:, None]

    def times(self, factor: int, more: int = 0) -> Valid:
        """The same sequences after up-sampling."""
        lengths = [factor * length + more for length in self.lengths]
        return Valid(lengths, factor * self.size + more, self.device)

    def clear(self, x: Tensor) -> Tensor:
        """Zeros into the padding of x, shape (batch, channels, size), in place; returns x."""
        return x if self.padding is None else x.masked_fill_(self.padding[:, None], 0)

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Variance and mean along the real part of x, (batch, channels, size), at least as float32.

        Sequence by sequence: numbers are added in the order in which they are without a batch.
        """
        if self.padding is None:
            return torch.var_mean(at_least_float32(x), dim=-1, correction=0, keepdim=True)
        each = [
            torch.var_mean(row[:, :length], dim=-1, correction=0, keepdim=True)
            for row, length in zip(at_least_float32(x), self.lengths, strict=True)
        ]
        return torch.stack([var for var, _ in each]), torch.stack([mean for _, mean in each])

    def run(self, lstm: nn.LSTM, x: Tensor) -> Tensor:
        """A bidirectional LSTM over x, (batch, size, channels): backwards from the real end."""
        if self.padding is None:
            return lstm(x)[0]
        lengths = torch.tensor(self.lengths)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=self.size)[0]
