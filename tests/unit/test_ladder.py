"""The ladder: what the scheduler is worth, in virtual time, the same on every machine."""

from __future__ import annotations

import pytest

from benchmarks import ladder
from benchmarks.ladder import FIFO, OURS, PACED_FIFO, PACED_OURS, ROWS, SEGMENT_S, Row

TURNS = 1500


@pytest.mark.parametrize("seed", [7, 8])
@pytest.mark.parametrize("load", ladder.LOADS)
@pytest.mark.parametrize(("fifo", "ours"), [(FIFO, OURS), (PACED_FIFO, PACED_OURS)])
def test_no_session_underruns_that_first_come_first_served_did_not(
    load: float, fifo: Row, ours: Row, seed: int
) -> None:
    times = ladder.arrivals(load, TURNS, seed)
    before, after = ladder.simulate(fifo, times), ladder.simulate(ours, times)
    assert ladder.silent(after) <= ladder.silent(before)
    assert ladder.p95(after) < ladder.p95(before)


def test_first_audio_at_70_percent_is_a_quarter_of_what_it_was() -> None:
    times = ladder.arrivals(0.7, ladder.TURNS, ladder.SEED)
    ours = ladder.p95(ladder.simulate(OURS, times))
    assert ours <= ladder.GOAL * ladder.p95(ladder.simulate(FIFO, times))
    assert ours <= ladder.GOAL * ladder.p95(ladder.simulate(ROWS[0], times))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_segment_is_made_once_and_none_quicker_than_the_device(row: Row) -> None:
    times = ladder.arrivals(0.9, 200, 1)
    turns = ladder.simulate(row, times)
    assert [turn.made for turn in turns] == [ladder.SEGMENTS] * 200
    assert all(turn.first_s >= SEGMENT_S - 1e-9 for turn in turns)


def test_one_turn_alone_is_heard_after_one_segment_under_any_order() -> None:
    for row in ROWS:
        [turn] = ladder.simulate(row, [5.0])
        assert turn.first_s == pytest.approx(SEGMENT_S) and turn.silence_s == 0


def test_the_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    ladder.main(["--turns", "50"])
    printed = capsys.readouterr().out
    assert all(row.name in printed for row in ROWS) and "90% load" in printed
