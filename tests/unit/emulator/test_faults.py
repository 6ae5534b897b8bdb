"""Faults: how they are written, whom they meet, and when."""

from __future__ import annotations

import pytest

from firstword.emulator.faults import RULES, Fault, FaultError, Faults, Kind, parse


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("abort", Fault(Kind.ABORT)),
        ("429@1-3", Fault(Kind.THROTTLED, first=1, last=3)),
        ("424@2", Fault(Kind.MODEL_ERROR, first=2, last=2)),
        ("503@4-", Fault(Kind.UNAVAILABLE, first=4)),
        ("rst", Fault(Kind.RST, 2)),
        ("rst=8@1:5", Fault(Kind.RST, 8, 1, 1, 5)),
        ("goaway:in3", Fault(Kind.GOAWAY, event=3, incoming=True)),
        ("cut:out2", Fault(Kind.CUT, event=2)),
        (" delay=0.5 ", Fault(Kind.DELAY, 0.5)),
        ("split", Fault(Kind.SPLIT, 5)),
        ("max-duration=1.5@2-2", Fault(Kind.MAX_DURATION, 1.5, 2, 2)),
        ("never-answer", Fault(Kind.NEVER_ANSWER)),
        ("no-window:in2", Fault(Kind.NO_WINDOW, event=2, incoming=True)),
        ("slow-open=20", Fault(Kind.SLOW_OPEN, 20)),
    ],
)
def test_how_a_fault_is_written(text: str, fault: Fault) -> None:
    assert parse(text) == fault


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("abot", "KIND one of 429, 424"),
        ("", "must be KIND"),
        ("abort@x", "must be KIND"),
        ("abort=1", "takes no value"),
        ("delay", "write delay=MS"),
        ("429:1", "takes no event"),
        ("split=0", "at least one byte"),
        ("abort@0", "counted from 1"),
        ("abort:0", "counted from 1"),
        ("abort@3-2", "counted from 1"),
        ("cut:in1", "parts that go to the client"),
    ],
)
def test_what_is_wrong_is_told(text: str, why: str) -> None:
    with pytest.raises(FaultError, match=why):
        parse(text)


def test_every_kind_is_explained() -> None:
    assert set(RULES) == set(Kind)


def test_refusals_meet_their_streams_and_no_other() -> None:
    faults = Faults(["429@1", "424@2-3", "500@5-"])
    refusals = [faults.opened().refusal() for _ in range(6)]
    assert [refusal and refusal[0] for refusal in refusals] == [429, 424, 424, None, 500, 500]


def test_streams_are_counted_since_the_fault_was_switched_on() -> None:
    faults = Faults()
    early = faults.opened()
    faults.add("503@1")
    assert early.refusal() is None
    assert [bool(faults.opened().refusal()) for _ in range(2)] == [True, False]


def test_without_streams_open_ones_are_met_too_and_healed() -> None:
    faults = Faults()
    stream = faults.opened()
    assert stream.strike(0, 0) == []
    fault = faults.add("abort")
    assert stream.strike(0, 0) == [fault]
    assert stream.strike(0, 1) == []  # once is enough
    assert faults.opened().strike(0, 0) == [fault]
    faults.clear()
    assert faults.opened().strike(9, 9) == []


def test_strikes_wait_for_their_event_in_their_direction() -> None:
    stream = Faults(["rst:2", "goaway:in3", "abort:in3"]).opened()
    kinds = [
        [fault.kind for fault in stream.strike(ins, outs)]
        for ins, outs in [(0, 0), (2, 1), (2, 2), (3, 2), (4, 9)]
    ]
    assert kinds == [[], [], [Kind.RST], [Kind.GOAWAY, Kind.ABORT], []]


def test_delays_add_up_and_the_smallest_piece_counts() -> None:
    stream = Faults(["delay=100", "delay=50:2", "split=7", "split=3:2", "slow-open=10"]).opened()
    assert [stream.out_delay_s(number) for number in (1, 2, 3)] == pytest.approx([0.1, 0.15, 0.1])
    assert [stream.piece_bytes(number) for number in (1, 2, 3)] == [7, 3, 7]
    assert stream.open_delay_s() == pytest.approx(0.01)
    plain = Faults().opened()
    assert (plain.out_delay_s(1), plain.piece_bytes(1), plain.open_delay_s()) == (0, None, 0)


def test_cut_hits_one_part() -> None:
    assert [Faults(["cut"]).opened().cuts(number) for number in (1, 2)] == [True, False]
    assert [Faults(["cut:2"]).opened().cuts(number) for number in (1, 2)] == [False, True]


def test_the_window_is_withheld_from_an_event_on_until_healed() -> None:
    faults = Faults(["no-window:in2"])
    stream = faults.opened()
    assert [stream.withholds(ins, 9) for ins in (1, 2, 3)] == [False, True, True]
    faults.clear()
    assert not stream.withholds(3, 9)


def test_the_shortest_life_counts() -> None:
    stream = Faults(["max-duration=5", "max-duration=3@1"]).opened()
    assert stream.max_duration_s(1800) == 3
    assert stream.max_duration_s(2) == 2


def test_a_stream_may_never_be_answered() -> None:
    faults = Faults(["never-answer@2"])
    assert [faults.opened().never_answers() for _ in range(3)] == [False, True, False]
