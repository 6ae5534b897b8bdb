"""Streaming beside batch: what the time to first audio is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.comparison import LEGS, compare, legs
from firstword.waterfall import Row, Waterfall


def fall(
    first_audio_ms: float,
    *,
    mark: float | None = 300.0,
    committed: float | None = 320.0,
    ttfb: float = 400.0,
    text: float = 1_000.0,
) -> Waterfall:
    """A turn of which only the first segment matters."""
    row = Row(1, "Hi.", 0.0, mark, 3, committed, first_audio_ms - ttfb, first_audio_ms)
    return Waterfall(turn="t", tokens=9, text_ms=text, rows=[row])


def test_streaming_has_five_legs_of_which_one_is_empty() -> None:
    assert legs(fall(800.0), whole=False) == {
        "first_sentence": 300.0,
        "rest": 0.0,
        "segmentation": 20.0,
        "waiting": 80.0,
        "synthesis": 400.0,
    }


def test_batch_waits_for_the_rest_of_the_text() -> None:
    assert legs(fall(1_500.0, committed=1_010.0), whole=True) == {
        "first_sentence": 300.0,
        "rest": 700.0,
        "segmentation": 10.0,
        "waiting": 90.0,
        "synthesis": 400.0,
    }


def test_what_was_made_before_the_segment_was_certain_was_not_waited_for() -> None:
    found = legs(fall(330.0, ttfb=25.0), whole=False)
    assert found is not None
    assert (found["waiting"], found["synthesis"]) == (0.0, 10.0)


def test_silence_has_no_legs() -> None:
    assert legs(Waterfall(turn="t", tokens=1, text_ms=0.0), whole=False) is None


@given(
    st.floats(0, 1e5),
    st.none() | st.floats(0, 1e5),
    st.none() | st.floats(0, 1e5),
    st.floats(0, 1e5),
    st.floats(0, 1e5),
    st.booleans(),
)
def test_legs_add_up_to_first_audio(
    first: float, mark: float | None, committed: float | None, ttfb: float, text: float, whole: bool
) -> None:
    found = legs(fall(first, mark=mark, committed=committed, ttfb=ttfb, text=text), whole=whole)
    assert found is not None
    assert list(found) == list(LEGS)
    assert min(found.values()) >= -1e-6
    assert sum(found.values()) == pytest.approx(first, abs=1e-6)


def test_several_trials_have_a_mean_and_quantiles() -> None:
    found = compare(
        [("batch", fall(at, committed=1_000.0)) for at in (2_000.0, 2_100.0, 2_800.0)]
        + [("stream", fall(at)) for at in (900.0, 1_000.0, 1_100.0)]
    )
    assert found.ratio == found.file_ratio == pytest.approx(2.3)
    data = found.as_data()
    assert data["batch"]["n"] == 3
    assert data["batch"]["ttfa"] == {"mean": 2300.0, "p50": 2100.0, "p95": 2800.0}
    assert data["stream"]["segmentation"] == {"mean": 20.0, "p50": 20.0, "p95": 20.0}
    assert found.as_text() == (
        "ms                           batch mean   p50   p95  stream mean   p50   p95\n"
        "---------------------------  ----------  ----  ----  -----------  ----  ----\n"
        "first segment is written            300   300   300          300   300   300\n"
        "rest of the text is written         700   700   700            0     0     0\n"
        "segmentation                          0     0     0           20    20    20\n"
        "waiting and publishing              900   700  1400          280   280   380\n"
        "synthesis                           400   400   400          400   400   400\n"
        "first audio                        2300  2100  2800         1000  1000  1100\n"
        "last audio                         2300  2100  2800         1033  1000  1100"
    )


def test_one_mode_has_no_ratio() -> None:
    assert compare([("stream", fall(900.0))]).ratio is None
    silent = compare([("stream", fall(900.0)), ("batch", Waterfall("t", 1, 0.0))])
    assert silent.ratio is None
    assert compare([("batch", fall(900.0)), ("stream", fall(0.0))]).file_ratio is None
    assert list(silent.as_data()) == ["stream"]
    assert silent.as_text().splitlines()[0].split() == ["ms", "stream"]
