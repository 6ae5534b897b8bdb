"""The benchmarks' arithmetic: what they print follows from what they measured."""

from __future__ import annotations

import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import figures, machine
from benchmarks.answers import ANSWERS, answer
from benchmarks.figures import FirstSentence
from services.segmenter.core import Segment, Segmenter
from services.segmenter.settings import SegmenterSettings

OPTIONS = SegmenterSettings().defaults().options
TIMES = st.lists(st.floats(0, 1e6), min_size=1, max_size=300)


def test_quantiles_are_by_nearest_rank() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [figures.quantile(values, share) for share in (0, 0.5, 0.99, 1)] == [1, 50, 99, 100]
    assert figures.quantile([7.0], 0.99) == 7.0


@given(TIMES, st.floats(0, 1))
def test_a_quantile_was_measured_and_enough_do_not_exceed_it(
    values: list[float], share: float
) -> None:
    found = figures.quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)


def test_no_values_have_no_quantile() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        figures.quantile([], 0.5)


def test_the_hops_add_up_to_the_whole() -> None:
    sentences = [
        FirstSentence(mark=100, certain=100, committed=102, audio=108, ttfb=4.5, heard=9.0),
        FirstSentence(mark=200, certain=200, committed=201, audio=205, ttfb=2.5, heard=6.0),
    ]
    whole, segmenter, gateway, container, heard = figures.hops(sentences, 2.0, "p50 <= 4")
    assert (whole.mean, whole.p50, whole.p99, whole.goal) == (4.5, 3.0, 6.0, "p50 <= 4")
    assert (segmenter.mean, gateway.mean, container.mean) == (1.5, 1.5, 1.5)
    assert (heard.mean, heard.goal) == (5.5, "")


@given(
    st.lists(
        st.builds(
            FirstSentence,
            *[st.integers(0, 2**40)] * 4,
            ttfb=st.floats(0, 1e4),
            heard=st.floats(0, 1e4),
        ),
        min_size=1,
    ),
    st.floats(0, 1e3),
)
def test_hops_always_add_up(sentences: list[FirstSentence], synthesis_ms: float) -> None:
    whole, *parts, _heard = figures.hops(sentences, synthesis_ms, "")
    assert math.isclose(whole.mean, math.fsum(p.mean for p in parts), abs_tol=1e-3)


def test_waiting_for_the_next_token_is_told_apart() -> None:
    sentence = FirstSentence(mark=100, certain=120, committed=121, audio=123, ttfb=3, heard=4)
    assert not sentence.together
    assert [row.mean for row in figures.head_start([sentence])] == [23, 20, 3]


def test_a_unit_bears_what_the_load_added() -> None:
    cost = figures.cost(used_s=3.0, seconds=10, idle=0.1, units=1000)
    assert (cost.busy, cost.idle, cost.unit_us) == (0.3, 0.1, 2000)
    assert figures.cost(used_s=0.5, seconds=10, idle=0.1, units=10).unit_us == 0
    assert math.isnan(figures.cost(used_s=1, seconds=10, idle=0, units=0).unit_us)


def test_growth_is_per_session() -> None:
    before, after = {"server": 1000, "gateway": 500}, {"server": 3000, "gateway": 500, "new": 1}
    assert figures.growth(before, after, 200) == {"server": 10, "gateway": 0}


def test_tables_line_up() -> None:
    assert figures.table(("what", "ms"), [("a long name", "1.0"), ("b", "100.0")]) == (
        "what            ms\n-----------  -----\na long name    1.0\nb            100.0"
    )


@pytest.mark.skipif(not machine.counts_processes(), reason="/proc is Linux's")
def test_the_kernel_tells_what_a_process_uses() -> None:
    used = machine.usage(os.getpid())
    times = os.times()
    assert 0 < used.cpu_s <= times.user + times.system + 0.02, "read before, in hundredths"
    assert used.cpu_s <= machine.busy_s()
    assert used.resident_bytes > 1 << 20


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("opening", [True, False])
@pytest.mark.parametrize("text", ANSWERS)
def test_the_first_sentence_is_certain_with_the_piece_that_is_said_to_make_it_so(
    text: str, opening: bool, together: bool
) -> None:
    made = answer(text, OPTIONS, together=together, opening=opening)
    assert "".join(made.pieces) == text[: len("".join(made.pieces))]
    assert opening or "".join(made.pieces) == text

    segmenter = Segmenter(OPTIONS)
    events = [[e for e in segmenter.push(p, 0) if isinstance(e, Segment)] for p in made.pieces]
    assert not any(events[: made.certain])
    (first,) = events[made.certain]
    assert "".join(made.pieces[: made.mark]).strip() != first.text
    assert "".join(made.pieces[: made.mark + 1]).startswith(first.text)
    assert (made.mark == made.certain) is together


def test_a_text_of_one_sentence_is_no_answer() -> None:
    with pytest.raises(ValueError, match="no sentence that is certain"):
        answer("Only one.", OPTIONS, together=True, opening=False)
