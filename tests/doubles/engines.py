"""The real engine, loaded once for all tests of a run that carry the marker `model`."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import pytest

from firstword import assets
from services.inference.onnx import OnnxSynthesizer
from services.inference.text import Pronouncer

if TYPE_CHECKING:
    from services.inference.torch import TorchSynthesizer

THREADS = 2
NO_TORCH = "needs torch: `make test-torch` runs this in an environment of its own"


@cache
def pronouncer() -> Pronouncer:
    return Pronouncer()


@cache
def kokoro() -> OnnxSynthesizer:
    return OnnxSynthesizer(assets.locate(os.environ), pronouncer(), THREADS)


@cache
def kokoro_torch() -> TorchSynthesizer:
    """On the CPU; its checkpoint is made of the int8 graph where there is none."""
    pytest.importorskip("torch", reason=NO_TORCH)
    from services.inference.kokoro_torch import dequantise, weights
    from services.inference.torch import TorchOptions, TorchSynthesizer

    found = assets.locate(os.environ)
    if not any((found.folder / name).exists() for name in (weights.ORIGINAL, weights.DEQUANTISED)):
        dequantise.write(found.folder)
    return TorchSynthesizer(found, pronouncer(), TorchOptions("cpu", threads=THREADS))
