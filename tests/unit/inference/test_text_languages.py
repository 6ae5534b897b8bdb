"""From text to phonemes in all languages of the model, with the real libraries and no weights."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firstword.languages import spoken, why_silent
from services.inference.normalise import clean, normalise
from services.inference.pieces import LIMIT, cut
from services.inference.text import Pronouncer
from services.inference.vocabulary import QUOTES, symbols
from services.inference.word_times import joined
from tests.doubles.engines import pronouncer
from tests.unit.inference.test_normalise import CASES

SENTENCES = {
    "en-us": "Dr. Lee paid $5 for 2 GPUs.",
    "en-gb": "Dr. Lee paid £5 for 2 schedules.",
    "es": "La Dra. Ruiz pagó 21 € ayer.",
    "fr-fr": "Il n'y a que 2 % d'eau, n'est-ce pas ?",
    "hi": "डॉ. शर्मा ने ₹500 दिए।",
    "it": "Gli amici hanno 21 anni.",
    "ja": "価格は500円です。",
    "pt-br": "Custa R$ 5 às 14h.",
    "zh": "今天20°C，我用GPU。",
}
SHOWN = {
    "en-us": ["Dr.", "Lee", "paid", "$5", "for", "2", "GPUs"],
    "en-gb": ["Dr.", "Lee", "paid", "£5", "for", "2", "schedules"],
    "es": ["La", "Dra.", "Ruiz", "pagó", "21 €", "ayer"],
    "fr-fr": ["Il", "n'y", "a", "que", "2 %", "d'eau", "n'est-ce", "pas"],
    "hi": ["डॉ.", "शर्मा", "ने", "₹500", "दिए"],
    "it": ["Gli", "amici", "hanno", "21", "anni"],
    "ja": ["価格", "は", "500円", "です"],
    "pt-br": ["Custa", "R$ 5", "às", "14h"],
    "zh": ["今天", "20°C", "我用", "GPU"],
}
LANGUAGES = st.sampled_from(spoken())


def phonemes(text: str, lang: str, mine: Pronouncer | None = None) -> str:
    tokens = (mine or pronouncer()).pronounce(clean(text), lang)
    return "".join(token.phonemes + " " * token.space for token in tokens)


@pytest.fixture(params=sorted(SENTENCES))
def lang(request: pytest.FixtureRequest) -> str:
    missing = why_silent(request.param)
    if missing is not None:
        pytest.skip(missing)
    return str(request.param)


def test_every_word_is_heard_and_stands_where_it_is_written(lang: str) -> None:
    text = SENTENCES[lang]
    tokens = [t for t in pronouncer().pronounce(clean(text), lang) if t.is_word]
    assert all(token.phonemes for token in tokens)
    shown = joined((t.start, t.end, 0.0, 0.0) for t in tokens)
    assert [text[start:end] for start, end, _, _ in shown] == SHOWN[lang]


def test_only_symbols_that_the_model_knows_come_out(lang: str) -> None:
    text = f"{SENTENCES[lang]} «Ж» (x²) [你] 5 < 6 & co… “q” – ok?"
    said = phonemes(text, lang)
    assert set(said) <= set(symbols()) - QUOTES
    assert said.count("(") == said.count(")")


@pytest.mark.parametrize(
    ("lang", "text", "wanted"),
    [
        ("es", "Hola, ¿qué tal?", "ˈola, kˈe tˈal?"),
        ("it", "Ciao.", "ʧˈao."),
        ("fr-fr", "Bonjour !", "bɔ̃ʒˈuʁ !"),
        ("pt-br", "Olá.", "olˈa."),
        ("ja", "こんにちは、世界。", "koɲɲiʨiβa, sekai."),
        ("zh", "你好。", "ni↓xau↓ ."),
        ("zh", "OK，GPU", "ˌOkˈA , ʤˈi pˈi jˈu"),
        ("ja", "AIです", "eː ai desɨ"),
        # A word in kana that no dictionary has, and forms of characters that it has not.
        ("ja", "イチニサンヨン", "iʨiɲisaɴjoɴ"),
        ("ja", "髙橋さんと﨑山", "takahaɕi saɴ to sakʲijama"),
    ],
)
def test_what_it_sounds_like(lang: str, text: str, wanted: str) -> None:
    missing = why_silent(lang)
    if missing is not None:
        pytest.skip(missing)
    assert phonemes(text, lang).strip() == wanted


def test_whatever_is_written_is_heard_and_marked_in_order(lang: str) -> None:
    """Of each case of the table every word has a sound, and a place behind the one before it."""
    for text in (clean(case["text"]) for case in CASES if case["lang"] == lang):
        words = [token for token in pronouncer().pronounce(text, lang) if token.is_word]
        assert all(word.phonemes for word in words), text
        ends = 0
        for start, end, _, _ in joined((word.start, word.end, 0.0, 0.0) for word in words):
            assert ends <= start < end <= len(text), text
            ends = end


def test_letters_are_said_by_their_names_and_the_sentence_still_ends() -> None:
    assert phonemes("Plan B. Go.", "en-us") == phonemes("Plan bee. Go.", "en-us").replace(
        "bˈi.", "bˈi ."
    )
    assert phonemes("A US team", "en-us").startswith("ɐ jˈu ˈɛs")


@settings(deadline=None)
@given(st.text(max_size=60), LANGUAGES)
@example("Well,'tis so;'no',he said: 0|'0", "en-us")
def test_any_text_is_pronounced_and_fits_the_model(text: str, lang: str) -> None:
    tokens = pronouncer().pronounce(clean(text), lang)
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)
    assert all(len(piece.phonemes) <= LIMIT + 1 for piece in cut(tokens))


@pytest.mark.parametrize("part", ["7", "ab-", "a.b.", "nospaces", "x/", "!?", "((", "word ", "é"])
def test_a_flood_is_pronounced_in_time(part: str, lang: str) -> None:
    tokens = pronouncer().pronounce(clean((part * 1000)[:1000]), lang)
    assert all(len(piece.phonemes) <= LIMIT + 1 for piece in cut(tokens))


@pytest.mark.parametrize("unknown", ["ꙮ", "𓀀", "ሰላም", "𝄞", "\ufffd", "\ud800", "ⴰⵣⵓⵍ", "ཀ"])
def test_what_nobody_can_read_does_not_silence_the_rest(unknown: str, lang: str) -> None:
    words = normalise(clean(SENTENCES[lang]), lang).text
    assert phonemes(words, lang).split()[0] in phonemes(f"{words} {unknown} {words}", lang)
    assert len(phonemes(f"{unknown} {words}", lang)) >= len(phonemes(words, lang).strip())


def test_thirty_two_threads_with_texts_of_their_own_hear_what_one_hears() -> None:
    """No text of one caller in another's, in any language: nothing here is remembered before."""
    texts = [
        (f"{SENTENCES[lang]} {n} zanthic {n + 100}.", lang)
        for n, lang in zip(range(160), cycle(spoken()), strict=False)
    ]
    alone = [phonemes(text, lang, forgetful()) for text, lang in texts]
    with ThreadPoolExecutor(32) as pool:
        mine = forgetful()
        together = list(pool.map(lambda pair: phonemes(pair[0], pair[1], mine), texts * 2))
    assert together == alone * 2


def forgetful() -> Pronouncer:
    """One that pronounces everything anew."""
    other = pronouncer().with_lexicon(None)
    other._remembered = other._pronounce  # type: ignore[assignment]
    return other


def test_what_was_pronounced_lately_is_remembered() -> None:
    first = pronouncer().pronounce("Remember this.", "en-us")
    again = pronouncer().pronounce("Remember this.", "en-us")
    assert all(a is b for a, b in zip(first, again, strict=True))


def test_a164_the_chinese_dictionary_is_there_before_the_first_sentence_and_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jieba = pytest.importorskip("jieba")
    monkeypatch.setattr(jieba.dt, "initialized", False)
    monkeypatch.setattr(jieba.dt, "tmp_dir", str(tmp_path))
    Pronouncer().pronounce("Ready.", "zh")
    assert jieba.dt.initialized
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "lang", "phonemes"),
    [
        ("É.", "pt-br", ["ˈɛ"]),
        ("Sim, é!", "pt-br", ["sˈiŋ", "ˈɛ"]),
        ("É isso.", "pt-br", ["ɛ", "ˈisʊ"]),
        ("Shh!", "en-us", ["ʃ"]),
        ("Ssshh, brr.", "en-us", ["ʃ", "bˈɜɹ"]),
        ("Grr, pff.", "en-gb", ["ɡˈɜː", "pf"]),
        ("Hmph.", "en-us", ["hmf"]),
    ],
)
def test_a132_a_word_alone_is_no_name_of_letters(text: str, lang: str, phonemes: list[str]) -> None:
    assert [t.phonemes for t in pronouncer().pronounce(text, lang) if t.is_word] == phonemes
