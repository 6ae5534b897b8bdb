"""The speaker and its workers, around the tone double."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest

from firstword.session_protocol import Synthesize
from services.inference.audio import to_pcm
from services.inference.settings import InferenceSettings
from services.inference.speaker import Finished, Speaker, Started
from services.inference.synthesizer import (
    Audio,
    Prepared,
    Stop,
    Stopped,
    SynthesisError,
    Utterance,
)
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer, expected_samples
from tests.support import eventually

Make: TypeAlias = Callable[..., Awaitable[tuple[Speaker, ToneSynthesizer]]]

LONG = "This is a text that is longer than one piece of the double, so it comes in several parts."


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Starts a speaker: `make(ToneOptions(…), hang_s=…)`."""
    started: list[tuple[Speaker, ToneSynthesizer]] = []

    async def build(
        options: ToneOptions | None = None, **settings: Any
    ) -> tuple[Speaker, ToneSynthesizer]:
        engine = ToneSynthesizer(options)
        speaker = Speaker(lambda: engine, replace(InferenceSettings(), **settings))
        started.append((speaker, engine))
        await speaker.start()
        return speaker, engine

    yield build
    for speaker, engine in started:
        engine.release()
        speaker.close()
        await rest(speaker)


async def rest(speaker: Speaker) -> None:
    await eventually(lambda: not speaker.busy, "the workers are idle")


def ask(text: str = "Hello.", **fields: Any) -> Synthesize:
    return Synthesize(id="1", text=text, **fields)


async def hear(
    speaker: Speaker, request: Synthesize, stop: Stop | None = None
) -> tuple[str, bytes, Finished]:
    plan, pcm, finished = "", b"", None
    async with aclosing(speaker.speak(request, stop or Stop())) as outputs:
        async for output in outputs:
            match output:
                case Started():
                    plan = output.plan
                case bytes():
                    assert plan
                    pcm += output
                case Finished():
                    finished = output
    assert finished is not None
    return plan, pcm, finished


class Polyglot(ToneSynthesizer):
    """Knows what it was asked to read; one of its languages cannot be."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def prepare(self, utterance: Utterance) -> Prepared:
        self.read.append(utterance.lang)
        if utterance.lang == "ja":
            raise SynthesisError("voice_damaged", "as told")
        return super().prepare(utterance)


async def test_a164_every_language_that_is_here_was_read_once_before_it_is_well() -> None:
    engine = Polyglot()
    speaker = Speaker(lambda: engine, InferenceSettings())
    await speaker.start()
    assert speaker.unwell() is None
    assert engine.read == ["en-us", "en-gb", "ja", "en-us"], "the last one is spoken"
    speaker.close()


async def test_a_text_of_several_pieces_arrives_whole(make: Make) -> None:
    speaker, _ = await make()
    plan, pcm, finished = await hear(speaker, ask(LONG))
    assert pcm == to_pcm(expected_samples(LONG))
    assert finished.duration_s == len(pcm) / 48_000
    assert [LONG[w[0] : w[1]] for w in finished.words][:3] == ["This", "is", "a"]
    starts = [w[2] for w in finished.words]
    assert starts == sorted(starts) and finished.words[-1][3] <= finished.duration_s
    assert plan == (await hear(speaker, ask(LONG)))[0]


@pytest.mark.parametrize(
    "other",
    [
        ask("Hello!"),
        ask(voice="af_bella"),
        ask(speed=1.5),
        ask(sample_rate=16_000),
        ask(voice="bf_emma"),
    ],
)
async def test_another_request_has_another_plan(make: Make, other: Synthesize) -> None:
    speaker, _ = await make()
    assert (await hear(speaker, ask()))[0] != (await hear(speaker, other))[0]


async def test_samples_are_skipped_only_under_the_same_plan(make: Make) -> None:
    speaker, _ = await make()
    plan, whole, first = await hear(speaker, ask(LONG))
    again = ask(LONG, skip_samples=12_345, plan=plan)
    _, rest, finished = await hear(speaker, again)
    assert rest == whole[2 * 12_345 :]
    assert finished.duration_s == first.duration_s
    _, other, _ = await hear(speaker, replace(again, plan="another"))
    assert other == whole
    _, nothing, _ = await hear(speaker, replace(again, skip_samples=10**9))
    assert nothing == b""


async def test_what_the_engine_finds_out_on_the_way_belongs_to_the_plan(make: Make) -> None:
    """Predicted durations: where they differ, samples that were heard are not these."""
    speaker, engine = await make()
    plan, whole, _ = await hear(speaker, ask(LONG))
    synthesize = engine.synthesize

    def otherwise(prepared: Prepared, index: int, stop: Stop) -> Audio:
        return replace(synthesize(prepared, index, stop), fingerprint=b"other durations")

    engine.synthesize = otherwise  # type: ignore[method-assign]
    other, pcm, _ = await hear(speaker, ask(LONG, skip_samples=5, plan=plan))
    assert other != plan and pcm == whole


async def test_nothing_to_say_is_no_audio_and_no_error(make: Make) -> None:
    speaker, _ = await make()
    plan, pcm, finished = await hear(speaker, ask("… 😀 !"))
    assert plan and pcm == b"" and finished.duration_s == 0


async def test_requests_are_refused_with_the_reason(make: Make) -> None:
    speaker, _ = await make()
    with pytest.raises(SynthesisError, match="unknown_voice"):
        await hear(speaker, ask(voice="nobody"))


async def test_before_the_engine_is_loaded(make: Make) -> None:
    speaker = Speaker(ToneSynthesizer, InferenceSettings())
    assert speaker.unwell() == "the engine is loading"
    assert speaker.name == ""
    with pytest.raises(SynthesisError, match="loading") as caught:
        await hear(speaker, ask())
    assert caught.value.retryable
    speaker.close()


async def test_a_failing_engine_is_told_and_the_next_request_speaks(make: Make) -> None:
    speaker, _ = await make(ToneOptions(fail_times=1))
    with pytest.raises(SynthesisError, match="engine_failed"):
        await hear(speaker, ask())
    assert (await hear(speaker, ask()))[1] == to_pcm(expected_samples("Hello."))
    assert speaker.unwell() is None


async def test_a_stop_ends_a_synthesis_that_runs(make: Make) -> None:
    speaker, engine = await make(ToneOptions(latency_s=60))
    stop = Stop()
    hearing = asyncio.create_task(hear(speaker, ask(), stop))
    await eventually(engine.running.is_set, "the engine works")
    stop.set()
    with pytest.raises(Stopped):
        await hearing
    await rest(speaker)


async def test_a_listener_that_goes_away_stops_the_synthesis(make: Make) -> None:
    speaker, engine = await make(ToneOptions(latency_s=60))
    hearing = asyncio.create_task(hear(speaker, ask()))
    await eventually(engine.running.is_set, "the engine works")
    hearing.cancel()
    await asyncio.wait({hearing})
    await rest(speaker)


async def test_a_stop_ends_a_request_whose_text_waits_to_be_read(make: Make) -> None:
    speaker, engine = await make()
    prepare, go, begun = engine.prepare, threading.Event(), list[str]()

    def held(utterance: Utterance) -> Prepared:
        begun.append(utterance.text[0])
        go.wait()
        return prepare(utterance)

    engine.prepare = held  # type: ignore[method-assign]
    stops = [Stop(), Stop(), Stop()]
    asked = [
        asyncio.create_task(hear(speaker, ask(f"{name}. " * 200), stop))
        for name, stop in zip("abc", stops, strict=True)
    ]
    await eventually(lambda: begun == ["a"], "one is read, the others wait for that")
    for task, stop in zip(asked[:2], stops, strict=False):
        stop.set()
        with pytest.raises(Stopped):
            await task
    go.set()
    await asked[2]
    assert begun == ["a", "c"]


async def test_a_stop_set_early_starts_nothing(make: Make) -> None:
    speaker, engine = await make()
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        await hear(speaker, ask(), stop)
    assert not engine.running.is_set()


async def test_a_hang_is_reported_and_turns_health_red(make: Make) -> None:
    speaker, engine = await make(ToneOptions(hang=True), hang_s=0.3)
    waiting = asyncio.create_task(hear(speaker, ask("Second.")))
    with pytest.raises(SynthesisError, match="synthesis_stuck") as caught:
        await hear(speaker, ask())
    assert caught.value.retryable
    with pytest.raises(SynthesisError, match="synthesis_stuck"):
        await waiting
    assert "hangs" in (speaker.unwell() or "")
    engine.release()
    await eventually(lambda: speaker.unwell() is None, "the hang is over")


async def test_a_pronunciation_that_hangs_is_one_too(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaker, engine = await make(hang_s=0.3)
    go = threading.Event()

    def hang(_utterance: Utterance) -> Prepared:
        go.wait()
        return Prepared("", ())

    monkeypatch.setattr(engine, "prepare", hang)
    with pytest.raises(SynthesisError, match="synthesis_stuck"):
        await hear(speaker, ask("Long. " * 100))
    # Its thread began a moment after the request, which gave it up.
    await eventually(lambda: "hangs" in (speaker.unwell() or ""), "it counts as a hang")
    go.set()
    await eventually(lambda: speaker.unwell() is None, "the hang is over")


async def test_more_requests_than_may_wait_are_refused(make: Make) -> None:
    speaker, engine = await make(ToneOptions(latency_s=60), max_waiting=1)
    stop = Stop()
    hearing = asyncio.create_task(hear(speaker, ask(), stop))
    await eventually(engine.running.is_set, "the engine works")
    with pytest.raises(SynthesisError, match="busy") as caught:
        await hear(speaker, ask())
    assert caught.value.retryable and caught.value.retry_after_ms == 50
    stop.set()
    await asyncio.wait({hearing})


async def test_a_first_request_overtakes_those_whose_listeners_have_audio(make: Make) -> None:
    speaker, engine = await make(ToneOptions(hang=True))
    order: list[str] = []

    async def timed(name: str, **fields: Any) -> None:
        await hear(speaker, ask(f"This is {name}.", **fields))
        order.append(name)

    running = asyncio.create_task(timed("running"))
    await eventually(engine.running.is_set, "the engine works")
    waiting = {"rich": 9_000, "poor": 4_000}
    tasks = [asyncio.create_task(timed(n, deadline_ms=ms)) for n, ms in waiting.items()]
    await eventually(lambda: speaker._workers._scheduler.waiting == 2, "both wait")
    tasks.append(asyncio.create_task(timed("first", deadline_ms=0, first=True)))
    await eventually(lambda: speaker._workers._scheduler.waiting == 3, "all wait")
    engine.release()
    await asyncio.gather(running, *tasks)
    assert order == ["running", "first", "poor", "rich"]


async def test_a_listener_has_what_was_made_for_it(make: Make) -> None:
    """Sixteen seconds after the first piece: so a listener with eight goes before the second."""
    speaker, engine = await make(ToneOptions(ms_per_char=200), max_wait_s=3600)
    gate, order = threading.Semaphore(0), list[str]()
    synthesize = engine.synthesize

    def noted(prepared: Prepared, index: int, stop: Stop) -> Audio:
        order.append(prepared.pieces[index].text)
        engine.running.set()
        gate.acquire()
        return synthesize(prepared, index, stop)

    engine.synthesize = noted  # type: ignore[method-assign]
    asked = [asyncio.create_task(hear(speaker, ask(LONG, deadline_ms=0)))]
    await eventually(engine.running.is_set, "its first piece is made")
    for name, ahead_ms in {"Next.": 1_000, "Eight seconds.": 8_000}.items():
        asked.append(asyncio.create_task(hear(speaker, ask(name, deadline_ms=ahead_ms))))
    await eventually(lambda: speaker._workers._scheduler.waiting == 2, "both wait")
    gate.release()
    await eventually(lambda: len(order) == 2, "the next one is made")
    await eventually(lambda: speaker._workers._scheduler.waiting == 2, "the second piece waits")
    gate.release(3)
    await asyncio.gather(*asked)
    assert order == [LONG[:80], "Next.", "Eight seconds.", LONG[80:]]


async def test_where_nobody_waits_a_request_is_one_hand_over(make: Make) -> None:
    speaker, engine = await make()
    threads: list[str] = []
    prepare = engine.prepare

    def noted(utterance: Utterance) -> Prepared:
        threads.append(threading.current_thread().name.split("-")[0].split("_")[0])
        return prepare(utterance)

    engine.prepare = noted  # type: ignore[method-assign]
    await hear(speaker, ask("Short."))
    await hear(speaker, ask("Long. " * 100))
    assert threads == ["synthesis", "prepare"]


async def test_the_first_of_a_turn_may_begin_with_a_part(make: Make) -> None:
    speaker, engine = await make(first_chunk_words=7)
    asked: list[int] = []
    prepare = engine.prepare

    def noted(utterance: Utterance) -> Prepared:
        asked.append(utterance.first_words)
        return prepare(utterance)

    engine.prepare = noted  # type: ignore[method-assign]
    for first, ahead_ms in ((True, 0), (False, 0), (False, 5_000)):
        await hear(speaker, ask(first=first, deadline_ms=ahead_ms))
    assert asked == [7, 0, 0], "`deadline_ms` does not decide how it is cut"


async def test_who_would_wait_too_long_is_told_when_to_come_back(make: Make) -> None:
    speaker, engine = await make(ToneOptions(latency_s=60), max_wait_s=0.0)
    stop = Stop()
    hearing = asyncio.create_task(hear(speaker, ask(), stop))
    await eventually(engine.running.is_set, "the engine works")
    speaker._workers._scheduler._pace._per_size = 100.0
    with pytest.raises(SynthesisError, match="busy") as caught:
        await hear(speaker, ask(first=True))
    assert caught.value.retry_after_ms is not None and 90_000 < caught.value.retry_after_ms
    stop.set()
    await asyncio.wait({hearing})


async def test_those_of_a_burst_count_while_they_are_prepared(make: Make) -> None:
    speaker, engine = await make(ToneOptions(latency_s=60), max_wait_s=2.5)
    stop = Stop()
    hearing = asyncio.create_task(hear(speaker, ask(), stop))
    await eventually(engine.running.is_set, "the engine works")
    speaker._workers._scheduler._pace._per_size = 1.0 / speaker._typical_size
    burst = [asyncio.create_task(hear(speaker, ask(first=True), stop)) for _ in range(10)]
    await eventually(lambda: any(task.done() for task in burst), "some are refused")
    refused = [task.exception() for task in burst if task.done()]
    assert all(isinstance(error, SynthesisError) and error.code == "busy" for error in refused)
    assert len(refused) in (7, 8), "a second each: two may wait, three when the one is over"
    stop.set()
    await asyncio.wait({hearing, *burst})


async def test_those_of_a_burst_count_as_what_they_turn_out_to_be(make: Make) -> None:
    """The last request before them was short, so they are taken for short, too, until they are
    prepared."""
    speaker, engine = await make(ToneOptions(latency_s=60), max_wait_s=2.5)
    all_are_there = threading.Event()
    hearing = asyncio.create_task(hear(speaker, ask()))
    await eventually(engine.running.is_set, "the engine works")
    speaker._workers._scheduler._pace._per_size = 0.01
    prepare = engine.prepare

    def prepared(utterance: Utterance) -> Prepared:
        all_are_there.wait()
        return replace(prepare(utterance), sizes=(100,))

    engine.prepare = prepared  # type: ignore[method-assign]
    burst = [asyncio.create_task(hear(speaker, ask(first=True))) for _ in range(10)]
    await eventually(lambda: speaker._active == 11, "all were let in")
    all_are_there.set()
    await eventually(lambda: sum(task.done() for task in burst) == 7, "who would wait is refused")
    refused = [task.exception() for task in burst if task.done()]
    assert all(isinstance(error, SynthesisError) and error.code == "busy" for error in refused)
    assert speaker._workers._scheduler.waiting == 3, "a second each"
    for task in (hearing, *burst):
        task.cancel()
    await asyncio.wait({hearing, *burst})


async def test_a_short_text_is_not_taken_for_as_much_work_as_the_one_before(make: Make) -> None:
    speaker, engine = await make(ToneOptions(chars_per_piece=200))
    prepare, synthesize, go = engine.prepare, engine.synthesize, threading.Event()

    def sized(utterance: Utterance) -> Prepared:
        return replace(prepare(utterance), sizes=(len(utterance.text),))

    def held(prepared: Prepared, index: int, stop: Stop) -> Audio:
        engine.running.set()
        go.wait()
        return synthesize(prepared, index, stop)

    engine.prepare = sized  # type: ignore[method-assign]
    await hear(speaker, ask("word " * 20))
    engine.running.clear()
    engine.synthesize = held  # type: ignore[method-assign]
    speaker._workers._scheduler._pace._per_size = 0.5
    short = asyncio.create_task(hear(speaker, ask("A.")))
    await eventually(engine.running.is_set, "the short one is made")
    other = asyncio.create_task(hear(speaker, ask("Not refused.")))
    await eventually(lambda: speaker._workers._scheduler.waiting == 1, "the other one waits")
    go.set()
    await asyncio.gather(short, other)
    assert speaker._typical_size == 100, "short ones do not tell how long the others are"


async def test_when_all_hang_nobody_else_has_to_wait_for_it(make: Make) -> None:
    speaker, _ = await make(ToneOptions(hang=True), hang_s=0.3)
    with pytest.raises(SynthesisError, match="synthesis_stuck"):
        await hear(speaker, ask())
    with pytest.raises(SynthesisError, match="synthesis_stuck"):
        await hear(speaker, ask("Another."))


async def test_a_short_request_does_not_wait_for_all_of_a_long_one(make: Make) -> None:
    speaker, engine = await make(ToneOptions(chars_per_piece=10, latency_s=0.01))
    order: list[str] = []

    async def timed(name: str, text: str) -> None:
        await hear(speaker, ask(text))
        order.append(name)

    long = asyncio.create_task(timed("long", "word " * 100))
    await eventually(engine.running.is_set, "the engine works on the long one")
    await timed("short", "Short one.")
    await long
    assert order == ["short", "long"]


async def test_many_at_once_never_mix(make: Make) -> None:
    options = ToneOptions(chars_per_piece=7, ms_per_char=10)
    speaker, _ = await make(options, workers=3, max_wait_s=60.0)
    texts = [f"Speaker number {n} says its own {n * 17} words." for n in range(20)]
    heard = await asyncio.gather(*(hear(speaker, ask(text)) for text in texts))
    for text, (_, pcm, _) in zip(texts, heard, strict=True):
        assert pcm == to_pcm(expected_samples(text, options=options))


async def test_resampled_audio_has_the_right_length(make: Make) -> None:
    speaker, _ = await make()
    _, pcm, finished = await hear(speaker, ask(LONG, sample_rate=16_000))
    assert len(pcm) / 2 == round(len(expected_samples(LONG)) * 2 / 3)
    assert np.frombuffer(pcm, "<i2").any() and finished.duration_s == len(pcm) / 32_000


def test_a_stop_runs_its_callbacks_once() -> None:
    stop, calls = Stop(), list[int]()
    stop.on_set(lambda: calls.append(1))
    assert not stop.is_set
    stop.set()
    stop.set()
    stop.on_set(lambda: calls.append(2))
    assert stop.is_set and calls == [1, 2]


async def test_pronunciations_that_cannot_be_used_are_refused_with_the_reason(make: Make) -> None:
    speaker, _ = await make()
    with pytest.raises(SynthesisError, match="bad_lexicon"):
        await hear(speaker, ask(lexicon={"...": "dots"}))
    _, pcm, _ = await hear(speaker, ask(lexicon={"SQL": "sequel"}))
    assert pcm
