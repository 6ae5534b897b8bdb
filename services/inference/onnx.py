"""Kokoro-82M on ONNX Runtime: the only module that knows onnxruntime."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from firstword.assets import Assets
from services.inference.kokoro import (
    SAMPLE_RATE,
    EngineError,
    Frames,
    Front,
    Work,
    to_audio,
)
from services.inference.synthesizer import (
    Audio,
    Prepared,
    Samples,
    Stop,
    Stopped,
    SynthesisError,
    Utterance,
)
from services.inference.text import Pronouncer

# ONNX Runtime 1.29 and later report their use over the network from their first moment on. What is
# spoken here is not theirs to count, so this has to stand before the import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

_CPU: Final = "CPUExecutionProvider"
_CUDA: Final = "CUDAExecutionProvider"

DURATIONS: Final = "/encoder/Clip_output_0"
"""Tensor inside the published graph: frames per token, float, shape (1, tokens)."""


class OnnxSynthesizer:
    """The int8 export. Deterministic: it draws no random numbers, `seed` is unused.

    `device`: cpu, cuda, or auto for CUDA where this onnxruntime has it. Raises EngineError.
    """

    sample_rate = SAMPLE_RATE

    def __init__(
        self, assets: Assets, pronouncer: Pronouncer, threads: int, device: str = "cpu"
    ) -> None:
        providers = _providers(device)
        self._session = _load(assets.read_model(), threads, providers)
        digest = assets.manifest.model.sha256[:16]
        where = "cuda" if _CUDA in providers else "cpu"
        runtime = f"onnxruntime {onnxruntime.__version__} {where}"
        self._front = Front(assets, pronouncer, f"{digest} {runtime}")
        self.name = self._front.name
        self.voices = self._front.voices

    def prepare(self, utterance: Utterance) -> Prepared:
        return self._front.prepare(utterance)

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        work: Work = prepared.pieces[index]
        return to_audio(work, *self._run(work, stop))

    def _run(self, work: Work, stop: Stop) -> tuple[Samples, Frames]:
        inputs = {
            "tokens": np.array([work.tokens], np.int64),
            "style": work.style,
            "speed": np.array([work.speed], np.float32),
        }
        options = onnxruntime.RunOptions()
        stop.on_set(lambda: setattr(options, "terminate", True))
        try:
            samples, frames = self._session.run(["audio", DURATIONS], inputs, options)
        except Exception as error:
            if stop.is_set:
                raise Stopped from None
            message = f"the engine failed ({type(error).__name__}); try again"
            raise SynthesisError("engine_failed", message, retryable=True) from None
        if stop.is_set:
            raise Stopped
        return samples, frames[0].astype(np.int64)


def _providers(device: str) -> list[str]:
    """In order of preference: what one provider cannot compute, ONNX Runtime leaves to the next."""
    if device == "cpu" or (device == "auto" and not _has_cuda()):
        return [_CPU]
    if not _has_cuda():
        message = (
            "FIRSTWORD_INFERENCE_DEVICE=cuda, but this onnxruntime has no CUDA: install "
            "onnxruntime-gpu in the place of onnxruntime, or set cpu or auto"
        )
        raise EngineError("device_missing", message)
    return [_CUDA, _CPU]


def _has_cuda() -> bool:
    return _CUDA in onnxruntime.get_available_providers()


def _load(weights: bytes, threads: int, providers: list[str]) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Idle threads that spin would take the cores from the services beside us.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        weights + _as_output(DURATIONS), options, providers=providers
    )
    if _CUDA in providers and _CUDA not in session.get_providers():
        message = (
            "onnxruntime could not start CUDA (its log above says which library or device is "
            "missing); install that, or set FIRSTWORD_INFERENCE_DEVICE=cpu"
        )
        raise EngineError("device_missing", message)
    return session


def _as_output(tensor: str) -> bytes:
    """Bytes that, appended to a model file, make an inner float tensor one of its outputs.

    Concatenated protocol buffers of one type are merged when read, so an addition needs no parser:
    ModelProto.graph (7) . output (12) = {name (1), type (2): {tensor (1): float}}.
    """
    tensor_type = _field(1, b"\x08\x01")  # elem_type (1) = FLOAT (1)
    value_info = _field(1, tensor.encode()) + _field(2, tensor_type)
    return _field(7, _field(12, value_info))


def _field(number: int, payload: bytes) -> bytes:
    if len(payload) > 127:
        raise ValueError("longer than a one-byte length can say")
    return bytes([number << 3 | 2, len(payload)]) + payload
