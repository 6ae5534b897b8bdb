"""Numbered pieces, timers, and cancels: what keeps a turn whole, and what stops it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firstword import messages as m
from services.segmenter.session import MAX_HELD, ORDER_KEPT
from services.segmenter.turns import (
    GAP_WAIT_S,
    MAX_PLAYED,
    CancelTurns,
    ForGateway,
    Played,
    Skipped,
)
from tests.unit.segmenter.talk import (
    STALL,
    Talk,
    cancels,
    ends,
    errors,
    hints,
    segments,
    skipped,
    spoken,
    to_gateway,
)

# -- numbered pieces ------------------------------------------------------------------------------


def test_a_repeated_number_is_dropped() -> None:
    talk = Talk()
    talk.text("It ", "t", seq=0)
    talk.text("is ", "t", seq=1)
    assert talk.text("It ", "t", seq=0) == [Skipped("repeat")]
    talk.flush("t", seq=2)
    assert talk.flush("t", seq=2) == [Skipped("repeat")]
    talk.text("done", "t", seq=3)
    talk.end("t", seq=4)
    assert talk.end("t", seq=4) == [Skipped("late")]
    assert spoken(talk.outputs) == [("t", "It is"), ("t", "done")]


def test_after_a_gap_the_pieces_wait_and_the_publisher_is_told_once() -> None:
    talk = Talk()
    talk.text("One ", "t", seq=0)
    [error] = errors(talk.text("three ", "t", seq=2))
    assert (error.code, error.expected, error.turn, error.retryable) == ("gap", 1, "t", True)
    assert "publish again from seq 1" in error.message
    assert talk.end("t", seq=3) == []
    assert talk.text("three ", "t", seq=2) == [Skipped("repeat")]
    assert ends(talk.text("two ", "t", seq=1)) == [("t", 1, "complete")]
    assert spoken(talk.outputs) == [("t", "One two three")]
    assert len(errors(talk.outputs)) == 1


def test_a_gap_at_the_very_beginning() -> None:
    talk = Talk()
    [error] = errors(talk.end("t", seq=1))
    assert error.expected == 0
    talk.text("Hi.", "t", seq=0)
    assert spoken(talk.outputs) == [("t", "Hi.")]
    assert ends(talk.outputs) == [("t", 1, "complete")]


def test_gaps_that_nobody_fills_are_passed_over_one_by_one_and_that_is_said() -> None:
    talk = Talk()
    talk.text("One ", "t", seq=0)
    talk.text("three ", "t", seq=2)
    talk.text("five", "t", seq=4)
    talk.end("t", seq=5)
    assert talk.wait(GAP_WAIT_S - 0.1) == []
    [skipped_gap] = errors(talk.wait(0.1))
    assert (skipped_gap.code, skipped_gap.turn) == ("gap_skipped", "t")
    assert talk.text("two ", "t", seq=1) == [Skipped("repeat")]
    assert talk.wait(GAP_WAIT_S - 0.1) == []
    out = talk.wait(0.1)
    assert [error.code for error in errors(out)] == ["gap_skipped"]
    assert spoken(out) == [("t", "One three five")]
    assert ends(out) == [("t", 1, "complete")]
    assert talk.session.timer() is None


def test_a_gap_filled_in_time_is_forgotten() -> None:
    talk = Talk()
    talk.text("three", "t", seq=1)
    talk.text("two ", "t", seq=0)
    talk.wait(2 * GAP_WAIT_S)
    assert [error.code for error in errors(talk.outputs)] == ["gap"]


def test_a_gap_is_waited_for_while_its_publisher_publishes_other_turns_again() -> None:
    talk = Talk()
    talk.text("three", "u", seq=1)
    talk.wait(GAP_WAIT_S - 0.1)
    talk.put(m.Text(session="demo", turn="t", text="One. ", seq=0, again=1))
    assert errors(talk.wait(GAP_WAIT_S - 0.1)) == []
    talk.put(m.Text(session="demo", turn="u", text="Two, ", seq=0, again=2))
    talk.wait(2 * GAP_WAIT_S)
    assert [error.code for error in errors(talk.outputs)] == ["gap"]


def test_a_turn_is_not_abandoned_while_a_gap_may_still_be_filled() -> None:
    talk = Talk(turn_idle_s=1.0)
    talk.text("One ", "t", seq=0)
    talk.text("three", "t", seq=2)
    out = talk.wait(GAP_WAIT_S)
    assert [error.code for error in errors(out)] == ["gap_skipped"]
    assert spoken(out) == [("t", "One three")]
    assert ends(out) == [("t", 1, "abandoned")]


def test_a_gap_holds_so_much_and_no_more() -> None:
    talk = Talk()
    talk.put(
        *(m.Text(session="demo", turn="t", text="x", seq=seq) for seq in range(1, MAX_HELD + 1))
    )
    assert talk.text("y", "t", seq=MAX_HELD + 1) == [Skipped("gap_full")]
    talk.text("x", "t", seq=0)
    talk.text("y", "t", seq=MAX_HELD + 1)
    talk.end("t", seq=MAX_HELD + 2)
    assert [segment.text for segment in segments(talk.outputs)] == ["x" * (MAX_HELD + 1) + "y"]


def test_pieces_after_a_held_end_are_not_spoken() -> None:
    talk = Talk()
    talk.text("Other ", "other")
    talk.end("t", seq=1)
    talk.text("too much", "t", seq=2)
    talk.text("Hi", "t", seq=0)
    talk.wait(2 * GAP_WAIT_S)
    talk.end("other")
    assert spoken(talk.outputs) == [("other", "Other"), ("t", "Hi")]
    assert [error.code for error in errors(talk.outputs)] == ["gap"]


# -- timers ---------------------------------------------------------------------------------------


def test_a_session_with_nothing_open_wants_no_call() -> None:
    talk = Talk(stall=STALL)
    assert talk.session.timer() is None
    talk.open()
    assert talk.session.timer() is None


def test_a_stalled_sentence_is_spoken() -> None:
    talk = Talk(stall=STALL)
    talk.text("It is done.", "t")
    assert talk.session.timer() == talk.now + STALL
    assert spoken(talk.wait(STALL)) == [("t", "It is done.")]
    assert talk.session.timer() == talk.now - STALL + talk.defaults.turn_idle_s


def test_a_stalled_sentence_of_a_later_turn_waits_for_its_turn() -> None:
    talk = Talk(stall=STALL)
    talk.text("A", "a")
    talk.text("B one.", "b")
    assert spoken(talk.wait(STALL)) == []
    assert spoken(talk.end("a")) == [("a", "A"), ("b", "B one.")]


def test_a_tick_too_early_does_nothing() -> None:
    talk = Talk(stall=STALL)
    talk.text("It is done.", "t")
    assert talk.session.tick(talk.now + STALL / 2) == []


def test_a_turn_without_input_is_flushed_and_ended() -> None:
    talk = Talk(turn_idle_s=30.0)
    talk.text("And then", "t")
    talk.wait(29)
    talk.text(" she", "t")
    assert talk.wait(29.9) == []
    out = talk.wait(0.1)
    assert spoken(out) == [("t", "And then she")]
    assert ends(out) == [("t", 1, "abandoned")]
    assert segments(out)[0].last
    assert talk.text(" said", "t") == [Skipped("late")]


def test_an_abandoned_turn_lets_the_next_one_speak() -> None:
    talk = Talk(turn_idle_s=30.0)
    talk.text("A", "a")
    talk.wait(20)
    talk.text("B", "b")
    out = talk.wait(10)
    assert (spoken(out), ends(out)) == ([("a", "A")], [("a", 1, "abandoned")])
    assert spoken(talk.end("b")) == [("b", "B")]


def test_a_later_turn_may_be_abandoned_before_its_turn_comes() -> None:
    talk = Talk(turn_idle_s=30.0)
    talk.text("A", "a")
    talk.text("B", "b")
    talk.wait(20)
    talk.text(" more", "a")
    assert talk.wait(10) == []
    out = talk.end("a")
    assert ends(out) == [("a", 1, "complete"), ("b", 1, "abandoned")]


# -- cancel ---------------------------------------------------------------------------------------


def test_a_cancel_ends_the_turn_that_is_spoken() -> None:
    talk = Talk()
    talk.text("One. Two", "t")
    assert talk.cancel("t") == [
        CancelTurns("t", ("t",), "done"),
        ForGateway(m.TurnEnd(turn="t", segments=1, reason="cancelled", opened_at="1-0")),
    ]
    assert talk.text(" more", "t") == [Skipped("late")]
    assert not talk.session.busy


def test_a_cancel_of_a_turn_stops_that_turn_only() -> None:
    talk = Talk()
    talk.text("A", "a")
    talk.text("B", "b")
    out = talk.cancel("a")
    assert ends(out) == [("a", 0, "cancelled")]
    assert spoken(out) == []
    assert spoken(talk.end("b")) == [("b", "B")]


def test_a_cancel_without_a_name_stops_all_turns_so_far() -> None:
    talk = Talk()
    talk.text("A", "a")
    talk.end("a")
    talk.text("B", "b")
    talk.text("C", "c")
    out = talk.cancel()
    assert cancels(out) == [CancelTurns("", ("a", "b"), "done", dropped=("c",))]
    assert ends(out) == [("b", 0, "cancelled")]
    assert skipped([*talk.text("x", "a"), *talk.text("x", "b"), *talk.end("c")]) == ["late"] * 3
    talk.text("D", "d")
    assert spoken(talk.end("d")) == [("d", "D")]


def test_a_cancel_of_a_waiting_turn_drops_it_before_the_gateway_hears_of_it() -> None:
    talk = Talk()
    talk.text("A", "a")
    talk.text("B one. B two.", "b")
    talk.end("b")
    assert talk.cancel("b") == [CancelTurns("b", ("a",), "waiting", dropped=("b",))]
    assert talk.text(" more", "b") == [Skipped("late")]
    out = talk.end("a")
    assert (spoken(out), ends(out)) == ([("a", "A")], [("a", 1, "complete")])


def test_a_cancel_of_an_unknown_turn_is_answered_and_its_text_never_spoken() -> None:
    talk = Talk()
    talk.text("A", "a")
    assert talk.cancel("t") == [CancelTurns("t", ("a",), "done")]
    assert talk.text("Late text", "t") == [Skipped("late")]
    assert spoken(talk.end("a")) == [("a", "A")]


def test_a_cancel_of_a_finished_turn_is_for_the_gateway_to_decide() -> None:
    talk = Talk()
    talk.text("A", "a")
    talk.end("a")
    talk.text("B", "b")
    assert talk.cancel("a") == [CancelTurns("a", ("a", "b"), "done")]
    assert spoken(talk.end("b")) == [("b", "B")]


def test_every_cancel_is_answered_also_the_second() -> None:
    talk = Talk()
    talk.text("A", "a")
    for target in ("a", "a", None, None, "never", "never"):
        assert len(cancels(talk.cancel(target))) == 1
    assert ends(talk.outputs) == [("a", 0, "cancelled")]
    names = talk.session.snapshot()["finished"]
    assert len(names) == len(set(names))


def test_a_cancel_where_nothing_ever_was() -> None:
    talk = Talk()
    assert talk.cancel() == [CancelTurns("", (), "done")]
    assert to_gateway(talk.outputs) == []


def test_a_cancel_carries_how_far_was_heard() -> None:
    talk = Talk()
    talk.text("One. Two", "t")
    out = talk.cancel("t", {"turn": "t", "n": 1, "samples": 4_800, "more": None})
    assert cancels(out) == [CancelTurns("t", ("t",), "done", Played("t", 1, 4_800))]
    assert errors(out) == []


@pytest.mark.parametrize(
    "played",
    [
        {},
        {"turn": "t", "n": 1},
        {"turn": "a b", "n": 1, "samples": 0},
        {"turn": 7, "n": 1, "samples": 0},
        {"turn": "t", "n": -1, "samples": 0},
        {"turn": "t", "n": 1, "samples": 0.5},
        {"turn": "t", "n": True, "samples": 0},
    ],
)
def test_a_cancel_is_obeyed_although_what_was_heard_cannot_be_read(played: dict[str, Any]) -> None:
    talk = Talk()
    talk.text("One. Two", "t")
    out = talk.cancel("t", played)
    assert cancels(out) == [CancelTurns("t", ("t",), "done")]
    assert [(error.code, error.turn) for error in errors(out)] == [("bad_field", "t")]


def test_what_was_heard_is_a_number_a_script_can_count() -> None:
    talk = Talk()
    [cancel] = cancels(talk.cancel("t", {"turn": "t", "n": 2**60, "samples": 2**62}))
    assert cancel.played == Played("t", MAX_PLAYED, MAX_PLAYED)


def test_a_hint_dies_with_its_turn_and_its_number_is_used_by_the_next() -> None:
    talk = Talk()
    assert [
        hint.n for hint in hints(talk.text("It is done.", "a")) if isinstance(hint, m.Tentative)
    ]
    talk.cancel("a")
    talk.text("Yes", "b")
    talk.end("b")
    assert [(segment.n, segment.turn) for segment in segments(talk.outputs)] == [(1, "b")]


def test_the_held_pieces_of_a_cancelled_turn_are_forgotten() -> None:
    talk = Talk()
    talk.text("two", "a", seq=1)
    talk.cancel("a")
    assert talk.session.timer() is None
    assert talk.wait(2 * GAP_WAIT_S) == []


def test_turns_reach_the_gateway_in_the_order_a_cancel_tells() -> None:
    talk = Talk()
    talk.text("A", "a")
    talk.text("B", "b")
    talk.text("C", "c")
    talk.end("b")
    talk.end("a")
    talk.end("c")
    assert cancels(talk.cancel())[0].order == ("a", "b", "c")


def test_a_cancel_tells_of_the_last_turns_only() -> None:
    talk = Talk()
    for number in range(ORDER_KEPT + 2):
        talk.end(f"t{number}")
    [cancel] = cancels(talk.cancel())
    assert cancel.order == tuple(f"t{number}" for number in range(2, ORDER_KEPT + 2))


# -- a successor ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", range(8))
def test_a_successor_goes_on_where_the_other_was(step: int) -> None:
    talk = Talk(stall=STALL)
    steps: list[Callable[[], object]] = [
        lambda: talk.open(voice="bm_george", meta={"segmenter": {"min_chars": 3}}),
        lambda: talk.text("A one. A tw", "a", seq=0, src="5-0"),
        lambda: talk.text("B one. B two", "b", traceparent="00-trace"),
        lambda: talk.end("a", seq=2),
        lambda: talk.text("A one. A tw", "a", seq=0, src="5-0"),
        lambda: talk.text("o", "a", seq=1),
        lambda: talk.end("b"),
        lambda: talk.cancel("c"),
    ]
    for number, act in enumerate(steps):
        if number == step:
            talk.succeed()
        act()
    talk.succeed()
    assert talk.text("late", "c") == [Skipped("late")]
    assert [(s.turn, s.n, s.text, s.voice, s.traceparent) for s in segments(talk.outputs)] == [
        ("a", 1, "A one.", "bm_george", None),
        ("a", 2, "A two", "bm_george", None),
        ("b", 3, "B one.", "bm_george", "00-trace"),
        ("b", 4, "B two", "bm_george", "00-trace"),
    ]
    assert ends(talk.outputs) == [("a", 2, "complete"), ("b", 2, "complete")]
    assert [type(message) for message in to_gateway(talk.outputs)].count(m.SessionOpen) == 1


def test_timers_begin_anew_with_a_successor() -> None:
    talk = Talk(stall=STALL, turn_idle_s=30.0)
    talk.text("It is done.", "t", seq=0)
    talk.text("late", "u", seq=1)
    talk.now = 5.0  # the clock of another process
    talk.succeed()
    assert talk.session.timer() == 5.0 + STALL
    assert spoken(talk.wait(STALL)) == [("t", "It is done.")]
    assert [error.code for error in errors(talk.wait(GAP_WAIT_S))] == ["gap_skipped"]
    assert ends(talk.wait(30)) == [("t", 1, "abandoned"), ("u", 1, "abandoned")]


def test_a_turn_waits_for_its_text_again_when_its_gap_was_known() -> None:
    talk = Talk()
    talk.text("two", "t", seq=1)
    talk.succeed()
    assert errors(talk.text("three", "t", seq=2)) == []
    talk.text("one ", "t", seq=0)
    talk.end("t", seq=3)
    assert spoken(talk.outputs) == [("t", "one twothree")]


def test_a060_an_empty_piece_keeps_a_turn_open() -> None:
    talk = Talk()
    talk.open()
    talk.text("Let me look. ", "t", seq=0)
    for seq in (1, 2, 3):
        talk.wait(20)
        talk.text("", "t", seq=seq)
    talk.text("Here it is.", "t", seq=4)
    talk.end("t", seq=5)
    assert [text for _, text in spoken(talk.outputs)] == ["Let me look.", "Here it is."]
    assert ends(talk.outputs) == [("t", 2, "complete")]
