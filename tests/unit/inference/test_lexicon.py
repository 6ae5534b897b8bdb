"""Pronunciations that users give: how they are read, and where they are found in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.lexicon import MAX_CHARS, MAX_ENTRIES, LexiconError, fixed, read
from services.inference.text import Pronouncer
from tests.doubles.engines import pronouncer

WORDS = read(
    {
        "SQL": "sequel",
        "gif": "/dʒˈɪf/",
        "New Relic": "new rellick",
        "new": "noo",
        "Jorge": {"en": "hor hay", "es": "/xˈɔɾxe/"},
        "Łódź": "woodge",
    }
)


def found(text: str, lang: str = "en-us") -> list[tuple[str, str | None]]:
    return [(text[e.start : e.end], e.respelled or e.phonemes) for e in fixed(text, lang, WORDS)]


def phonemes(text: str, lang: str = "en-us", mine: Pronouncer | None = None) -> list[str]:
    tokens = (mine or pronouncer()).pronounce(text, lang, WORDS)
    return [token.phonemes for token in tokens if token.is_word]


def test_words_are_found_whole_the_longest_first() -> None:
    assert found("New Relic is new, and SQLite is no SQL.") == [
        ("New Relic", "new rellick"),
        ("new", "noo"),
        ("SQL", "sequel"),
    ]


def test_lower_case_is_for_any_spelling_and_capitals_for_just_that_one() -> None:
    assert found("Gif, GIF and gif; sql, SQL") == [
        ("Gif", "ʤˈɪf"),
        ("GIF", "ʤˈɪf"),
        ("gif", "ʤˈɪf"),
        ("SQL", "sequel"),
    ]


def test_a_word_may_be_said_otherwise_in_each_language() -> None:
    assert found("Jorge") == found("Jorge", "en-gb") == [("Jorge", "hor hay")]
    assert found("Jorge", "es") == [("Jorge", "xˈɔɾxe")]
    assert found("Jorge", "fr-fr") == []


def test_the_last_lexicon_goes_first() -> None:
    session = read({"SQL": "S Q L"})
    assert [entry.respelled for entry in fixed("SQL", "en-us", WORDS, session)] == ["S Q L"]
    assert [entry.respelled for entry in fixed("SQL", "en-us", WORDS, None)] == ["sequel"]
    assert fixed("SQL", "en-us", None, read({})) == ()


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (["SQL"], "must be an object of words"),
        ({"SQL": 5}, "word 1: what is said must have 1 to 200 characters"),
        ({"a": "b", "SQL": ""}, "word 2: what is said"),
        ({"SQL": "x" * (MAX_CHARS + 1)}, "word 1: what is said"),
        ({"": "x"}, "word 1: the word must have 1 to 200 characters"),
        ({5: "x"}, "word 1: the word must have"),
        ({"...": "x"}, "word 1: a word must begin with a letter or a digit"),
        ({"SQL": "/s♥k/"}, "word 1: the model has no phoneme ♥"),
        ({"SQL": "/ "}, "word 1: phonemes stand between two slashes, and the last is missing"),
        ({"SQL": "/ʤˈɪf"}, "word 1: phonemes stand between two slashes, and the last is missing"),
        ({"SQL": "/"}, "word 1: phonemes stand between two slashes, and the last is missing"),
        ({"SQL": "ʤˈɪf/"}, "word 1: phonemes stand between two slashes, and the first is missing"),
        ({"SQL": "//"}, "word 1: between the slashes there is no phoneme"),
        ({"SQL": "/ /"}, "word 1: between the slashes there is no phoneme"),
        ({"SQL": "/a/b/"}, "word 1: the model has no phoneme /"),
        ({str(n): "x" for n in range(MAX_ENTRIES + 1)}, "has 2001 words; 2000 are read"),
    ],
)
def test_what_cannot_be_used_says_which_word_and_why(raw: object, told: str) -> None:
    with pytest.raises(LexiconError) as caught:
        read(raw)
    assert told in caught.value.message
    assert caught.value.code == "bad_lexicon"


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=5), st.text(max_size=40))
def test_any_lexicon_is_read_or_refused(raw: dict[str, str], text: str) -> None:
    try:
        lexicon = read(raw)
    except LexiconError:
        return
    entries = fixed(text, "en-us", lexicon)
    places = [place for entry in entries for place in (entry.start, entry.end)]
    assert places == sorted(places)
    assert all(0 <= place <= len(text) for place in places)


def test_the_lexicon_is_heard() -> None:
    assert phonemes("The gif.") == ["ðə", "ʤˈɪf"]
    assert phonemes("The gif's gif-like gifs.")[1:4] == ["ʤˈɪfs", "ʤˈɪf", *phonemes("like")]
    assert phonemes("Use SQL.")[1:] == phonemes("sequel")
    assert "ʤˈɪf" in phonemes("el gif nuevo", "es")
    assert phonemes("A non-gif thing.")[1:3] == [*phonemes("non"), "ʤˈɪf"]


def test_a_lexicon_of_the_service_is_under_that_of_the_session() -> None:
    mine = pronouncer().with_lexicon(read({"gif": "jiff", "sql": "squeal"}))
    assert phonemes("sql", mine=mine) == phonemes("squeal")
    assert phonemes("gif", mine=mine) == ["ʤˈɪf"]
    tokens = mine.pronounce("gif", "en-us")
    assert [token.phonemes for token in tokens] == phonemes("jiff")
