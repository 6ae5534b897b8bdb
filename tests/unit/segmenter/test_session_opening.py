"""A session whose open was refused is not opened by its text, in another manner than was meant."""

from __future__ import annotations

from firstword import messages as m
from services.segmenter.session import Session
from services.segmenter.turns import Skipped
from tests.unit.segmenter.talk import Talk, errors, spoken, to_gateway


def refused() -> Talk:
    talk = Talk()
    [error] = errors(talk.open(speed=9.0))
    assert error.code == "bad_setting"
    return talk


def test_its_text_is_refused_with_the_same_reason_once_a_turn() -> None:
    talk = refused()
    [error] = errors(talk.text("Hello there.", "a", seq=0))
    assert (error.code, error.turn, error.retryable) == ("not_opened", "a", False)
    assert "speed is" in error.message
    assert talk.text(" More.", "a", seq=1) == [Skipped("not_opened")]
    assert talk.end("a", seq=2) == [Skipped("not_opened")]
    assert [error.turn for error in errors(talk.text("Another turn.", "b"))] == ["b"]
    assert to_gateway(talk.outputs) == []


def test_unnamed_text_is_told_once() -> None:
    talk = refused()
    assert [error.turn for error in errors(talk.text("Hello"))] == [None]
    assert talk.text(" there.") == [Skipped("not_opened")]
    assert talk.flush() == [Skipped("not_opened")]


def test_whoever_goes_on_with_it_knows() -> None:
    talk = refused()
    saved = talk.session.snapshot()
    talk.session = Session.restore("demo", talk.defaults, saved, talk.now)
    assert [error.code for error in errors(talk.text("Hello.", "a"))] == ["not_opened"]


def test_an_open_that_is_right_opens_it() -> None:
    talk = refused()
    talk.text("Hello", "a")
    talk.open(speed=1.5)
    talk.text("At last.", "b")
    talk.end("b")
    assert spoken(talk.outputs) == [("b", "At last.")]
    assert talk.text("Too late.", "a") == [Skipped("late")]


def test_a_close_ends_the_matter() -> None:
    talk = refused()
    talk.close()
    talk.text("By default.", "a")
    talk.end("a")
    assert spoken(talk.outputs) == [("a", "By default.")]


def test_a_session_that_is_there_goes_on_as_it_was() -> None:
    talk = Talk()
    talk.open(speed=1.5)
    assert [error.code for error in errors(talk.open(speed=9.0))] == ["bad_setting"]
    talk.text("As before.", "a")
    talk.end("a")
    assert spoken(talk.outputs) == [("a", "As before.")]


def test_pronunciations_of_an_open_go_to_the_gateway_and_stay_until_others_come() -> None:
    talk = Talk()
    words = {"SQL": "sequel", "GIF": "/ʤˈɪf/"}
    talk.open(meta={"lexicon": words})
    talk.open(speed=1.5)
    saved = talk.session.snapshot()
    talk.session = Session.restore("demo", talk.defaults, saved, talk.now)
    talk.open(meta={"caller": "Ann"})
    talk.open(meta={"lexicon": {}})
    opened = [output for output in to_gateway(talk.outputs) if isinstance(output, m.SessionOpen)]
    assert [open_.lexicon for open_ in opened] == [words, words, words, None]


def voices(talk: Talk) -> list[tuple[str, str]]:
    """Of every segment: its voice and its language."""
    out = to_gateway(talk.outputs)
    return [(each.voice, each.lang) for each in out if isinstance(each, m.Segment)]


def test_a_language_without_a_voice_leaves_the_choice_to_who_speaks() -> None:
    talk = Talk()
    talk.open(lang="es")
    talk.text("Hola.", "a")
    talk.end("a")
    talk.open(lang="en-us")
    talk.text("Hello. ", "b")
    talk.text("Bonjour. ", "b", lang="fr")
    talk.text("Hello.", "b", lang="en")
    talk.end("b")
    spoken_by = [("", "es"), ("af_heart", "en-us"), ("", "fr"), ("af_heart", "en")]
    assert voices(talk) == spoken_by


def test_a_voice_that_is_named_stays_whatever_the_language() -> None:
    talk = Talk()
    talk.open(voice="bm_george")
    talk.text("Hola. ", "a", lang="es")
    talk.text("Sí.", "a", voice="ef_dora")
    talk.end("a")
    assert voices(talk) == [("bm_george", "es"), ("ef_dora", "es")]


def test_a_default_voice_that_is_not_the_models_is_kept() -> None:
    talk = Talk(voice="alloy")
    talk.text("Hola.", "a", lang="es")
    talk.end("a")
    assert voices(talk) == [("alloy", "es")]
