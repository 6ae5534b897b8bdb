"""A session's text side: turns in order, settings, closing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from services.segmenter.core import SegmenterOptions
from services.segmenter.options import segmenter_lang
from services.segmenter.turns import ForGateway, Skipped
from tests.unit.segmenter.talk import (
    Talk,
    ends,
    errors,
    hints,
    segments,
    skipped,
    spoken,
    to_gateway,
)

# -- a turn ---------------------------------------------------------------------------------------


def test_a_turn_from_its_first_token_to_its_end() -> None:
    talk = Talk()
    talk.text("Hello", "t")
    talk.text(" there.", "t")
    talk.text(" How are", "t")
    talk.text(" you", "t")
    talk.end("t")
    opened, tentative, first, last, end = to_gateway(talk.outputs)
    assert opened == m.SessionOpen(
        voice="af_heart", speed=1.0, lang="en", sample_rate=24_000, pace="realtime"
    )
    assert tentative == m.Tentative(
        turn="t",
        n=1,
        text="Hello there.",
        voice="af_heart",
        speed=1.0,
        lang="en",
        opened_at="1-0",
    )
    assert first == m.Segment(
        turn="t",
        n=1,
        text="Hello there.",
        spoken="Hello there.",
        start=0,
        end=12,
        voice="af_heart",
        speed=1.0,
        lang="en",
        first=True,
        last=False,
        opened_at="1-0",
    )
    assert isinstance(last, m.Segment)
    assert (last.n, last.text, last.start, last.end) == (2, "How are you", 13, 24)
    assert (last.first, last.last, last.opened_at) == (False, True, "1-0")
    assert end == m.TurnEnd(turn="t", segments=2, reason="complete", opened_at="1-0")
    assert not talk.session.busy


def test_one_entry_may_carry_a_whole_turn() -> None:
    talk = Talk()
    talk.put(m.Text(session="demo", text="One. Two."), m.End(session="demo"))
    assert spoken(talk.outputs) == [("1-0", "One."), ("1-0", "Two.")]
    assert [s.last for s in segments(talk.outputs)] == [False, True]
    assert ends(talk.outputs) == [("1-0", 2, "complete")]


def test_flush_speaks_what_is_there_and_the_turn_goes_on() -> None:
    talk = Talk()
    talk.text("Let me see", "t")
    assert spoken(talk.flush("t")) == [("t", "Let me see")]
    talk.text(" It is here", "t")
    talk.end("t")
    assert spoken(talk.outputs) == [("t", "Let me see"), ("t", "It is here")]
    assert [(s.first, s.last) for s in segments(talk.outputs)] == [(True, False), (False, True)]


def test_a_turn_without_words_ends_with_no_segments() -> None:
    talk = Talk()
    talk.text("  \n", "t")
    talk.end("t")
    talk.end("u")
    assert spoken(talk.outputs) == []
    assert ends(talk.outputs) == [("t", 0, "complete"), ("u", 0, "complete")]


def test_numbers_go_on_through_the_session() -> None:
    talk = Talk()
    for turn in ("a", "b", "c"):
        talk.text("One. Two.", turn)
        talk.end(turn)
    assert [segment.n for segment in segments(talk.outputs)] == [1, 2, 3, 4, 5, 6]


def test_a_character_cut_between_two_entries_is_whole_again() -> None:
    talk = Talk()
    talk.text("Gr\udcc3", "t")
    talk.text("\udcbc\udcc3\udc9f dich.", "t")
    talk.end("t")
    assert spoken(talk.outputs) == [("t", "Grüß dich.")]


def test_a_door_copy_begins_the_turn_at_the_door_and_carries_its_trace() -> None:
    talk = Talk()
    talk.text("Hi.", "t", src="7-1", traceparent="00-trace")
    talk.end("t", src="7-2")
    [segment] = segments(talk.outputs)
    assert (segment.opened_at, segment.traceparent) == ("7-1", "00-trace")


def test_a_door_copy_is_taken_once() -> None:
    talk = Talk()
    talk.text("One. ", "t", src="7-9")
    talk.text("Two. ", "t", src="7-10")
    assert talk.text("One. ", "t", src="7-9") == [Skipped("repeat")]
    assert talk.text("Two. ", "t", src="7-10") == [Skipped("repeat")]
    talk.text("Three.", "t")
    talk.end("t", src="8-0")
    assert spoken(talk.outputs) == [("t", "One."), ("t", "Two."), ("t", "Three.")]


# -- several turns --------------------------------------------------------------------------------


def test_turns_are_spoken_whole_in_the_order_of_their_first_entry() -> None:
    talk = Talk()
    talk.text("A one. ", "a")
    talk.text("B one. B two. ", "b")
    talk.text("A two. ", "a")
    talk.text("C one. ", "c")
    talk.end("c")
    talk.end("b")
    assert {turn for turn, _text in spoken(talk.outputs)} == {"a"}
    talk.end("a")
    assert spoken(talk.outputs) == [
        ("a", "A one."),
        ("a", "A two."),
        ("b", "B one."),
        ("b", "B two."),
        ("c", "C one."),
    ]
    assert [s.n for s in segments(talk.outputs)] == [1, 2, 3, 4, 5]
    assert ends(talk.outputs) == [("a", 2, "complete"), ("b", 2, "complete"), ("c", 1, "complete")]
    assert not talk.session.busy


def test_what_waited_leaves_at_once_and_its_turn_goes_on() -> None:
    talk = Talk()
    talk.text("A one", "a")
    talk.text("B one. B", "b")
    assert spoken(talk.end("a")) == [("a", "A one"), ("b", "B one.")]
    assert spoken(talk.end("b")) == [("b", "B")]


def test_hints_are_for_the_turn_that_is_spoken_alone() -> None:
    talk = Talk()
    talk.text("A", "a")
    assert hints(talk.text("B one.", "b")) == []
    [hint] = hints(talk.text(" one.", "a"))
    assert isinstance(hint, m.Tentative)
    assert (hint.turn, hint.n, hint.text) == ("a", 1, "A one.")
    talk.end("a")
    talk.text(" B two.", "b")
    assert [hint.n for hint in hints(talk.outputs) if isinstance(hint, m.Tentative)] == [1, 3]


def test_a_hint_that_does_not_hold_is_taken_back() -> None:
    talk = Talk()
    [hint] = hints(talk.text("It is in file.", "t"))
    assert isinstance(hint, m.Tentative)
    assert hints(talk.text("txt now", "t")) == [m.Revoke(turn="t", n=1)]
    assert spoken(talk.end("t")) == [("t", "It is in file.txt now")]


@pytest.mark.parametrize("message", ["text", "flush", "end"])
def test_what_names_a_finished_turn_is_dropped(message: str) -> None:
    talk = Talk()
    talk.text("Hi.", "t")
    talk.end("t")
    late = {
        "text": lambda: talk.text("More.", "t"),
        "flush": lambda: talk.flush("t"),
        "end": lambda: talk.end("t"),
    }
    assert late[message]() == [Skipped("late")]


def test_what_names_a_turn_that_has_ended_and_waits_is_dropped() -> None:
    talk = Talk()
    talk.text("A", "a")
    talk.text("B", "b")
    talk.end("b")
    assert talk.text(" more", "b") == [Skipped("late")]
    assert spoken(talk.end("a")) == [("a", "A"), ("b", "B")]


def test_the_last_256_names_are_kept() -> None:
    talk = Talk()
    for number in range(257):
        talk.end(f"t{number}")
    assert skipped(talk.text("Late.", "t1")) == ["late"]
    assert skipped(talk.text("A new one.", "t0")) == []


# -- without a name -------------------------------------------------------------------------------


def test_unnamed_text_belongs_to_the_turn_that_is_open() -> None:
    talk = Talk()
    talk.text("One ", "t")
    talk.text("two ")
    talk.end()
    assert spoken(talk.outputs) == [("t", "One two")]


def test_unnamed_text_starts_a_turn_named_by_its_entry() -> None:
    talk = Talk()
    talk.text("One ")
    talk.text("two")
    talk.end()
    talk.text("Three")
    talk.end()
    assert spoken(talk.outputs) == [("1-0", "One two"), ("4-0", "Three")]


def test_unnamed_text_belongs_to_the_youngest_open_turn() -> None:
    talk = Talk()
    talk.text("A", "a")
    talk.text("B", "b")
    talk.end("b")
    talk.text(" more of a")
    talk.end()
    assert spoken(talk.outputs) == [("a", "A more of a"), ("b", "B")]


def test_unnamed_flush_and_end_with_none_open_do_nothing() -> None:
    talk = Talk()
    assert talk.flush() == [Skipped("nothing_open")]
    assert talk.end() == [Skipped("nothing_open")]


# -- open -----------------------------------------------------------------------------------------


def test_open_tells_the_gateway_before_there_is_text() -> None:
    talk = Talk()
    out = talk.open(voice="bm_george", speed=1.25, sample_rate=16_000, pace="none", lang="en-gb")
    settings = m.SessionOpen(
        voice="bm_george", speed=1.25, lang="en-gb", sample_rate=16_000, pace="none"
    )
    assert out == [ForGateway(settings)]
    assert to_gateway(talk.text("Hi", "t")) == []


def test_open_updates_what_it_names_for_the_turns_that_follow() -> None:
    talk = Talk()
    talk.open(voice="bm_george")
    talk.text("A one.", "a")
    assert to_gateway(talk.open(speed=2.0)) == [
        m.SessionOpen(voice="bm_george", speed=2.0, lang="en", sample_rate=24_000, pace="realtime")
    ]
    talk.text(" A two.", "a")
    talk.end("a")
    talk.text("B", "b")
    talk.end("b")
    assert [(s.turn, s.voice, s.speed) for s in segments(talk.outputs)] == [
        ("a", "bm_george", 1.0),
        ("a", "bm_george", 1.0),
        ("b", "bm_george", 2.0),
    ]


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"speed": 0.49}, "speed is a number from 0.5 to 2.0"),
        ({"speed": 2.01}, "speed is a number from 0.5 to 2.0"),
        ({"sample_rate": 11_025}, "sample_rate is one of 8000, 16000, 22050, 24000, 44100, 48000"),
        ({"sample_rate": 0}, "sample_rate is one of"),
        ({"pace": "fast"}, "pace is one of realtime, none"),
        ({"voice": ""}, "voice is 1 to 128 printable"),
        ({"voice": "v" * 129}, "voice is 1 to 128 printable"),
        ({"lang": ""}, "lang is 1 to 128 printable"),
        ({"meta": {"lexicon": "SQL"}}, "meta.lexicon is a map of at most 200 words"),
        ({"meta": {"lexicon": {"SQL": 5}}}, "meta.lexicon is a map"),
        ({"meta": {"lexicon": {"SQL": ""}}}, "meta.lexicon is a map"),
        ({"meta": {"lexicon": {"SQL": "a\nb"}}}, "meta.lexicon is a map"),
        ({"meta": {"lexicon": {str(n): "x" for n in range(201)}}}, "meta.lexicon is a map"),
        ({"meta": {"lexicon": {str(n): "x" * 200 for n in range(41)}}}, "8000 characters in all"),
        *(({name: value}, f"{name} is ") for name, value in m.UNREADABLE.items()),
        ({"voice": "bm\n"}, "voice is 1 to 128 printable characters"),
        ({"meta": {"segmenter": "eager"}}, "meta.segmenter is a map of options"),
        ({"meta": {"segmenter": None}}, "meta.segmenter is a map of options"),
        ({"meta": {"segmenter": {"mode": "wild"}}}, "meta.segmenter.mode is one of safe, eager"),
        ({"meta": {"segmenter": {"mode": ["safe"]}}}, "meta.segmenter.mode is one of"),
        ({"meta": {"segmenter": {"skip_code": 1}}}, "skip_code is one of read, announce, skip"),
        ({"meta": {"segmenter": {"max_chars": -1}}}, "max_chars is a whole number from 0 to"),
        ({"meta": {"segmenter": {"max_chars": 1e3}}}, "max_chars is a whole number from 0 to"),
        ({"meta": {"segmenter": {"min_chars": True}}}, "min_chars is a whole number from 0 to"),
        ({"meta": {"segmenter": {"first_clause": "3"}}}, "first_clause is a whole number"),
        ({"meta": {"segmenter": {"min_chars": 2**63}}}, "min_chars is a whole number from 0 to"),
        ({"meta": {"segmenter": {"stall": -0.1}}}, "stall is a number of seconds from 0.05 to 60"),
        ({"meta": {"segmenter": {"stall": float("nan")}}}, "stall is a number of seconds"),
        ({"meta": {"segmenter": {"max_wait": float("inf")}}}, "max_wait is a number of seconds"),
        ({"meta": {"segmenter": {"max_wait": 1e-9}}}, "max_wait is a number of seconds"),
        ({"meta": {"segmenter": {"max_wait": False}}}, "max_wait is a number of seconds"),
        (
            {"meta": {"segmenter": {"merge_first": 1}}},
            "meta.segmenter.merge_first is true or false",
        ),
        (
            {"meta": {"segmenter": {"lang": "en"}}},
            "meta.segmenter takes mode, skip_code, min_chars",
        ),
        ({"meta": {"segmenter": {b"mode": "safe"}}}, "meta.segmenter takes mode"),
        ({"meta": {"segmenter": {"stall": 0.1, "colour": "red"}}}, "meta.segmenter takes mode"),
    ],
)
def test_a_bad_setting_is_refused_with_what_is_allowed(
    settings: dict[str, Any], allowed: str
) -> None:
    talk = Talk()
    talk.open()
    talk.outputs.clear()
    before = talk.session.snapshot()
    [error] = errors(talk.open(**{"voice": "bm_george", **settings}))
    assert (error.code, error.retryable, error.turn) == ("bad_setting", False, None)
    assert error.message.startswith(allowed) or allowed in error.message
    assert to_gateway(talk.outputs) == []
    assert talk.session.snapshot() == before


@pytest.mark.parametrize("meta", [None, {}, {"caller": "Ann"}, {"segmenter": {}}])
def test_meta_without_options_changes_nothing(meta: dict[str, Any] | None) -> None:
    talk = Talk()
    talk.open(meta=meta)
    assert talk.session.snapshot()["options"] == asdict(talk.defaults.options)


def test_the_segmenters_options_hold_for_the_turns_that_follow() -> None:
    talk = Talk()
    talk.text("It is. ", "a")
    talk.open(meta={"segmenter": {"min_chars": 40, "merge_first": True}})
    talk.text("So it is. ", "a")
    talk.end("a")
    talk.text("It is. So it is. ", "b")
    talk.end("b")
    assert spoken(talk.outputs) == [("a", "It is."), ("a", "So it is."), ("b", "It is. So it is.")]


option_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers() | st.integers(0, 60),
    st.floats() | st.floats(0, 60),
    st.text(max_size=5),
    st.sampled_from(["safe", "eager", "skip"]),
)


@given(
    st.dictionaries(
        st.sampled_from([*asdict(SegmenterOptions()), "colour"]), option_values, max_size=4
    )
)
def test_any_options_are_taken_or_refused_and_text_is_spoken(options: dict[str, Any]) -> None:
    talk = Talk()
    taken = not errors(talk.open(meta={"segmenter": options}))
    expected = {**asdict(SegmenterOptions(lang="en", stall=0.0)), **(options if taken else {})}
    assert talk.session.snapshot()["options"] == expected
    if not taken:
        talk.open()
    talk.text("It is said. ", "t")
    talk.wait(1)
    talk.end("t")
    assert " ".join(text for _turn, text in spoken(talk.outputs)).split()


@pytest.mark.parametrize(
    ("lang", "code"),
    [
        ("en-us", "en"),
        ("EN_GB", "en"),
        ("auto", "auto"),
        ("tlh", "und"),
        ("nb", "sv"),
        ("-", "und"),
        ("en", "en"),
    ],
)
def test_the_segmenter_gets_a_language_it_knows(lang: str, code: str) -> None:
    assert segmenter_lang(lang) == code


# -- voice, speed and language of a piece ---------------------------------------------------------


def test_a_piece_may_have_its_own_voice_and_what_came_before_keeps_its_own() -> None:
    talk = Talk()
    talk.text("Old. And", "t", voice="a")
    talk.text(" new", "t", voice="b", speed=1.5, lang="en-gb")
    talk.text(" more", "t")
    talk.end("t")
    assert [(s.text, s.voice, s.speed, s.lang) for s in segments(talk.outputs)] == [
        ("Old.", "a", 1.0, "en"),
        ("And", "a", 1.0, "en"),
        ("new more", "b", 1.5, "en-gb"),
    ]


def test_the_same_voice_at_every_token_cuts_nothing() -> None:
    talk = Talk()
    for token in ("It", " is", " done"):
        talk.text(token, "t", voice="b", speed=1.5)
    talk.end("t")
    assert spoken(talk.outputs) == [("t", "It is done")]


def test_a_turn_is_cut_in_the_language_of_its_first_text() -> None:
    talk = Talk()
    talk.text("Hallo", "a", lang="de-at")
    assert talk.session.snapshot()["turns"][0]["options"]["lang"] == segmenter_lang("de-at")


@pytest.mark.parametrize(
    ("setting", "allowed"),
    [
        ({"speed": 0.0}, "speed is a number from"),
        ({"speed": 9.0}, "speed is a number from"),
        ({"voice": ""}, "voice is 1 to 128"),
        ({"lang": "x" * 200}, "lang is 1 to 128"),
        ({"voice": "af\0"}, "voice is 1 to 128 printable characters"),
        ({"voice": "af\udcff"}, "voice is 1 to 128 printable characters"),
        ({"speed": 9.0, "lang": ""}, "speed is a number from 0.5 to 2.0; lang is 1 to 128"),
        *(({name: m.UNREADABLE[name]}, f"{name} is ") for name in ("voice", "speed", "lang")),
    ],
)
def test_text_with_a_bad_setting_is_spoken_without_it_and_that_is_said_once(
    setting: dict[str, Any], allowed: str
) -> None:
    talk = Talk()
    for token in ("It", " is", " done"):
        talk.text(token, "t", **setting)
    talk.succeed()
    talk.text(".", "t", **setting)
    talk.end("t")
    [segment] = segments(talk.outputs)
    assert (segment.text, segment.voice, segment.speed) == ("It is done.", "af_heart", 1.0)
    [error] = errors(talk.outputs)
    assert (error.code, error.turn) == ("bad_setting", "t")
    assert error.message.startswith(allowed)


def test_what_is_right_beside_a_bad_setting_holds() -> None:
    talk = Talk()
    talk.text("Das ist gut.", "t", speed=9.0, voice="bm_george", lang="de")
    talk.text("Weiter.", "t", speed=1.5, voice="", lang="")
    talk.end("t")
    made = [(each.voice, each.speed, each.lang) for each in segments(talk.outputs)]
    assert made == [("bm_george", 1.0, "de"), ("bm_george", 1.5, "de")]
    assert [error.code for error in errors(talk.outputs)] == ["bad_setting"] * 2


def test_a_turn_is_not_cut_in_a_language_that_is_none() -> None:
    talk = Talk()
    talk.text("Hello", "a", lang="x" * 200)
    assert talk.session.snapshot()["turns"][0]["options"]["lang"] == "en"


def test_a_bad_setting_of_text_that_waits_for_a_gap_is_told_when_it_is_spoken() -> None:
    talk = Talk()
    talk.text(" it is.", "t", seq=1, speed=m.UNREADABLE["speed"])
    talk.succeed()
    talk.text("Here", "t", seq=0)
    talk.end("t", seq=2)
    assert spoken(talk.outputs) == [("t", "Here it is.")]
    assert [error.code for error in errors(talk.outputs)] == ["gap", "bad_setting"]


# -- close ----------------------------------------------------------------------------------------


def test_close_ends_the_open_turns_first() -> None:
    talk = Talk()
    talk.text("A", "a")
    talk.text("B", "b")
    talk.end("b")
    talk.text("C", "c")
    out = talk.close()
    assert spoken(out) == [("a", "A"), ("b", "B"), ("c", "C")]
    assert ends(out) == [("a", 1, "complete"), ("b", 1, "complete"), ("c", 1, "complete")]
    assert out[-1] == ForGateway(m.SessionClose())
    assert not talk.session.busy
    assert talk.session.timer() is None


def test_close_comes_once() -> None:
    talk = Talk()
    assert not talk.session.opened
    assert talk.close() == [Skipped("nothing_open")]
    talk.open()
    assert talk.close() == [ForGateway(m.SessionClose())]
    assert talk.close() == [Skipped("nothing_open")]


def test_late_text_does_not_open_a_closed_session_and_new_text_does() -> None:
    talk = Talk()
    talk.text("Hi", "t")
    talk.close()
    assert talk.text(" there", "t") == [Skipped("late")]
    assert isinstance(to_gateway(talk.text("Hi again", "u"))[0], m.SessionOpen)
