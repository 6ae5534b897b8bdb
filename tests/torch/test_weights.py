"""Checkpoints: only pinned ones are spoken with, and ours is made the same everywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firstword import assets
from tests.doubles.engines import NO_TORCH, kokoro_torch

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]


def test_without_a_checkpoint_it_says_how_to_get_one(tmp_path: Path) -> None:
    from services.inference.kokoro_torch import weights

    with pytest.raises(assets.AssetsError, match=r"kokoro_torch\.dequantise") as caught:
        weights.load(tmp_path)
    assert caught.value.code == "assets_missing"


def test_another_file_than_the_pinned_one_is_not_opened(tmp_path: Path) -> None:
    from services.inference.kokoro_torch import weights

    (tmp_path / weights.ORIGINAL).write_bytes(b"not even a checkpoint")
    with pytest.raises(assets.AssetsError, match="not the pinned") as caught:
        weights.load(tmp_path)
    assert caught.value.code == "assets_corrupt"


def test_tensors_other_than_the_pinned_ones_are_not_spoken_with(tmp_path: Path) -> None:
    from services.inference.kokoro_torch import weights

    torch.save({"bert_encoder.bias": torch.zeros(512)}, tmp_path / weights.DEQUANTISED)
    with pytest.raises(assets.AssetsError, match="not the pinned"):
        weights.load(tmp_path)


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path: Path) -> None:
    from services.inference.kokoro_torch import weights

    torch.save({"weight": Path("code")}, tmp_path / weights.DEQUANTISED)
    with pytest.raises(assets.AssetsError, match="not the pinned"):
        weights.load(tmp_path)


def test_weight_norm_is_taken_out_as_torch_takes_it_out() -> None:
    from services.inference.kokoro_torch import weights

    layer = torch.nn.Conv1d(3, 5, 2)
    v, g = torch.randn(5, 3, 2), torch.rand(5, 1, 1)
    state = {"a.weight_v": v, "a.weight_g": g, "a.bias": layer.bias, "bert.pooler.weight": v}
    fused = weights.fused(state)
    assert fused.keys() == {"a.weight", "a.bias"}
    assert torch.allclose(fused["a.weight"], torch._weight_norm(v, g, 0), atol=1e-7)


def test_the_layout_of_the_original_is_read() -> None:
    from services.inference.kokoro_torch import weights

    flat = weights._flat({"bert": {"module.x.weight": torch.ones(1)}, "decoder": {"module.y": v()}})
    assert flat.keys() == {"bert.x.weight", "decoder.y"}


def v() -> object:
    return torch.zeros(1)


@pytest.mark.model
def test_what_is_made_of_the_int8_graph_is_what_is_pinned() -> None:
    from services.inference.kokoro_torch import dequantise, weights

    state = dequantise.dequantise(assets.locate(os.environ).folder)
    assert weights.digest(state) == weights.DEQUANTISED_SHA256
    assert {name: tensor.shape for name, tensor in state.items()} == {
        name: tensor.shape for name, tensor in kokoro_torch()._model.state_dict().items()
    }
    assert all(tensor.isfinite().all() for tensor in state.values())
