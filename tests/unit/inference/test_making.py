"""What a worker does with an engine: alone, in a batch, and when something goes wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from services.inference.making import Made, Work, make
from services.inference.synthesizer import (
    Audio,
    Prepared,
    Stop,
    Stopped,
    SynthesisError,
    Utterance,
    max_batch,
)
from tests.doubles.tone_synthesizer import ToneSynthesizer, expected_samples


class BatchTone(ToneSynthesizer):
    """Makes up to three at once; every text that holds "bad" fails."""

    max_batch = 3

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.broken = False

    def synthesize_batch(
        self, pieces: Sequence[tuple[Prepared, int]], stops: Sequence[Stop]
    ) -> list[Audio | Exception]:
        self.batches.append(len(pieces))
        if self.broken:
            raise MemoryError
        return [self._one(*piece, stop) for piece, stop in zip(pieces, stops, strict=True)]

    def _one(self, prepared: Prepared, index: int, stop: Stop) -> Audio | Exception:
        if "bad" in prepared.pieces[index].text:
            return SynthesisError("engine_failed", "failed as told", retryable=True)
        return self.synthesize(prepared, index, stop)


def work(text: str, *, index: int = 0, prepared: Prepared | None = None) -> Work:
    return Work(Utterance(text, "af_heart", "en-us"), Stop(), prepared, index)


def audio_of(outcome: object) -> Audio:
    assert isinstance(outcome, Made) and outcome.audio is not None
    return outcome.audio


def test_a_request_is_prepared_on_the_way() -> None:
    [made] = make(ToneSynthesizer(), [work("Hello.")])
    assert np.array_equal(audio_of(made).samples, expected_samples("Hello."))
    assert isinstance(made, Made) and (made.index, len(made.prepared.pieces)) == (0, 1)
    assert made.seconds(24_000) == pytest.approx(0.3)


def test_the_next_piece_goes_on_with_what_was_prepared() -> None:
    engine, text = ToneSynthesizer(), "word " * 30
    prepared = engine.prepare(Utterance(text, "af_heart", "en-us"))
    [made] = make(engine, [work(text, index=1, prepared=prepared)])
    assert isinstance(made, Made) and made.index == 1
    assert len(audio_of(made).samples) == len(expected_samples(text)) - len(
        expected_samples(text[:80])
    )


def test_nothing_to_say_is_no_audio() -> None:
    [made] = make(ToneSynthesizer(), [work("…")])
    assert isinstance(made, Made) and made.audio is None and made.seconds(24_000) == 0
    assert made.prepared.plan


def test_several_are_made_in_one_run_where_the_engine_can() -> None:
    engine = BatchTone()
    assert (max_batch(engine), max_batch(ToneSynthesizer())) == (3, 1)
    texts = ["One.", "Number two.", "3"]
    outcomes = make(engine, [work(text) for text in texts])
    assert engine.batches == [3]
    for text, outcome in zip(texts, outcomes, strict=True):
        assert np.array_equal(audio_of(outcome).samples, expected_samples(text))
    assert len(make(ToneSynthesizer(), [work(text) for text in texts])) == 3


def test_each_of_a_run_has_its_own_end() -> None:
    engine = BatchTone()
    stopped = work("Never mind.")
    stopped.stop.set()
    works = [work("Fine."), stopped, work("bad"), work("…"), work("Fine too.")]
    fine, gone, bad, nothing, too = make(engine, works)
    assert engine.batches == [3]
    assert np.array_equal(audio_of(fine).samples, expected_samples("Fine."))
    assert np.array_equal(audio_of(too).samples, expected_samples("Fine too."))
    assert isinstance(gone, Stopped) and isinstance(bad, SynthesisError)
    assert isinstance(nothing, Made) and nothing.audio is None


def test_a_run_that_breaks_fails_all_that_are_in_it() -> None:
    engine = BatchTone()
    engine.broken = True
    outcomes = make(engine, [work("One."), work("…"), work("Two.")])
    assert [type(outcome) for outcome in outcomes] == [MemoryError, Made, MemoryError]


def test_what_cannot_be_prepared_fails_alone() -> None:
    class Mute(ToneSynthesizer):
        def prepare(self, utterance: Utterance) -> Prepared:
            raise SynthesisError("pronunciation_failed", "change it")

    [outcome] = make(Mute(), [work("Hello.")])
    assert isinstance(outcome, SynthesisError)
