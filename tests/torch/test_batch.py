"""Several pieces in one run are what each is alone: real weights, real voices, on the CPU."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pytest

from services.inference.synthesizer import (
    Audio,
    BatchSynthesizer,
    Prepared,
    Stop,
    Stopped,
    SynthesisError,
    Utterance,
)
from tests.doubles.engines import NO_TORCH, kokoro_torch
from tests.torch.likeness import Samples, decibels

torch = pytest.importorskip("torch", reason=NO_TORCH)
# A busy machine may take minutes: the engine is loaded in the first test.
pytestmark = [pytest.mark.torch, pytest.mark.model, pytest.mark.timeout(600)]

UTTERANCES = (
    Utterance("Yes.", "af_heart", "en-us"),
    Utterance("Please say it now.", "bf_emma", "en-gb", speed=1.25, seed=3),
    Utterance("I would like two coffees and a sandwich.", "am_michael", "en-us", seed=4),
    Utterance("Are you sure?", "af_bella", "en-us", speed=0.8, seed=2**62),
)


@cache
def prepared() -> tuple[Prepared, ...]:
    return tuple(kokoro_torch().prepare(utterance) for utterance in UTTERANCES)


@cache
def alone() -> tuple[tuple[Samples, list[int]], ...]:
    """Samples and frames of each, made one by one."""
    return tuple(made([index])[0] for index in range(len(UTTERANCES)))


@cache
def wide() -> Any:
    """The model that finds its prosody in float64."""
    model = deepcopy(kokoro_torch()._model)
    model.widen()
    return model


def made(
    indices: list[int], model: Any = None, **batching: object
) -> list[tuple[Samples, list[int]]]:
    """What the model makes of these in one run."""
    from services.inference.kokoro_torch.model import Batching
    from services.inference.torch import line

    model = model or kokoro_torch()._model
    lines = [line(prepared()[index].pieces[0]) for index in indices]
    with torch.inference_mode():
        outputs = model(lines, lambda: None, Batching(**batching))  # type: ignore[arg-type]
    return [(samples.numpy(), frames.tolist()) for samples, frames in outputs]


def difference(one: Samples, other: Samples) -> float:
    assert one.shape == other.shape
    return float(np.abs(one - other).max())


def test_a_batch_is_what_its_lines_are_alone() -> None:
    for (samples, frames), (expected, single) in zip(made([0, 1, 2, 3]), alone(), strict=True):
        assert frames == single
        assert difference(samples, expected) < 1e-4


def test_padding_to_a_size_changes_nothing() -> None:
    batch = made([1, 0], tokens=(64, 128), frames=(160, 400))
    for (samples, frames), index in zip(batch, (1, 0), strict=True):
        # The encoder sees padding here, so pitch differs in its last bits and adds up.
        assert frames == alone()[index][1]
        assert difference(samples, alone()[index][0]) < 2e-2


def test_all_of_the_model_in_a_batch_is_what_its_lines_are_alone() -> None:
    sizes = {"tokens": (64, 128), "frames": (160, 400)}
    batch = made([0, 1, 2, 3], wide(), everything=True, **sizes)
    for index, (samples, frames) in enumerate(batch):
        [(expected, single)] = made([index], wide(), everything=True, **sizes)
        assert frames == single == alone()[index][1]
        assert difference(samples, expected) < 1e-4


def test_a_wide_prosody_is_nearly_the_same_sound() -> None:
    [(samples, frames)] = made([1], wide())
    expected, single = alone()[1]
    assert frames == single
    assert decibels(samples, expected) > 40


def test_neighbours_are_not_heard() -> None:
    beside_a_long_one, beside_a_short_one = made([1, 2])[0][0], made([1, 0])[0][0]
    assert difference(beside_a_long_one, beside_a_short_one) < 1e-4


def test_the_same_batch_again_is_equal_to_the_bit() -> None:
    for (one, _), (other, _) in zip(made([0, 1]), made([0, 1]), strict=True):
        assert np.array_equal(one, other)


def batch(indices: list[int], stops: list[Stop]) -> list[Audio | Exception]:
    engine = kokoro_torch()
    assert isinstance(engine, BatchSynthesizer)
    return engine.synthesize_batch([(prepared()[index], 0) for index in indices], stops)


def test_what_is_sent_is_as_long_and_as_loud_in_a_batch() -> None:
    engine = kokoro_torch()
    for audio, index in zip(batch([0, 1], [Stop(), Stop()]), (0, 1), strict=True):
        assert isinstance(audio, Audio)
        expected = engine.synthesize(prepared()[index], 0, Stop())
        assert difference(audio.samples, expected.samples) < 1e-4
        assert (audio.words, audio.fingerprint) == (expected.words, expected.fingerprint)


def test_a_stop_ends_its_own_piece_only() -> None:
    stopped = Stop()
    stopped.set()
    first, second = batch([0, 0], [stopped, Stop()])
    assert isinstance(first, Stopped) and isinstance(second, Audio)


def test_a_batch_that_nobody_waits_for_is_not_made() -> None:
    stops = [Stop(), Stop()]
    for stop in stops:
        stop.set()
    assert [type(one) for one in batch([0, 1], stops)] == [Stopped, Stopped]


def test_a_failure_is_told_to_all_without_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("I would like two coffees")

    monkeypatch.setattr(kokoro_torch()._model, "forward", fail)
    for error in batch([2, 0], [Stop(), Stop()]):
        assert isinstance(error, SynthesisError) and error.code == "engine_failed"
        assert error.retryable and "coffees" not in str(error)


def test_the_seed_decides_the_noise_and_belongs_to_the_plan() -> None:
    engine = kokoro_torch()
    seeds = [engine.prepare(Utterance("Yes.", "af_heart", "en-us", seed=seed)) for seed in (0, 1)]
    assert seeds[0].plan == prepared()[0].plan != seeds[1].plan
    zero, one = (engine.synthesize(each, 0, Stop()).samples for each in seeds)
    size = min(len(zero), len(one))
    assert 1e-4 < np.abs(zero[:size] - one[:size]).max() < 0.5


def test_half_precision_of_the_vocoder_is_still_the_same_speech() -> None:
    """On a CPU it is slow, so one word; what it is for is CUDA."""
    from services.inference.torch import line

    model = deepcopy(kokoro_torch()._model)
    model.decoder.generator.halve()
    with torch.inference_mode():
        [(samples, _)] = model([line(prepared()[0].pieces[0])], lambda: None)
    assert decibels(samples.numpy(), alone()[0][0]) > 35
