"""What a publisher keeps of its open turns, and what it publishes again."""

from __future__ import annotations

from collections.abc import Sequence

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from firstword.errors import FirstwordError
from firstword.outbox import (
    KEPT_CHARACTERS,
    NO_MORE,
    PIECE_COST,
    SPOKEN_CHARACTERS,
    TRIES,
    Outbox,
    Piece,
    Taken,
)

LOST = m.ErrorEvent(code="state_lost", message="lost", retryable=True)
OTHERS: list[m.Audio] = [
    LOST,
    m.Gap(first="1-0"),
    m.AudioChunk(turn="a", n=1, offset=0, data=b""),
    m.ErrorEvent(code="no_audio", message="x", retryable=True, turn="a", n=1),
]


def text(turn: str, seq: int, text: str = "Hi.") -> m.Text:
    return m.Text(session="s", turn=turn, seq=seq, text=text)


def kept(*turns: str) -> Outbox:
    """An outbox with two pieces and an end of each turn."""
    outbox = Outbox()
    for turn in turns:
        for piece in (text(turn, 0), text(turn, 1), m.End(session="s", turn=turn, seq=2)):
            outbox.check(piece)
            outbox.keep(piece)
    return outbox


def started(turn: str, n: int) -> m.SegmentStarted:
    return m.SegmentStarted(turn=turn, n=n, text="Hi.", start=0, end=3)


def gap(turn: str | None, expected: int | None) -> m.ErrorEvent:
    return m.ErrorEvent(code="gap", message="x", retryable=True, turn=turn, expected=expected)


def turn_done(turn: str) -> m.TurnDone:
    return m.TurnDone(turn=turn, segments=1, samples=0, reason="complete")


def order(pieces: Sequence[Piece]) -> list[tuple[str | None, int | None]]:
    return [(piece.turn, piece.seq) for piece in pieces]


def test_what_is_open_is_published_again_in_its_order_and_marked() -> None:
    outbox = kept("a", "b")
    outbox.take(started("a", 7))
    outbox.take(started("a", 8))
    again = outbox.everything()
    assert order(again) == [(turn, seq) for turn in "ab" for seq in range(3)]
    assert [piece.again for piece in again] == [7] * 3 + [9] * 3
    assert isinstance(again[2], m.End)


def test_before_anything_was_heard_numbers_begin_at_the_first() -> None:
    assert {piece.again for piece in kept("a").everything()} == {1}


def test_the_number_of_a_silent_first_segment_counts() -> None:
    outbox = kept("a")
    outbox.take(m.SegmentDone(turn="a", n=5, samples=0))
    outbox.take(m.SegmentDone(turn="a", n=6, samples=0))
    assert {piece.again for piece in outbox.everything()} == {5}


def test_a_gap_is_filled_from_where_it_begins() -> None:
    outbox = kept("a", "b")
    outbox.take(started("a", 4))
    again = outbox.take(gap("a", 1))
    assert order(again) == [("a", 1), ("a", 2)]
    assert [piece.again for piece in again] == [None, None]
    assert outbox.take(gap("c", 1)) == []
    assert outbox.take(gap(None, 1)) == []


@pytest.mark.parametrize("expected", [0, None])
def test_where_a_turns_beginning_is_lost_the_turns_before_it_are_too(expected: int | None) -> None:
    outbox = kept("a", "b")
    assert outbox.take(gap("b", expected)) == outbox.everything()


@pytest.mark.parametrize(
    "event",
    [
        turn_done("a"),
        m.TurnCancelled(turn="a", sent={}, already_done=False),
        m.TurnCancelled(turn="x", sent={}, already_done=False, turns=["x", "a"]),
    ],
)
def test_a_turn_that_is_over_is_forgotten(event: m.Audio) -> None:
    outbox = kept("a", "b")
    assert outbox.take(event) == []
    assert {piece.turn for piece in outbox.everything()} == {"b"}
    assert (outbox.has("a"), outbox.has("b"), outbox.empty) == (False, True, False)


def test_of_a_turn_that_a_full_server_refused_nothing_was_taken() -> None:
    outbox = kept("a", "b")
    for code in ("overloaded", "server_full", "not_opened"):
        refused = m.ErrorEvent(code=code, message="x", retryable=True, turn="a")
        assert outbox.take(refused) == []
        assert outbox.has("a") is (code == "overloaded")
    assert outbox.take(m.ErrorEvent(code="server_full", message="x", retryable=True)) == []
    assert outbox.has("b")


def test_a_closed_session_leaves_nothing_open() -> None:
    outbox = kept("a", "b")
    outbox.take(m.Closed(reason="closed"))
    assert outbox.empty
    outbox.forget("a")
    assert outbox.everything() == []


@pytest.mark.parametrize("event", OTHERS)
def test_other_events_ask_for_nothing(event: m.Audio) -> None:
    outbox = kept("a")
    assert outbox.take(event) == []
    assert outbox.has("a")


def test_more_than_can_be_kept_is_refused() -> None:
    outbox = Outbox()
    outbox.keep(text("a", 0, "x" * (KEPT_CHARACTERS - 2 * PIECE_COST)))
    outbox.check(m.End(session="s", turn="a", seq=1))
    with pytest.raises(FirstwordError, match="turn of its own") as raised:
        outbox.check(text("b", 0, "x"))
    assert (raised.value.code, raised.value.retryable) == ("too_much", True)
    outbox.forget("a")
    outbox.check(text("b", 0, "x"))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30))
def test_its_weight_is_that_of_what_is_open(steps: list[tuple[str, bool]]) -> None:
    outbox = Outbox()
    for turn, over in steps:
        if over:
            outbox.take(turn_done(turn))
        else:
            outbox.keep(text(turn, 0, "x" * 100))
    open_pieces = len(outbox.everything())
    rest = KEPT_CHARACTERS - open_pieces * (100 + PIECE_COST)
    outbox.check(text("d", 0, "x" * (rest - PIECE_COST)))
    with pytest.raises(FirstwordError):
        outbox.check(text("d", 0, "x" * (rest - PIECE_COST + 1)))


# -- what the segmenter has taken -----------------------------------------------------------------


def taken(finished: Sequence[str] = (), **turns: int) -> Taken:
    return Taken(turns, frozenset(finished), frozenset())


def test_what_was_taken_is_read_from_its_fields() -> None:
    values = [msgpack.packb(value) for value in ({"a": 3}, ["b"], ["5-1"])]
    assert Taken.read(values) == Taken({"a": 3}, frozenset({"b"}), frozenset({"5-1"}))
    assert Taken.read([None, None, None]) == taken()


@pytest.mark.parametrize(
    ("told", "missed"),
    [
        (taken(a=3, b=3), False),
        (taken(a=NO_MORE, b=3), False),
        (taken(["a"], b=3), False),
        (taken(a=2, b=3), True),
        (taken(b=3), True),
        (taken(["a", "b"]), False),
        (taken(["x"], x=3), True),
    ],
)
def test_a_turn_that_was_not_taken_to_its_last_piece_is_missed(told: Taken, missed: bool) -> None:
    outbox = kept("a", "b")
    assert outbox.is_missed(outbox.published(), told) is missed


def test_what_is_never_taken_is_left_in_the_end() -> None:
    """Else a piece that breaks the segmenter would come back for ever, and hold up the rest."""
    outbox = kept("a")
    for waits_for in (0, 1):
        found = [outbox.is_missed(outbox.published(), taken(a=waits_for)) for _ in range(TRIES + 2)]
        assert found == [True] * TRIES + [False] * 2


def test_what_was_published_or_stopped_after_the_question_is_not_missed() -> None:
    outbox = kept("a", "b")
    published = outbox.published()
    outbox.keep(text("a", 3))
    outbox.keep(text("c", 0))
    outbox.forget("b")
    assert not outbox.is_missed(published, taken(a=3))


def test_a_turn_that_was_spoken_and_is_open_again_is_kept_again() -> None:
    outbox = kept("a", "b")
    outbox.take(turn_done("a"))
    outbox.take(turn_done("never heard of"))
    assert outbox.reopen(taken(b=3)) == []
    assert order(outbox.reopen(taken(a=1, b=3))) == [("a", 1), ("a", 2)]
    assert order(outbox.everything()) == [(turn, seq) for turn in "ab" for seq in range(3)]
    assert outbox.reopen(taken(a=1, b=3)) == [], "it is open"
    outbox.take(turn_done("a"))
    assert outbox.reopen(taken(a=NO_MORE)) == []
    outbox.clear()
    assert outbox.reopen(taken(a=1)) == []


def test_of_what_was_spoken_only_so_much_is_kept() -> None:
    outbox = Outbox()
    for turn in "abc":
        outbox.keep(text(turn, 0, "x" * (SPOKEN_CHARACTERS // 2 - PIECE_COST)))
        outbox.take(turn_done(turn))
    assert order(outbox.reopen(taken(a=0, b=0, c=0))) == [("b", 0), ("c", 0)]


def test_a_turn_that_was_stopped_and_goes_on_is_told_once() -> None:
    outbox = kept("a", "b")
    receipt = m.TurnCancelled(turn="a", sent={}, already_done=False)
    for _ in range(2):
        outbox.take(receipt)
    stopped = outbox.stopped()
    assert stopped == ["a"]
    assert outbox.revived(stopped, taken(b=3)) == []
    assert outbox.revived([], taken(a=1)) == [], "it was stopped after the question"
    assert outbox.revived(stopped, taken(a=1)) == ["a"]
    assert outbox.stopped() == []
    outbox.take(receipt)
    assert outbox.revived(outbox.stopped(), taken(a=1)) == ["a"]
