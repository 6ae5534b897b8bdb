"""A turn that is published again after a loss: what listeners have is not spoken again."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from services.segmenter.resend import MAX_CHARACTERS, RESUMES_KEPT, SETTLE_S, Heard, cut
from services.segmenter.session import MAX_FIRST_N
from services.segmenter.turns import Skipped
from tests.unit.segmenter.talk import STALL, Talk, cancels, ends, hints, segments, skipped, spoken

WAIT_S = 1.0
TEXT = "One is here. Two is too. Three goes on and on."
STARTS = [0, 13, 25]


def again(talk: Talk, turn: str = "t", text: str = TEXT, first_n: int = 1) -> None:
    """The publisher publishes the turn again, in pieces."""
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    for seq, piece in enumerate(pieces):
        talk.text(piece, turn, seq=seq, again=first_n)
    talk.end(turn, seq=len(pieces), again=first_n)


def left(talk: Talk) -> list[tuple[int, str, int | None]]:
    """(number, text, samples to skip) of the segments."""
    return [(s.n, s.text, s.skip_samples) for s in segments(talk.outputs)]


# -- waiting to learn what was heard --------------------------------------------------------------


def test_it_waits_and_is_spoken_whole_where_nobody_has_any_of_it() -> None:
    talk = Talk(resume_wait_s=WAIT_S)
    again(talk)
    talk.wait(WAIT_S - 0.01)
    assert spoken(talk.outputs) == []
    talk.wait(0.02)
    assert left(talk) == [
        (1, "One is here.", None),
        (2, "Two is too.", None),
        (3, "Three goes on and on.", None),
    ]
    assert ends(talk.outputs) == [("t", 3, "complete")]
    assert talk.session.timer() is None


def test_it_goes_on_inside_the_segment_that_was_being_heard() -> None:
    talk = Talk()
    again(talk, first_n=8)
    talk.resume("t", 13, 4_800, 24)
    talk.wait(SETTLE_S + 0.01)
    assert left(talk) == [(9, "Two is too.", 4_800), (10, "Three goes on and on.", None)]
    assert skipped(talk.outputs) == ["heard"]
    assert ends(talk.outputs) == [("t", 3, "complete")]


def test_it_goes_on_after_the_segments_that_were_heard() -> None:
    talk = Talk()
    again(talk)
    talk.resume("t", 24, 0)  # two sentences are done, the third had not begun
    talk.wait(WAIT_S)
    assert left(talk) == [(3, "Three goes on and on.", None)]


def test_a_turn_heard_to_its_end_only_ends() -> None:
    talk = Talk()
    again(talk)
    talk.resume("t", len(TEXT), 0)
    talk.wait(WAIT_S)
    assert left(talk) == []
    assert ends(talk.outputs) == [("t", 3, "complete")]


def test_the_listener_with_the_least_decides() -> None:
    talk = Talk()
    again(talk)
    talk.resume("t", 25, 100)
    talk.resume("t", 13, 200, 24)
    talk.resume("t", 13, 900, 24)
    talk.wait(WAIT_S)
    assert left(talk) == [(2, "Two is too.", 200), (3, "Three goes on and on.", None)]


def test_listeners_may_be_quicker_than_the_publisher() -> None:
    talk = Talk()
    talk.resume("t", 25, 300)
    talk.resume("t", 13, 200, 24)
    again(talk)
    assert spoken(talk.outputs) == []
    talk.wait(SETTLE_S + 0.01)
    assert left(talk) == [(2, "Two is too.", 200), (3, "Three goes on and on.", None)]


def test_one_who_speaks_up_too_late_hears_repeats_and_drops_them() -> None:
    talk = Talk()
    again(talk, text="One is here. Two")
    talk.wait(WAIT_S)
    assert talk.resume("t", 13, 200) == [Skipped("late")]
    talk.text("Now. Then", "u")
    assert talk.resume("u", 5, 0) == [Skipped("late")]


def test_what_listeners_have_is_kept_for_the_last_turns() -> None:
    talk = Talk()
    for number in range(RESUMES_KEPT + 1):
        talk.resume(f"t{number}", 13, 0)
    again(talk, "t0")
    again(talk, f"t{RESUMES_KEPT}")
    talk.wait(WAIT_S)
    assert [turn for turn, text in spoken(talk.outputs) if text == "One is here."] == ["t0"]


# -- cuts -----------------------------------------------------------------------------------------


def test_a_cut_that_time_made_is_made_again_so_that_the_sound_fits() -> None:
    """A stalled `Inc.` was taken for an end; with the next word at once it would not be."""
    text, rest = "He works at Acme Inc.", " and likes it."
    first = Talk(stall=STALL)
    first.text(text, "t", seq=0)
    first.wait(5)
    first.text(rest, "t", seq=1)
    first.end("t", seq=2)
    before = [(s.text, s.start, s.end) for s in segments(first.outputs)]
    assert before == [(text, 0, 21), ("and likes it.", 22, 35)]

    talk = Talk(stall=STALL)
    talk.text(text, "t", seq=0, again=1)
    talk.text(rest, "t", seq=1, again=1)
    talk.end("t", seq=2, again=1)
    talk.resume("t", 0, 700, 21)
    talk.wait(WAIT_S)
    assert left(talk) == [(1, text, 700), (2, "and likes it.", None)]


def test_flushes_and_voices_are_published_again_as_they_were() -> None:
    talk = Talk()
    talk.text("Let me see", "t", seq=0, again=1)
    talk.flush("t", seq=1, again=1)
    talk.text(" now it", "t", seq=2, again=1, voice="am_adam")
    talk.text(" goes on.", "t", seq=3, voice="am_adam")  # the first one that is new
    talk.end("t", seq=4)
    talk.text("Late.", "t", seq=5)
    talk.resume("t", 4, 0)
    talk.wait(WAIT_S)
    assert [(s.text, s.voice) for s in segments(talk.outputs)] == [
        ("me see", "af_heart"),
        ("now it goes on.", "am_adam"),
    ]


@given(
    st.lists(st.text(alphabet="ab. é你\U0001f600", max_size=6), max_size=6),
    st.integers(0, 30),
    st.integers(0, 30),
    st.data(),
)
def test_cutting_leaves_the_text_and_puts_each_mark_at_its_character(
    pieces: list[str], one: int, two: int, data: st.DataObject
) -> None:
    whole = "".join(pieces)
    raw = whole.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    parts = [raw[a:b] for a, b in pairwise([0, *cuts, len(raw)])]
    messages = [
        m.Text(session="s", turn="t", text=part.decode("utf-8", "surrogateescape"))
        for part in parts
    ]
    marks = sorted({one, two})
    out = list(cut([*messages, m.End(session="s", turn="t")], marks))
    assert isinstance(out[-1], m.End)
    said = "".join(message.text for message in out if isinstance(message, m.Text))
    assert said.encode("utf-8", "surrogateescape") == raw
    at = 0
    flushed = []
    for message in out:
        if isinstance(message, m.Text):
            at += len(message.text)
        elif isinstance(message, m.Flush):
            flushed.append(at)
    assert flushed == [mark for mark in marks if 0 < mark <= len(whole)]


def test_half_a_character_stays_where_it_was() -> None:
    torn = m.Text(session="s", text="a\udcc3", turn="t")
    flush, end = m.Flush(session="s", turn="t"), m.End(session="s", turn="t")
    rest = m.Text(session="s", text="bc", turn="t")
    cut_up = list(cut([torn, flush, rest, end], [3]))
    texts = [message.text if isinstance(message, m.Text) else message for message in cut_up]
    assert texts == ["a", "\udcc3", flush, "b", flush, "c", end]
    assert [message.text for message in cut([torn], []) if isinstance(message, m.Text)] == [
        "a",
        "\udcc3",
    ]


# -- what else may happen -------------------------------------------------------------------------


def test_a_turn_that_is_known_goes_on_and_its_repeats_are_dropped() -> None:
    talk = Talk()
    talk.text("One is here. Two", "t", seq=0)
    talk.text("One is here. Two", "t", seq=0, again=1)
    talk.text(" is too.", "t", seq=1, again=1)
    talk.end("t", seq=2, again=1)
    assert spoken(talk.outputs) == [("t", "One is here."), ("t", "Two is too.")]


def test_a_turn_that_came_in_its_middle_waits_like_any_other() -> None:
    talk = Talk()
    talk.text(" is too.", "t", seq=1)
    talk.text("One is here. Two", "t", seq=0, again=4)
    talk.end("t", seq=2)
    assert spoken(talk.outputs) == []
    talk.resume("t", 13, 50, 24)
    talk.wait(WAIT_S)
    assert left(talk) == [(5, "Two is too.", 50)]


def test_a_piece_that_came_out_of_its_place_does_not_decide_the_settings() -> None:
    talk = Talk()
    talk.text(" is too.", "t", seq=1)
    talk.open(voice="am_adam", lang="de")
    talk.text("One is here. Two", "t", seq=0, again=1)
    talk.end("t", seq=2, again=1)
    talk.wait(WAIT_S)
    assert {(s.voice, s.lang) for s in segments(talk.outputs)} == {("am_adam", "de")}


def test_a_piece_that_came_out_of_its_place_does_not_decide_the_order() -> None:
    talk = Talk()
    talk.text("Aside. ", "x", seq=0)
    talk.text(" is too.", "u", seq=1)
    talk.text(" is last.", "v", seq=1)
    again(talk, "t", "One is here.")
    talk.text("Two", "u", seq=0, again=1)
    talk.end("u", seq=2, again=1)
    talk.text("Three", "v", seq=0, again=1)
    talk.end("v", seq=2, again=1)
    talk.end("x", seq=1)
    talk.wait(WAIT_S)
    assert [turn for turn, _text in spoken(talk.outputs)] == ["x", "t", "u", "v"]


def test_the_first_turn_of_all_may_have_to_let_another_pass() -> None:
    talk = Talk()
    talk.text(" is too.", "u", seq=1)
    again(talk, "t", "One is here.")
    [cancel] = cancels(talk.cancel("t"))
    assert cancel.order == ("t",)
    talk.text("Two", "u", seq=0, again=1)
    [cancel] = cancels(talk.cancel("u"))
    assert cancel.order == ("t", "u")


def test_numbers_go_on_where_they_were_and_never_back() -> None:
    talk = Talk()
    again(talk, "t", "One is here.", first_n=40)
    again(talk, "u", "Two is too.", first_n=7)
    again(talk, "v", "Three.", first_n=2**62)
    talk.wait(WAIT_S)
    assert [n for n, _text, _skips in left(talk)] == [40, 41, MAX_FIRST_N]


def test_hints_carry_the_number_the_segment_will_have() -> None:
    talk = Talk()
    talk.text("One is here.", "t", seq=0, again=40)
    talk.wait(WAIT_S)
    assert [hint.n for hint in hints(talk.outputs) if isinstance(hint, m.Tentative)] == [40]


def test_later_turns_wait_behind_it_and_are_not_cut_where_it_is() -> None:
    talk = Talk()
    again(talk, "t")
    again(talk, "u")
    talk.resume("t", 25, 10)
    talk.resume("u", 13, 0)
    talk.wait(WAIT_S)
    assert left(talk) == [
        (3, "Three goes on and on.", 10),
        (5, "Two is too.", None),
        (6, "Three goes on and on.", None),
    ]


def test_a_cancel_of_a_turn_that_waits_ends_it_unspoken() -> None:
    talk = Talk()
    again(talk)
    talk.cancel("t")
    talk.wait(WAIT_S)
    assert spoken(talk.outputs) == []
    assert ends(talk.outputs) == [("t", 0, "cancelled")]


def test_a_close_lets_it_speak_first() -> None:
    talk = Talk()
    talk.text("One is here. Two", "t", seq=0, again=1)
    talk.close()
    again(talk, "u", "Three.")
    talk.close()
    assert spoken(talk.outputs) == [("t", "One is here."), ("t", "Two"), ("u", "Three.")]
    assert ends(talk.outputs) == [("t", 2, "complete"), ("u", 1, "complete")]


def test_a_turn_abandoned_while_it_waits_is_spoken() -> None:
    talk = Talk(turn_idle_s=1.0, resume_wait_s=5.0)
    talk.text("One is here. Two", "t", seq=0, again=1)
    talk.wait(1.5)
    assert spoken(talk.outputs) == [("t", "One is here."), ("t", "Two")]
    assert ends(talk.outputs) == [("t", 2, "abandoned")]


def test_a_turn_too_large_to_hold_is_spoken_from_its_start() -> None:
    talk = Talk(max_queued=10**9)
    talk.text("One is here. " * (MAX_CHARACTERS // 13), "t", seq=0, again=1)
    assert spoken(talk.outputs) == []
    talk.text("One is here. Two", "t", seq=1, again=1)
    assert len(spoken(talk.outputs)) == MAX_CHARACTERS // 13 + 1


def test_a_successor_waits_as_long_and_knows_what_is_known() -> None:
    talk = Talk()
    talk.resume("u", 13, 0)
    again(talk)
    talk.succeed()
    talk.resume("t", 13, 30, 24)
    talk.succeed()
    talk.wait(SETTLE_S + 0.01)
    assert spoken(talk.outputs) == []
    talk.wait(WAIT_S - SETTLE_S)
    talk.succeed()
    again(talk, "u")
    talk.wait(WAIT_S)
    assert left(talk) == [
        (2, "Two is too.", 30),
        (3, "Three goes on and on.", None),
        (5, "Two is too.", None),
        (6, "Three goes on and on.", None),
    ]


def test_a_successor_in_the_middle_of_it_goes_on_skipping() -> None:
    talk = Talk()
    talk.text("One is", "t", seq=0, again=1)
    talk.resume("t", 13, 70)
    talk.wait(WAIT_S)
    talk.succeed()
    talk.text(" here. Two is too.", "t", seq=1)
    talk.end("t", seq=2)
    assert left(talk) == [(2, "Two is too.", 70)]


@given(
    st.integers(0, 2),
    st.integers(1, 2_000),
    st.lists(st.integers(0, len(TEXT)), max_size=6).map(sorted),
)
def test_wherever_listeners_are_the_rest_is_spoken_once(
    segment: int, samples: int, cuts: list[int]
) -> None:
    talk = Talk()
    ends_at = [12, 24, len(TEXT)]
    pieces = [TEXT[a:b] for a, b in pairwise([0, *cuts, len(TEXT)])]
    talk.resume("t", STARTS[segment], samples, ends_at[segment])
    for seq, piece in enumerate(pieces):
        talk.text(piece, "t", seq=seq, again=1)
    talk.end("t", seq=len(pieces), again=1)
    talk.wait(WAIT_S)
    found = segments(talk.outputs)
    assert [(s.n, s.start, s.end) for s in found] == [
        (n + 1, STARTS[n], ends_at[n]) for n in range(segment, 3)
    ]
    assert [s.skip_samples for s in found] == [samples, *[None] * (2 - segment)]


def test_who_has_less_is_told_by_characters_first() -> None:
    assert Heard(1, 900) < Heard(2, 0) < Heard(2, 1)
