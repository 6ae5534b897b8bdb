"""Turns that our own code cannot go on with end; the session goes on."""

from __future__ import annotations

from tests.unit.segmenter.talk import Talk, ends, errors, spoken


def test_open_turns_end_with_what_has_left_of_them() -> None:
    talk = Talk()
    talk.text("One. Two is not whole", "a")
    talk.text("Three. Four", "b")
    talk.end("b")
    made = talk.session.give_up()
    assert [(error.code, error.turn) for error in errors(made)] == [("failed", "a")]
    assert spoken(made) == [("b", "Three."), ("b", "Four")]
    assert ends(made) == [("a", 1, "failed"), ("b", 2, "complete")]
    assert not talk.session.busy
    talk.text("Five. Six", "c")
    assert spoken(talk.outputs)[-1] == ("c", "Five.")
