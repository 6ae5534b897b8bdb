"""The weights of `Kokoro` on disk: which files there are, and that they are what they should be.

A checkpoint that does not fit gives noise without a word, so nothing but pinned content is used:
the original checkpoint by the sha256 of its file, the one we make from the int8 graph by that of
its tensors, since the bytes around them depend on the version of torch that wrote them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from firstword.assets import AssetsError
from services.inference.kokoro_torch.model import Kokoro
from services.inference.kokoro_torch.pins import DEQUANTISED as DEQUANTISED
from services.inference.kokoro_torch.pins import DEQUANTISED_SHA256 as DEQUANTISED_SHA256
from services.inference.kokoro_torch.pins import ORIGINAL as ORIGINAL
from services.inference.kokoro_torch.pins import ORIGINAL_SHA256 as ORIGINAL_SHA256

_UNUSED: Final = ("bert.pooler.", "bert.embeddings.position_ids")


def load(folder: Path) -> tuple[Kokoro, str]:
    """The model from the checkpoint in `folder`, the original if it is there, and its sha256.

    Raises AssetsError `assets_missing` or `assets_corrupt`.
    """
    original, dequantised = folder / ORIGINAL, folder / DEQUANTISED
    if original.is_file():
        sha256 = _file_sha256(original)
        _check(original, sha256 == ORIGINAL_SHA256)
        return _model(fused(_flat(_read(original)))), sha256
    if dequantised.is_file():
        state = _read(dequantised)
        sha256 = digest(state)
        _check(dequantised, sha256 == DEQUANTISED_SHA256)
        return _model(state), sha256
    raise AssetsError(
        "assets_missing",
        f"no weights for torch in {folder}: put the original {ORIGINAL} there, or make them from "
        "the int8 graph with `python -m services.inference.kokoro_torch.dequantise`",
    )


def digest(state: Mapping[str, Tensor]) -> str:
    """sha256 of names, types, shapes and values, in the order of the names."""
    sha256 = hashlib.sha256()
    for name, tensor in sorted(state.items()):
        sha256.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        sha256.update(tensor.contiguous().numpy().tobytes())
    return sha256.hexdigest()


def fused(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights that are stored as direction and length (weight norm) as one tensor each."""
    whole: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if name.startswith(_UNUSED) or name.endswith("weight_g"):
            continue
        if name.endswith("weight_v"):
            length = state[f"{name.removesuffix('v')}g"]
            norm = torch.linalg.vector_norm(tensor, dim=(1, 2), keepdim=True)
            name, tensor = name.removesuffix("_v"), length * tensor / norm
        whole[name] = tensor
    return whole


def _flat(checkpoint: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The five parts of the original, saved from a parallel wrapper, under one another's roof."""
    return {
        f"{part}.{name.removeprefix('module.')}": tensor
        for part, state in checkpoint.items()
        for name, tensor in state.items()
    }


def _model(state: Mapping[str, Tensor]) -> Kokoro:
    with torch.device("meta"):  # no time is spent on random weights
        model = Kokoro()
    model.load_state_dict(state, strict=True, assign=True)
    model.decoder.generator.window = torch.hann_window(len(model.decoder.generator.window))
    return model.eval().requires_grad_(False)


def _read(path: Path) -> dict[str, Tensor]:
    """Tensors only: whatever else a pickle could do is refused."""
    try:
        state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # of many kinds, for many kinds of damage
        raise _corrupt(path) from None
    return state


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(path: Path, is_right: bool) -> None:
    if not is_right:
        raise _corrupt(path)


def _corrupt(path: Path) -> AssetsError:
    message = f"{path} is not the pinned checkpoint; delete it and put it there again"
    return AssetsError("assets_corrupt", message)
