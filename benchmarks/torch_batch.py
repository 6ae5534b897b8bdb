"""What batches bring on this device: eight sentences by runs of 1, 2, 4 and 8 at a time.

    .venv-torch/bin/python -m benchmarks.torch_batch [cpu | cuda]

`make test-torch` makes that environment. Each size makes the same eight pieces, longest first, in
turn with the others; the figures are those of the best of its rounds. The differences are to the
waveforms made one by one, of full scale.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from benchmarks import machine
from firstword import assets
from firstword.errors import FirstwordError

SIZES: Final = (1, 2, 4, 8)
ROUNDS: Final = 2
SENTENCES: Final = (
    "The kettle is on the stove.",
    "Would you like some tea?",
    "It is raining again today.",
    "The bus stops at the corner.",
    "She left her keys at home.",
    "We can start in a minute.",
    "The shop closes at seven.",
    "Please take a seat over there.",
)


@dataclass(frozen=True, slots=True)
class Run:
    """All sentences, made by batches of one size: seconds, and how far off the samples are."""

    wall_s: float
    cpu_s: float
    audio_s: float
    difference: float


def main(arguments: Sequence[str]) -> None:
    """Print both tables; a few minutes on two cores."""
    print(machine.describe())
    if (noise := machine.noise()) is not None:
        print(f"WARNING: {noise}")
    try:
        from services.inference.text import Pronouncer
        from services.inference.torch import TorchOptions, TorchSynthesizer

        found, pronouncer = assets.locate(os.environ), Pronouncer()
        device = arguments[0] if arguments else "auto"
        options = TorchOptions(device, threads=machine.cores())
        engines = {
            "the vocoder": TorchSynthesizer(found, pronouncer, options),
            "everything": TorchSynthesizer(found, pronouncer, replace(options, everything=True)),
        }
    except (FirstwordError, ImportError) as error:
        raise SystemExit(f"{error}; see the top of benchmarks/torch_batch.py") from None
    for what, engine in engines.items():
        lines = _lines(engine)
        alone = _made(engine, lines, 1)  # and the warm-up
        print(f"\n{what} in one run: {engine.name}")
        print("  batch    wall s    CPU s    audio s per wall s    largest difference")
        runs: dict[int, list[Run]] = {size: [] for size in SIZES}
        for _ in range(ROUNDS):
            for size in SIZES:
                runs[size].append(_timed(engine, lines, size, alone))
        for size, rounds in runs.items():
            best = min(rounds, key=lambda run: run.wall_s)
            print(
                f"  {size:5}{best.wall_s:10.2f}{best.cpu_s:9.2f}"
                f"{best.audio_s / best.wall_s:22.2f}{best.difference:22.1e}"
            )


def _lines(engine: Any) -> list[Any]:
    from services.inference.synthesizer import Utterance
    from services.inference.torch import line

    prepared = [engine.prepare(Utterance(text, "af_heart", "en-us")) for text in SENTENCES]
    return sorted((line(each.pieces[0]) for each in prepared), key=lambda one: -len(one.tokens))


def _made(engine: Any, lines: Sequence[Any], size: int) -> list[Any]:
    waves: list[Any] = []
    for start in range(0, len(lines), size):
        made = engine.run(lines[start : start + size], lambda: None)
        waves += [samples for samples, _ in made]
    return waves


def _timed(engine: Any, lines: Sequence[Any], size: int, alone: Sequence[Any]) -> Run:
    wall, cpu = time.perf_counter(), time.process_time()
    waves = _made(engine, lines, size)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    pairs = list(zip(waves, alone, strict=True))
    difference = max(
        float(abs(one - other).max()) if one.shape == other.shape else 1.0 for one, other in pairs
    )
    return Run(wall, cpu, sum(len(wave) for wave in waves) / engine.sample_rate, difference)


if __name__ == "__main__":
    main(sys.argv[1:])
