"""Kokoro-82M on torch: on the CPU, and in batches on a GPU."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from firstword.assets import Assets
from services.inference.kokoro import SAMPLE_RATE, EngineError, Frames, Front, Work, to_audio
from services.inference.kokoro_torch import weights
from services.inference.kokoro_torch.model import Batching, Kokoro, Line
from services.inference.kokoro_torch.vocoder import Alive
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

# Few shapes on a GPU: for each new one its libraries plan for a while before they compute.
_TOKENS: Final = tuple(range(32, 257, 32))
_FRAMES: Final = (*range(40, 401, 40), *range(480, 961, 80), *range(1120, 2081, 160))
_WARM: Final = 400
"""Frames, 10 s: longer batches are rare enough to be planned when they come."""


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """How to compute. `device`: cpu, cuda, or auto for CUDA where it is.

    `precision`: half lets the vocoder's convolutions compute in float16, on CUDA only.
    `everything`: batch all of the model, not the vocoder only (`Batching`), its prosody in float64.
    `max_batch`: most pieces of one run; CPUs gain nothing by batches and take one.
    """

    device: str = "auto"
    precision: str = "full"
    threads: int = 1
    max_batch: int = 8
    everything: bool = False


class TorchSynthesizer:
    """Kokoro-82M from a local checkpoint. The seed of a request decides its breath noise."""

    sample_rate = SAMPLE_RATE

    def __init__(
        self, assets: Assets, pronouncer: Pronouncer, options: TorchOptions = TorchOptions()
    ) -> None:
        self._device = _device(options.device)
        on_gpu = self._device.type == "cuda"
        if options.precision == "half" and not on_gpu:
            message = "half precision is for CUDA; leave FIRSTWORD_INFERENCE_PRECISION at full"
            raise EngineError("bad_settings", message)
        _repeatably(options.threads)
        model, sha256 = weights.load(assets.folder)
        self._model: Kokoro = model.to(self._device)
        if options.precision == "half":
            self._model.decoder.generator.halve()
        if options.everything:
            self._model.widen()
        self._batching = (
            Batching(_TOKENS, _FRAMES, options.everything)
            if on_gpu
            else Batching(everything=options.everything)
        )
        self.max_batch = options.max_batch if on_gpu else 1
        where = torch.cuda.get_device_name(self._device) if on_gpu else "cpu"
        prosody = " wide" if options.everything else ""
        runtime = f"torch {torch.__version__} {where} {options.precision}{prosody}"
        self._front = Front(assets, pronouncer, f"{sha256[:16]} {runtime}", draws=True)
        self.name = self._front.name
        self.voices = self._front.voices
        if on_gpu:
            self._warm_up()

    def prepare(self, utterance: Utterance) -> Prepared:
        return self._front.prepare(utterance)

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        [made] = self.synthesize_batch([(prepared, index)], [stop])
        if isinstance(made, Exception):
            raise made
        return made

    def synthesize_batch(
        self, pieces: Sequence[tuple[Prepared, int]], stops: Sequence[Stop]
    ) -> list[Audio | Exception]:
        """As `BatchSynthesizer`; on a CPU too, where it saves nothing."""
        works: list[Work] = [prepared.pieces[index] for prepared, index in pieces]

        def alive() -> None:
            if all(stop.is_set for stop in stops):
                raise Stopped

        try:
            alive()
            made = self.run([line(work) for work in works], alive)
        except Stopped:
            return [Stopped() for _ in works]
        except Exception as error:
            return [_failed(error) for _ in works]
        return [
            Stopped() if stop.is_set else to_audio(work, *one)
            for work, one, stop in zip(works, made, stops, strict=True)
        ]

    def run(self, lines: Sequence[Line], alive: Alive) -> list[tuple[Samples, Frames]]:
        """The model's own output, untrimmed."""
        with torch.inference_mode():
            return [
                (samples.cpu().numpy(), frames.cpu().numpy())
                for samples, frames in self._model(lines, alive, self._batching)
            ]

    def _warm_up(self) -> None:
        """Let the GPU's libraries plan for the shapes that will come."""
        with torch.inference_mode():
            for frames in (size for size in _FRAMES if size <= _WARM):
                for count in range(1, self.max_batch + 1):
                    self._model.rehearse(count, frames)


def _device(wanted: str) -> torch.device:
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        built = (
            "its driver or device is missing" if torch.version.cuda else "it is a build for CPUs"
        )
        message = f"torch {torch.__version__} finds no CUDA here: {built}; "
        raise EngineError("device_missing", message + "set FIRSTWORD_INFERENCE_DEVICE=cpu, or auto")
    return torch.device("cuda")


def _repeatably(threads: int) -> None:
    """Global to torch: equal input, equal bits; and no rounding to ten bits on the way."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else its sums may vary
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # nothing reads it, and it costs
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False


def line(work: Work) -> Line:
    """What the model reads of a piece."""
    # Each piece has noise of its own, and a seed may be larger than torch takes.
    basis = f"{work.seed} {work.piece.phonemes}".encode()
    seed = int.from_bytes(hashlib.sha256(basis).digest()[:7])
    return Line(work.tokens, torch.from_numpy(np.array(work.style[0])), work.speed, seed)


def _failed(error: Exception) -> SynthesisError:
    message = f"the engine failed ({type(error).__name__}); try again"
    return SynthesisError("engine_failed", message, retryable=True)
