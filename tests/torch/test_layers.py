"""Each kind of layer, small and with random weights: nothing behind a sequence reaches into it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doubles.engines import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytestmark = pytest.mark.torch

LENGTHS = st.lists(st.integers(2, 9), min_size=1, max_size=4)


def valid(lengths: list[int], more: int = 0) -> Any:
    from services.inference.kokoro_torch.valid import Valid

    return Valid(lengths, max(lengths) + more, torch.device("cpu"))


def batch(lengths: list[int], channels: int, more: int) -> Any:
    """(batch, channels, size) with rubbish in the padding."""
    torch.manual_seed(sum(lengths))
    return torch.randn(len(lengths), channels, max(lengths) + more)


@given(LENGTHS, st.integers(0, 5))
def test_what_is_real_stays_and_what_is_not_becomes_zero(lengths: list[int], more: int) -> None:
    x = batch(lengths, 3, more)
    cleared = valid(lengths, more).clear(x.clone())
    for row, before, length in zip(cleared, x, lengths, strict=True):
        assert torch.equal(row[:, :length], before[:, :length]) and not row[:, length:].any()


@given(LENGTHS, st.integers(0, 5))
@settings(deadline=None)
def test_a_norm_sees_the_real_part_only(lengths: list[int], more: int) -> None:
    from services.inference.kokoro_torch.layers import StyledNorm

    norm, style = StyledNorm(3), torch.randn(len(lengths), 128)
    x = batch(lengths, 3, more)
    together = norm(x, style, valid(lengths, more))
    for index, length in enumerate(lengths):
        row = slice(index, index + 1)
        single = norm(x[row, :, :length], style[row], valid([length]))
        assert torch.allclose(together[row, :, :length], single, atol=1e-6)
        assert not together[row, :, length:].any()


@given(LENGTHS, st.integers(0, 5))
@settings(deadline=None, max_examples=30)
def test_an_lstm_reads_backwards_from_the_real_end(lengths: list[int], more: int) -> None:
    lstm = torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    x = batch(lengths, 3, more).mT
    together = valid(lengths, more).run(lstm, x)
    assert together.shape[1] == max(lengths) + more
    for index, length in enumerate(lengths):
        row = slice(index, index + 1)
        single = valid([length]).run(lstm, x[row, :length])
        assert torch.allclose(together[row, :length], single, atol=1e-6)


@pytest.mark.parametrize("doubles", [False, True])
@pytest.mark.parametrize("out", [4, 6])
def test_a_block_of_convolutions_ends_where_its_sequence_ends(out: int, doubles: bool) -> None:
    from services.inference.kokoro_torch.layers import StyledBlock

    lengths = [2, 7, 5]
    block, style, x = (
        StyledBlock(4, out, doubles=doubles),
        torch.randn(3, 128),
        batch(lengths, 4, 2),
    )
    together = block(x, style, valid(lengths, 2))
    for index, length in enumerate(lengths):
        row = slice(index, index + 1)
        single = block(x[row, :, :length], style[row], valid([length]))
        assert single.shape == (1, out, (1 + doubles) * length)
        assert torch.allclose(together[row, :, : single.shape[-1]], single, atol=1e-5)


def test_attention_does_not_look_at_the_padding() -> None:
    from services.inference.kokoro_torch.albert import Albert

    torch.manual_seed(1)
    albert, lengths = Albert(), [3, 8]
    tokens = torch.randint(1, 178, (2, 10))
    with torch.inference_mode():
        together = albert(tokens, valid(lengths, 2))
        for index, length in enumerate(lengths):
            single = albert(tokens[index : index + 1, :length], valid([length]))
            assert torch.allclose(together[index, :length], single[0], atol=1e-4)


def test_a_tone_has_the_pitch_it_was_given() -> None:
    from services.inference.kokoro_torch.source import Source

    source = Source()
    torch.nn.init.zeros_(source.l_linear.bias)
    source.l_linear.weight.data = torch.tensor([[1.0] + [0.0] * 8])
    pitch = torch.full((80,), 240.0)  # one second
    sound = source(pitch, torch.zeros(24_000, 9)).detach()
    assert int(torch.fft.rfft(sound).abs().argmax()) == 240
    unvoiced = source(torch.zeros(80), torch.zeros(24_000, 9)).detach()
    assert not unvoiced.any()


def test_a_spectrum_is_turned_back_into_its_sound() -> None:
    from services.inference.kokoro_torch.source import BINS, spectrum, waveform

    window = torch.hann_window(20)
    sound = torch.randn(600)
    both = spectrum(sound, window)
    assert both.shape == (2 * BINS, 600 // 5 + 1)
    assert torch.allclose(waveform(both[:BINS], both[BINS:], window), sound, atol=1e-5)


def test_noise_follows_from_the_seed_alone() -> None:
    from services.inference.kokoro_torch.source import draw_noise

    cpu = torch.device("cpu")
    assert torch.equal(draw_noise(2, 7, cpu), draw_noise(2, 7, cpu))
    assert not torch.equal(draw_noise(2, 7, cpu), draw_noise(2, 8, cpu))
