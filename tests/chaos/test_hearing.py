"""The judge is judged: each way to break the promise is seen, and named rightly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from firstword import messages as m
from firstword.listener import Event
from services.inference.audio import to_pcm
from services.inference.synthesizer import Stop, Utterance
from tests.chaos.hearing import Hearing, Sentence, Tally, Turn
from tests.doubles.stamp_synthesizer import StampOptions, StampSynthesizer
from tests.doubles.stamps import Place, Stamps, read, stamp

SESSION = 7
LENGTH = 400
TURN = "turn-1"
PLAN = [Turn((Sentence(1, LENGTH), Sentence(2, LENGTH)), TURN)]


def started(n: int, sentence: int, session: int = SESSION) -> m.SegmentStarted:
    text = f"Session {session} says sentence {sentence} now."
    return m.SegmentStarted(
        turn=TURN, n=n, text=text, start=0, end=len(text), committed_at=f"{900 + n}-0"
    )


def audio(n: int, sentence: int, first: int, last: int, session: int = SESSION) -> m.AudioChunk:
    return chunk(n, first, stamp(session, sentence, first, last))


def chunk(n: int, offset: int, samples: Stamps) -> m.AudioChunk:
    return m.AudioChunk(turn=TURN, n=n, offset=offset, data=samples.astype("<i2").tobytes())


def segment(n: int, sentence: int, *parts: m.Audio) -> list[m.Audio]:
    chunks = parts or (audio(n, sentence, 0, 100), audio(n, sentence, 100, LENGTH))
    return [started(n, sentence), *chunks, m.SegmentDone(turn=TURN, n=n, samples=LENGTH)]


def done() -> m.TurnDone:
    return m.TurnDone(turn=TURN, segments=2, samples=2 * LENGTH, reason="complete")


def cancelled(segments: int, n: int, samples: int) -> m.TurnCancelled:
    sent = {"segments": segments, "n": n, "samples": samples}
    return m.TurnCancelled(turn=TURN, sent=sent, already_done=False)


def hear(*events: m.Audio, plan: list[Turn] = PLAN) -> Tally:
    hearing = Hearing(SESSION)
    for number, message in enumerate(events):
        hearing.feed(Event(f"{1000 + number}-0", message))
    return hearing.tally(plan)


def wrong(tally: Tally) -> dict[str, int]:
    names = ("lost", "repeated", "reordered", "crossed", "endless", "odd")
    return {name: count for name in names if (count := getattr(tally, name))}


def test_a_turn_that_came_as_it_was_meant() -> None:
    tally = hear(*segment(1, 1), *segment(2, 2), done())
    assert wrong(tally) == {}
    assert not tally.wrong
    assert tally.expected == tally.received == 2 * LENGTH
    assert tally.problems == []


def test_a_segment_that_began_anew_counts_once() -> None:
    parts = (
        audio(1, 1, 0, 300),
        m.SegmentRestarted(turn=TURN, n=1),
        audio(1, 1, 0, LENGTH),
    )
    tally = hear(*segment(1, 1, *parts), *segment(2, 2), done())
    assert wrong(tally) == {}
    assert tally.restarts == 1


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("lost", (audio(1, 1, 0, 100), chunk(1, 100, stamp(SESSION, 1, 200, LENGTH)))),
        ("repeated", (audio(1, 1, 0, 200), chunk(1, 200, stamp(SESSION, 1, 100, LENGTH)))),
        (
            "reordered",
            (
                chunk(1, 0, stamp(SESSION, 1, 200, LENGTH)),
                chunk(1, 200, stamp(SESSION, 1, 0, 200)),
            ),
        ),
        ("crossed", (audio(1, 1, 0, 200), audio(1, 1, 200, LENGTH, session=8))),
        ("reordered", (audio(1, 1, 0, 200), chunk(1, 200, stamp(SESSION, 2, 200, LENGTH)))),
        ("reordered", (audio(1, 1, 200, LENGTH), audio(1, 1, 0, 200))),
    ],
)
def test_samples_out_of_place_are_seen(name: str, parts: tuple[m.Audio, ...]) -> None:
    tally = hear(*segment(1, 1, *parts), *segment(2, 2), done())
    assert wrong(tally).get(name), tally
    assert tally.problems


def test_a_server_that_lost_everything_may_count_anew() -> None:
    lost = m.ErrorEvent(code="state_lost", message="publish again", retryable=True)
    events = [*segment(1, 1), lost, *segment(1, 2), done()]
    assert wrong(hear(*events)) == {}
    assert hear(*events).errors == 1


@pytest.mark.parametrize("missing", [1, 2])
def test_one_sample_that_is_lost_is_seen(missing: int) -> None:
    samples = np.delete(stamp(SESSION, 1, 0, LENGTH), slice(200, 200 + missing))
    assert hear(*segment(1, 1, chunk(1, 0, samples)), *segment(2, 2), done()).lost


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([*segment(1, 1), done()], {"lost": LENGTH}),
        ([*segment(1, 1), *segment(2, 2), *segment(3, 2), done()], {"repeated": LENGTH}),
        ([*segment(1, 2), *segment(2, 1), done()], {"reordered": 2 * LENGTH}),
        ([*segment(1, 1), *segment(2, 2)], {"endless": 1}),
        ([*segment(1, 1), *segment(2, 2)[:-1], done()], {"odd": 1}),
        ([*segment(1, 1), done(), *segment(2, 2)], {"odd": 4}),
        ([*segment(1, 1), *segment(2, 2), m.Gap(first="1-0"), done()], {"odd": 1}),
        ([*segment(1, 1), *segment(2, 2), cancelled(2, 2, LENGTH)], {"odd": 1}),
        ([*segment(2, 1), *segment(1, 2), done()], {"odd": 1}),
        ([audio(1, 1, 0, 100), *segment(1, 1), *segment(2, 2), done()], {"odd": 1}),
        ([*segment(1, 1), started(1, 1), *segment(2, 2), done()], {"odd": 1}),
    ],
)
def test_events_out_of_place_are_seen(events: list[m.Audio], expected: dict[str, int]) -> None:
    assert wrong(hear(*events)) == expected


def test_another_sessions_sentence_is_seen() -> None:
    stranger: list[m.Audio] = [
        started(3, 1, session=8),
        audio(3, 1, 0, LENGTH, session=8),
        m.SegmentDone(turn=TURN, n=3, samples=LENGTH),
    ]
    assert hear(*segment(1, 1), *segment(2, 2), *stranger, done()).crossed == LENGTH


def test_a_turn_that_another_one_interrupts_is_seen() -> None:
    def other(message: Any) -> Any:
        return replace(message, turn="turn-3")

    between: list[m.Audio] = [other(message) for message in segment(2, 3)]
    events = [*segment(1, 1), *between, *segment(3, 2), done()]
    end = m.TurnDone(turn="turn-3", segments=1, samples=LENGTH, reason="complete")
    plan = [*PLAN, Turn((Sentence(3, LENGTH),), "turn-3")]
    assert wrong(hear(*events, end, plan=plan)) == {"reordered": LENGTH}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [((1, 2, 100), {}), ((1, 2, 200), {"odd": 1}), ((0, 2, 100), {"odd": 1})],
)
def test_a_cancelled_turn_is_held_against_its_receipt(
    sent: tuple[int, int, int], expected: dict[str, int]
) -> None:
    plan = [Turn(PLAN[0].sentences, TURN, cancels=1)]
    events = [*segment(1, 1), started(2, 2), audio(2, 2, 0, 100), cancelled(*sent)]
    assert wrong(hear(*events, plan=plan)) == expected
    assert wrong(hear(*events, audio(2, 2, 100, LENGTH), plan=plan)), "it was to be silent"


def test_a_turn_without_a_name_is_known_by_its_first_sentence() -> None:
    plan = [Turn(PLAN[0].sentences)]
    assert wrong(hear(*segment(1, 1), *segment(2, 2), done(), plan=plan)) == {}
    assert wrong(hear(plan=plan)) == {"endless": 1, "lost": 2 * LENGTH}


def test_silence_is_measured_from_the_blow_to_the_next_sound() -> None:
    hearing = Hearing(SESSION)
    first, begun, after = segment(1, 1)[:3]
    for at_ms, message in ((1000, first), (1001, begun), (3000, after)):
        hearing.feed(Event(f"{at_ms}-0", message))
    assert hearing.silence_of_gateway(1500) == 1500
    assert hearing.silence_of_gateway(3000) is None
    turn = Turn(PLAN[0].sentences, TURN, opened_ms=500)
    assert hearing.silence_of_segmenter(600, [turn]) == 301
    assert hearing.silence_of_segmenter(400, [turn]) is None, "nothing was being written"
    assert hearing.silence_of_segmenter(950, [turn]) is None, "no segment came later"


def test_stamps_come_through_the_service_as_they_are() -> None:
    """Else every other test of them would tell of losses that are none."""
    engine = StampSynthesizer(StampOptions())
    text = "Session 8191 says sentence 8191 of the long way home."
    prepared = engine.prepare(Utterance(text, "af_heart", "en-us"))
    pieces = [engine.synthesize(prepared, i, Stop()) for i in range(len(prepared.pieces))]
    heard = b"".join(to_pcm(piece.samples) for piece in pieces)
    whole = stamp(8191, 8191, 0, engine.samples(len(text)))
    assert heard == whole.astype("<i2").tobytes()


def test_any_four_samples_say_where_they_belong() -> None:
    assert read(stamp(3, 5, 1000, 1010)) == [Place(3, 5, 250), Place(3, 5, 251)]
    assert read(stamp(3, 5, 40_001, 40_008)) == [Place(3, 5, 10_001)]
    assert read(np.zeros(2, np.int16)) == [], "less than four"
