"""Areas kokoro and text_norm: what is said, and what is not."""

from __future__ import annotations

import pytest

from firstword import messages as m
from services.inference.normalise import clean, normalise
from services.inference.synthesizer import Stop, Utterance
from services.segmenter.speakable import speakable
from tests.doubles.engines import kokoro, pronouncer
from tests.unit.segmenter.talk import Talk, errors, spoken, to_gateway


def said(text: str) -> str:
    """Of what a model wrote, the words that a voice is given."""
    return normalise(clean(speakable(text)), "en-us").text


def read(text: str) -> list[str]:
    """The words of a text of which phonemes come out."""
    tokens = pronouncer().pronounce(clean(text), "en-us")
    return [text[t.start : t.end] for t in tokens if t.is_word and t.phonemes]


# -- kokoro ---------------------------------------------------------------------------------------


def test_a127_what_stands_behind_a_line_feed_is_said_too() -> None:
    assert read("Hello.\nSecond.\r\nThird.\n\nFourth.") == ["Hello", "Second", "Third", "Fourth"]
    assert said("Hello.\nSecond.\nThird.") == "Hello. Second. Third."


def test_a131_a_turn_of_white_space_ends_without_sound_and_without_an_error() -> None:
    talk = Talk()
    talk.open()
    talk.text(" \n\t ", "t")
    talk.end("t")
    assert errors(talk.outputs) == []
    ends = [output for output in to_gateway(talk.outputs) if isinstance(output, m.TurnEnd)]
    assert [(end.turn, end.segments) for end in ends] == [("t", 0)]


@pytest.mark.model
@pytest.mark.parametrize("text", ["Hi", "No.", "OK!"])
def test_a132_a_word_alone_is_heard(text: str) -> None:
    prepared = kokoro().prepare(Utterance(text, "af_heart", "en-us"))
    audio = kokoro().synthesize(prepared, 0, Stop())
    assert len(audio.samples) > kokoro().sample_rate / 4
    assert abs(audio.samples).max() > 0.05


# -- text_norm ------------------------------------------------------------------------------------


def test_a170_of_a_link_the_label_is_said() -> None:
    text = "See [the manual](http://x.example/long/path?q=1) first."
    assert said(text) == normalise(text, "en-us").text == "See the manual first."


@pytest.mark.parametrize(
    "text",
    [
        "See [the manual](https://en.wikipedia.org/wiki/Manual_(book)) first.",
        "See [the manual](http://x.example/a_(b)_c 'A title') first.",
        "See ![the manual](http://x.example/a_(b).png) first.",
        "See [the manual][1] first.\n\n[1]: http://x.example/long 'A title'",
        "See [the manual][] first.\n\n[the manual]: <http://x.example/long>",
    ],
)
def test_a170_whatever_the_target_looks_like_it_is_not_said(text: str) -> None:
    assert said(text) == "See the manual first."


def test_a170_who_speaks_is_no_target() -> None:
    assert said("[Anna]: Hello there.").split() == ["Anna", ":", "Hello", "there."]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is 5 < 10 and <3 too.", "It is five less than ten and less than three too."),
        ("It is 5 < 10 and <3", "It is five less than ten and less than three"),
        ("If x<y then z>w.", "If x less than y then z greater than w."),
        ("Write <your name> there.", "Write your name there."),
        ("Write <b>your</b> <a href='x'>name</a><br/> there.", "Write your name there."),
        ("<|assistant|>Write <!-- nothing --> there.", "Write there."),
    ],
)
def test_a171_an_angle_bracket_hides_nothing_but_tags(text: str, words: str) -> None:
    assert said(text) == words


def test_a171_what_is_no_tag_holds_no_sentence_back() -> None:
    talk = Talk()
    talk.open()
    talk.text("If a <b so we stop. The next one", "t")
    assert [text for _, text in spoken(talk.outputs)] == ["If a <b so we stop."]


def test_a173_emoji_tables_and_drawn_boxes_are_not_said() -> None:
    text = "Done 👍🏽 ✅\n┌──┬──┐\n│ a│ b│\n└──┴──┘\n| x | y |\n|---|---|\n| 1 | 2 |\nBye 🎉."
    words = "".join(c if c.isalnum() else " " for c in said(text)).split()
    assert words == ["Done", "a", "b", "x", "y", "one", "two", "Bye"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Sure ¯\\_(ツ)_/¯ why not.", "Sure why not."),
        ("Bye (╯°□°)╯︵ ┻━┻", "Bye"),
        ("+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+", "a, b. one, two"),
        ("It is warm (20°C) here.", "It is warm (twenty degrees Celsius) here."),
    ],
)
def test_a173_faces_and_what_frames_a_table_are_not_said(text: str, words: str) -> None:
    assert said(text).strip() == words
