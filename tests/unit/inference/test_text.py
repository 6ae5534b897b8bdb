"""From text to phonemes, with the real libraries and no weights."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.normalise import clean
from services.inference.pieces import Token
from services.inference.synthesizer import SynthesisError
from services.inference.vocabulary import QUOTES, is_speakable, keep_known, symbols
from services.inference.word_times import joined
from tests.doubles.engines import pronouncer


def phonemes(text: str, lang: str = "en-us") -> str:
    tokens = pronouncer().pronounce(clean(text), lang)
    return "".join(token.phonemes + " " * token.space for token in tokens).strip()


def words(text: str) -> list[str]:
    tokens = pronouncer().pronounce(clean(text), "en-us")
    shown = joined((t.start, t.end, 0.0, 0.0) for t in tokens if t.is_word)
    return [text[start:end] for start, end, _, _ in shown]


@given(st.text())
def test_cleaning_keeps_the_places_of_characters(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned) == len(text)
    assert clean(cleaned) == cleaned
    for before, after in zip(text, cleaned, strict=True):
        same = unicodedata.normalize("NFKC", before)
        assert after in (before, " ", "'", same) or after.isdecimal() == before.isdecimal()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\x00b\tc\nd", "a b c d"),
        ("it wasn’t", "it wasn't"),
        ("hi 👍🏽!", "hi   !"),
        ("❤️ 5°C © ™", "   5°C © ™"),
        ("a\u200db \u200d\ue000", "a\u200db   "),
        ("one\u2028two", "one two"),
        ("𝐁𝐨𝐥𝐝 Ｗｉｄｅ ｶﾅ ٣५", "Bold Wide カナ 35"),
    ],
)
def test_what_no_voice_should_read_becomes_space(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize("text", ["", "...", "!?", "— …", "😀🎉", "\x00", "👍🏽"])
def test_nothing_to_say(text: str) -> None:
    assert not is_speakable(clean(text))


@pytest.mark.parametrize("text", ["a", "5", "é", "你好", "... x"])
def test_something_to_say(text: str) -> None:
    assert is_speakable(clean(text))


def test_the_vocabulary_is_the_models() -> None:
    table = symbols()
    assert len(table) == len(set(table.values())) == 114
    assert min(table.values()) > 0 and max(table.values()) < 178
    assert table["ə"] == 83 and table[" "] == 16
    assert keep_known("hə“lˈ»O❓”") == "həlˈO"
    assert QUOTES <= set(table)


def test_american_and_british() -> None:
    assert phonemes("Hello there.") == "həlˈO ðˈɛɹ."
    assert phonemes("hello, schedule", "en-gb") != phonemes("hello, schedule", "en-us")


def test_only_known_symbols_come_out_and_quotes_do_not() -> None:
    spoken = phonemes("He said: «bonjour» — “ça va?” ♪ Привет, 你好… [x] #1 & @me 50% ½")
    assert spoken
    assert set(spoken) <= set(symbols()) - QUOTES


def test_a_curly_apostrophe_is_heard() -> None:
    assert phonemes("No, it wasn’t.") == phonemes("No, it wasn't.")


def test_a_single_letter_a_is_the_letter_and_not_a_breath() -> None:
    assert phonemes("A") == phonemes("a") == "ˈA"
    assert phonemes("(a)!") == "(ˈA)!"
    assert phonemes("A dog").startswith("ɐ")


def test_words_are_where_they_stand_in_the_text() -> None:
    assert words("Hello, it costs $5.30 at Dr. Smith's!") == [
        "Hello", "it", "costs", "$5.30", "at", "Dr.", "Smith's",
    ]  # fmt: skip
    assert words("On 2024-05-01 the 5-year-old's A/B test") == [
        "On", "2024-05-01", "the", "5-year-old's", "A", "B", "test",
    ]  # fmt: skip
    assert words("don’t “stop” 😀 me now") == ["don’t", "stop", "me", "now"]
    assert words("the the the") == ["the", "the", "the"]


@given(st.text(max_size=60))
def test_any_text_is_pronounced_or_refused(text: str) -> None:
    try:
        tokens = pronouncer().pronounce(clean(text), "en-us")
    except SynthesisError as error:
        assert error.code == "pronunciation_failed"
        return
    assert all(isinstance(token, Token) and token.start <= token.end for token in tokens)
    assert all(token.end <= len(text) for token in tokens)


def test_what_the_libraries_raise_is_told_without_the_text() -> None:
    with pytest.raises(SynthesisError, match="pronunciation_failed") as caught:
        pronouncer().pronounce("secret words", "xx")
    assert "secret" not in str(caught.value)


def test_many_threads_pronounce_as_one() -> None:
    """espeak and misaki keep state: without the lock, about a fifth of this comes out wrong."""
    texts = [f"Quxatl {n} vexed brimblewort zanthic flurbs, the {n}th." for n in range(40)]
    alone = [phonemes(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(phonemes, texts * 4)) == alone * 4
