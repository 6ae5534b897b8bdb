"""More text than may wait to be spoken: it is refused, and nothing that was taken is lost."""

from __future__ import annotations

from firstword import messages as m
from services.segmenter.outlet import HINTS_UP_TO
from services.segmenter.turns import Skipped
from tests.unit.segmenter.talk import Talk, ends, errors, hints, skipped, spoken


def test_text_that_comes_when_too_much_waits_ends_its_turn() -> None:
    talk = Talk(max_queued=2)
    talk.text("One. Two. Three", "t")
    talk.queued = 2
    talk.text(" is taken", "t")  # what was known then: none waited
    [error] = errors(talk.text(" and this is not.", "t"))
    assert (error.code, error.turn, error.retryable) == ("overloaded", "t", True)
    assert spoken(talk.outputs) == [("t", "One."), ("t", "Two."), ("t", "Three is taken")]
    assert ends(talk.outputs) == [("t", 3, "overloaded")]
    assert talk.text("More.", "t") == [Skipped("late")]
    assert len(errors(talk.outputs)) == 1


def test_an_empty_piece_needs_no_room() -> None:
    """It only says that its turn is still being written, while its writer waits for room."""
    talk = Talk(max_queued=2)
    talk.text("One. Two. Three", "t")
    talk.queued = 2
    talk.text(" is taken", "t")
    assert talk.text("", "t") == []
    talk.queued = 0
    talk.text("", "t")
    talk.end("t")
    assert ends(talk.outputs) == [("t", 3, "complete")]


def test_one_entry_is_spoken_whole_however_much_it_is() -> None:
    talk = Talk(max_queued=2)
    talk.text("One. Two. Three. Four. Five", "t")
    talk.end("t")
    assert len(spoken(talk.outputs)) == 5
    assert ends(talk.outputs) == [("t", 5, "complete")]
    assert errors(talk.outputs) == []


def test_segments_count_before_they_are_stored() -> None:
    talk = Talk(max_queued=2)
    session, now = talk.session, talk.now
    talk.text("One. Two. Three", "t")
    session.committed(0)
    talk.queued = 7
    assert errors(talk.text(" fits. And", "t")) == []
    assert session.tick(now) == []
    assert [error.turn for error in errors(talk.text(" more.", "t"))] == ["t"]


def test_what_waits_behind_other_turns_counts_and_only_late_comers_are_refused() -> None:
    talk = Talk(max_queued=2)
    talk.text("A one. ", "a")
    talk.text("B one. B two. B", "b")
    [error] = errors(talk.text("C one.", "c"))
    assert (error.code, error.turn) == ("overloaded", "c")
    assert talk.session.waiting == 2
    assert [error.turn for error in errors(talk.text("A two.", "a"))] == ["a"]
    talk.end("b")
    assert ends(talk.outputs) == [
        ("a", 1, "overloaded"),
        ("b", 3, "complete"),
        ("c", 0, "overloaded"),
    ]
    assert not talk.session.busy


def test_with_room_again_turns_are_taken_again() -> None:
    talk = Talk(max_queued=1)
    talk.queued = 1
    talk.text("A.", "a")
    talk.text("B.", "b")
    assert [error.turn for error in errors(talk.outputs)] == ["b"]
    talk.queued = 0
    talk.end("a")
    talk.text("C.", "c")
    talk.end("c")
    assert ends(talk.outputs)[-1] == ("c", 1, "complete")


def test_room_that_a_look_finds_is_used() -> None:
    talk = Talk(max_queued=3)
    talk.queued = 3
    talk.text("One.", "t")
    assert talk.session.full
    talk.session.looked(1)
    assert not talk.session.full
    session = talk.session
    session.handle("8-0", [m.Text(session="demo", turn="t", text=" Two. Three. Four")], talk.now)
    session.looked(0)
    assert session.full, "three are not stored yet"


def test_without_names_it_is_said_once_and_not_at_every_token() -> None:
    """Of the turn that was open, and of the next one that cannot begin."""
    talk = Talk(max_queued=1)
    talk.queued = 1
    talk.text("Hello")
    for token in (" there", ".", " How"):
        talk.text(token)
    told = [(error.code, error.turn) for error in errors(talk.outputs)]
    assert told == [("overloaded", "1-0"), ("overloaded", "3-0")]
    assert skipped(talk.outputs) == ["overloaded"]
    assert spoken(talk.outputs) == [("1-0", "Hello")]
    talk.queued = 0
    talk.flush()
    talk.text("Now then.")
    talk.end()
    assert spoken(talk.outputs)[-1] == ("6-0", "Now then.")
    talk.queued = 1
    talk.flush()
    assert [error.code for error in errors(talk.text("Too much again."))] == ["overloaded"]


def test_what_is_published_again_was_accepted_before() -> None:
    talk = Talk(max_queued=1)
    talk.queued = 1
    talk.text("Before. ", "t", seq=0, again=1)
    talk.text("And after.", "t", seq=1, again=1)
    talk.end("t", seq=2, again=1)
    talk.wait(2)
    assert spoken(talk.outputs) == [("t", "Before."), ("t", "And after.")]
    assert errors(talk.outputs) == []


def test_a_gateway_with_much_to_do_is_not_told_of_what_is_likely() -> None:
    talk = Talk()
    talk.queued = HINTS_UP_TO + 1
    talk.text("One.", "t")
    assert len(hints(talk.outputs)) == 1
    talk.text(" Two.", "t")
    assert len(hints(talk.outputs)) == 1
    talk.queued = HINTS_UP_TO
    talk.text(" Three", "t")
    talk.text(".", "t")
    assert len(hints(talk.outputs)) == 2
