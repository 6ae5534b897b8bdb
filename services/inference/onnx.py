"""Kokoro-82M on ONNX Runtime: the only module that knows onnxruntime."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from firstword.assets import Assets, AssetsError
from firstword.session_protocol import Words
from services.inference.audio import Trimmed, trim
from services.inference.pieces import LIMIT, Piece, cut
from services.inference.synthesizer import (
    Audio,
    Prepared,
    Samples,
    Stop,
    Stopped,
    SynthesisError,
    Utterance,
)
from services.inference.text import Pronouncer, clean, is_speakable
from services.inference.vocabulary import symbols

# ONNX Runtime 1.29 and later report their use over the network from their first moment on. What is
# spoken here is not theirs to count, so this has to stand before the import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

SAMPLE_RATE: Final = 24_000
SAMPLES_PER_FRAME: Final = 600
"""One frame of a predicted duration is 25 ms of audio, exactly."""

PAD: Final = 0
DURATIONS: Final = "/encoder/Clip_output_0"
"""Tensor inside the published graph: frames per token, float, shape (1, tokens)."""


class OnnxSynthesizer:
    """The int8 export on the CPU. Deterministic: it draws no random numbers, `seed` is unused."""

    sample_rate = SAMPLE_RATE

    def __init__(self, assets: Assets, pronouncer: Pronouncer, threads: int) -> None:
        weights = assets.read_model()
        self._assets = assets
        self._pronouncer = pronouncer
        self._session = _load(weights, threads)
        self._styles: dict[str, npt.NDArray[np.float32]] = {}
        self.voices = frozenset(assets.installed_voices())
        digest = assets.manifest.model.sha256[:16]
        runtime = f"onnxruntime {onnxruntime.__version__} cpu"
        self.name = f"kokoro-82m {digest} {runtime} {pronouncer.name} pieces {LIMIT}"

    def prepare(self, utterance: Utterance) -> Prepared:
        text = clean(utterance.text)
        style = self._style(utterance.voice)
        pieces: tuple[Piece, ...] = ()
        if is_speakable(text):
            pieces = cut(self._pronouncer.pronounce(text, utterance.lang))
        request = [text, utterance.voice, utterance.lang, utterance.speed]
        cuts = [piece.phonemes for piece in pieces]
        fixed = json.dumps([self.name, *request, cuts]).encode()
        work = tuple((piece, style, utterance.speed) for piece in pieces)
        return Prepared(hashlib.sha256(fixed).hexdigest()[:32], work)

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        piece, style, speed = prepared.pieces[index]
        samples, frames = self._run(piece, style, speed, stop)
        trimmed = trim(samples, SAMPLE_RATE, piece.pause_s)
        words = _timed(piece, frames, trimmed)
        return Audio(trimmed.samples, words, frames.astype("<i2").tobytes())

    def _run(
        self, piece: Piece, style: npt.NDArray[np.float32], speed: float, stop: Stop
    ) -> tuple[Samples, npt.NDArray[np.int64]]:
        table = symbols()
        tokens = [PAD, *(table[symbol] for symbol in piece.phonemes), PAD]
        inputs = {
            "tokens": np.array([tokens], np.int64),
            "style": style[len(piece.phonemes) - 1],
            "speed": np.array([speed], np.float32),
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

    def _style(self, voice: str) -> npt.NDArray[np.float32]:
        """Style vectors by number of phonemes less one: shape (510, 1, 256)."""
        style = self._styles.get(voice)
        if style is None:
            try:
                pack = self._assets.read_voice(voice)
            except (AssetsError, OSError):
                message = "the file of this voice is damaged here; `firstword voices fetch --all`"
                raise SynthesisError("voice_damaged", message) from None
            style = np.frombuffer(pack, "<f4").astype(np.float32).reshape(510, 1, 256)
            self._styles[voice] = style
        return style


def _load(weights: bytes, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Idle threads that spin would take the cores from the services beside us.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        weights + _as_output(DURATIONS), options, providers=["CPUExecutionProvider"]
    )


def _as_output(tensor: str) -> bytes:
    """Bytes that, behind a model file, make an inner float tensor one of its outputs.

    A protocol buffer that is followed by another of its type is merged with it, so an addition
    needs no parser: ModelProto.graph (7) . output (12) = {name (1), type (2): {tensor (1): float}}.
    """
    tensor_type = _field(1, b"\x08\x01")  # elem_type (1) = FLOAT (1)
    value_info = _field(1, tensor.encode()) + _field(2, tensor_type)
    return _field(7, _field(12, value_info))


def _field(number: int, payload: bytes) -> bytes:
    if len(payload) > 127:
        raise ValueError("longer than a one-byte length can say")
    return bytes([number << 3 | 2, len(payload)]) + payload


def _timed(piece: Piece, frames: npt.NDArray[np.int64], trimmed: Trimmed) -> Words:
    """When each word sounds, in seconds of the trimmed samples.

    The model gives the last sounds of a sentence the silence behind them as well: no word
    ends after the last sound.
    """
    ends = np.cumsum(frames) * SAMPLES_PER_FRAME - trimmed.lead  # of token 0, which is padding, on

    def seconds(symbol: int) -> float:
        """When the symbol at this place of the piece begins."""
        return round(min(max(int(ends[symbol]), 0), trimmed.sound_end) / SAMPLE_RATE, 3)

    return tuple((w.start, w.end, seconds(w.first), seconds(w.past)) for w in piece.words)
