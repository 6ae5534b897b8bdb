"""Engines and devices that are asked for and are not here: said in words that help."""

from __future__ import annotations

import os
from importlib.util import find_spec as real_find_spec
from typing import Any

import onnxruntime
import pytest

from firstword import assets
from firstword.errors import FirstwordError
from services.inference import __main__ as program
from services.inference import onnx
from services.inference.settings import InferenceSettings
from tests.doubles.engines import pronouncer

pytestmark = pytest.mark.model

CUDA = "CUDAExecutionProvider"


def test_torch_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> Any:
        return None if name == "torch" else real_find_spec(name)

    monkeypatch.setattr(program, "find_spec", find_spec)
    with pytest.raises(FirstwordError, match="pip install 'torch") as caught:
        program.load_engine(InferenceSettings(engine="torch"))
    assert caught.value.code == "engine_missing"


def load(device: str) -> onnx.OnnxSynthesizer:
    return onnx.OnnxSynthesizer(assets.locate(os.environ), pronouncer(), 1, device)


def test_cuda_that_this_onnxruntime_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPU"])
    with pytest.raises(FirstwordError, match="onnxruntime-gpu") as caught:
        load("cuda")
    assert caught.value.code == "device_missing"


def test_auto_takes_the_cpu_where_there_is_no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPU"])
    assert " cpu " in load("auto").name


class Session:
    """An onnxruntime session that keeps of its providers what it is told to."""

    kept: tuple[str, ...] = ()

    def __init__(self, _model: bytes, _options: object, providers: list[str]) -> None:
        self.asked = providers

    def get_providers(self) -> list[str]:
        return [provider for provider in self.asked if provider in self.kept]


def test_cuda_that_does_not_start_is_not_replaced_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, "CPU"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    with pytest.raises(FirstwordError, match="could not start CUDA") as caught:
        load("auto")
    assert caught.value.code == "device_missing"
    monkeypatch.setattr(Session, "kept", (CUDA, "CPUExecutionProvider"))
    assert " cuda " in load("cuda").name
