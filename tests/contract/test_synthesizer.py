"""What every engine must keep, run against the tone double and against the real ones."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from services.inference.synthesizer import (
    Audio,
    Prepared,
    Stop,
    Stopped,
    SynthesisError,
    Synthesizer,
    Utterance,
)
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer


def tone() -> Synthesizer:
    engine = ToneSynthesizer(ToneOptions(latency_s=0.1))
    engine.synthesize(engine.prepare(Utterance("Warm.", "af_heart", "en-us")), 0, Stop())
    return engine


def kokoro() -> Synthesizer:
    from tests.doubles import engines

    return engines.kokoro()


def kokoro_torch() -> Synthesizer:
    from tests.doubles import engines

    return engines.kokoro_torch()


@pytest.fixture(
    params=[
        tone,
        pytest.param(kokoro, marks=pytest.mark.model),
        pytest.param(
            kokoro_torch, marks=[pytest.mark.model, pytest.mark.torch, pytest.mark.timeout(600)]
        ),
    ]
)
def engine(request: pytest.FixtureRequest) -> Synthesizer:
    make: Callable[[], Synthesizer] = request.param
    return make()


def utterance(text: str = "Good morning to you.", **fields: object) -> Utterance:
    values = {"voice": "af_heart", "lang": "en-us", "speed": 1.0, **fields}
    return Utterance(text, **values)  # type: ignore[arg-type]


def spoken(engine: Synthesizer, prepared: Prepared) -> list[Audio]:
    return [engine.synthesize(prepared, i, Stop()) for i in range(len(prepared.pieces))]


def test_equal_requests_have_equal_plans_and_bit_equal_audio(engine: Synthesizer) -> None:
    first, second = engine.prepare(utterance()), engine.prepare(utterance())
    assert first.plan == second.plan
    for one, other in zip(spoken(engine, first), spoken(engine, second), strict=True):
        assert np.array_equal(one.samples, other.samples)
        assert (one.words, one.fingerprint) == (other.words, other.fingerprint)


def test_each_setting_belongs_to_the_plan(engine: Synthesizer) -> None:
    changed = [
        utterance("Good morning to me."),
        utterance(speed=1.25),
        utterance(voice="af_bella"),
        utterance(voice="bf_emma", lang="en-gb"),
    ]
    plans = {engine.prepare(u).plan for u in [utterance(), *changed]}
    assert len(plans) == 5


def test_audio_is_mono_float_within_range_and_not_silent(engine: Synthesizer) -> None:
    [audio] = spoken(engine, engine.prepare(utterance()))
    assert engine.sample_rate == 24_000
    assert audio.samples.dtype == np.float32 and audio.samples.ndim == 1
    assert 0.5 < len(audio.samples) / engine.sample_rate < 4
    assert 0.02 < np.sqrt(np.square(audio.samples).mean()) and np.abs(audio.samples).max() <= 1


def test_words_are_in_order_inside_the_audio_and_the_text(engine: Synthesizer) -> None:
    [audio] = spoken(engine, engine.prepare(utterance("Don’t stop me now.")))
    assert len(audio.words) == 4
    length_s = len(audio.samples) / engine.sample_rate
    times = [time for word in audio.words for time in word[2:]]
    assert times == sorted(times) and times[0] >= 0 and times[-1] <= length_s
    assert [word[0] for word in audio.words] == [0, 6, 11, 14]


@pytest.mark.parametrize("text", ["...", "!", "😀", "— …"])
def test_without_a_letter_there_is_nothing_to_say(engine: Synthesizer, text: str) -> None:
    assert engine.prepare(utterance(text)).pieces == ()


def test_speed_scales_the_length(engine: Synthesizer) -> None:
    def seconds(speed: float) -> float:
        audio = spoken(engine, engine.prepare(utterance(speed=speed)))
        return sum(len(a.samples) for a in audio) / engine.sample_rate

    assert seconds(2.0) < 0.75 * seconds(1.0)


def test_a_stop_is_obeyed(engine: Synthesizer) -> None:
    prepared = engine.prepare(utterance("A sentence of some length, to be stopped in the middle."))
    stop = Stop()
    timer = threading.Timer(0.05, stop.set)
    timer.start()
    with pytest.raises(Stopped):
        engine.synthesize(prepared, 0, stop)
    timer.join()


def test_a_stop_set_before_is_obeyed(engine: Synthesizer) -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        engine.synthesize(engine.prepare(utterance()), 0, stop)


def test_threads_give_what_one_gives(engine: Synthesizer) -> None:
    texts = ["The first one.", "Another second one."]
    alone = [spoken(engine, engine.prepare(utterance(text))) for text in texts]
    together: dict[str, list[Audio]] = {}

    def speak(text: str) -> None:
        together[text] = spoken(engine, engine.prepare(utterance(text)))

    threads = [threading.Thread(target=speak, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for text, expected in zip(texts, alone, strict=True):
        assert all(
            np.array_equal(a.samples, b.samples)
            for a, b in zip(together[text], expected, strict=True)
        )


def test_a_long_text_is_spoken_in_several_pieces(engine: Synthesizer) -> None:
    text = "Every word of this long text is wanted, from the first one to the last one. " * 6
    prepared = engine.prepare(utterance(text))
    assert len(prepared.pieces) > 1


def test_an_engine_that_fails_says_so_without_the_text() -> None:
    engine = ToneSynthesizer(ToneOptions(fail_times=1))
    prepared = engine.prepare(utterance("secret"))
    engine.synthesize(prepared, 0, Stop())  # the warm-up
    with pytest.raises(SynthesisError, match="engine_failed") as caught:
        engine.synthesize(prepared, 0, Stop())
    assert caught.value.retryable and "secret" not in str(caught.value)
