"""American pronunciations as British ones: misaki's own dictionaries say what is right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.g2p.british import from_american

AMERICAN = "AIOWYbdfhijklmnpstuvwzæðŋɑɔəɛɜɡɪɹɾʃʊʌʒʔʤʧˈˌθᵊᵻT"
BRITISH = frozenset("AIQWYabdfhijklmnpstuvwzðŋɑɒɔəɛɜɡɪɹʃʊʌʒʤʧˈˌːθᵊ")


@pytest.mark.parametrize(
    ("written", "american", "british"),
    [
        ("happy", "hˈæpi", "hˈapi"),
        ("food", "fˈud", "fˈuːd"),
        ("see", "sˈi", "sˈiː"),
        ("seeing", "sˈiɪŋ", "sˈiːɪŋ"),
        ("radio", "ɹˈAdiO", "ɹˈAdɪQ"),
        ("thought", "θˈɔt", "θˈɔːt"),
        ("four", "fˈɔɹ", "fˈɔː"),
        ("story", "stˈɔɹi", "stˈɔːɹi"),
        ("near", "nˌɪɹ", "nˌɪə"),
        ("square", "skwˈɛɹ", "skwˈɛː"),
        ("cure", "kjˈʊɹ", "kjˈʊə"),
        ("fury", "fjˈuɹi", "fjˈʊəɹi"),
        ("fire", "fˈIəɹ", "fˈIə"),
        ("father", "fˈɑðəɹ", "fˈɑːðə"),
        ("hot", "hˈɑt", "hˈɒt"),
        ("start", "stˈɑɹt", "stˈɑːt"),
        ("nurse", "nˈɜɹs", "nˈɜːs"),
        ("letter", "lˈɛɾəɹ", "lˈɛtə"),
        ("goat", "ɡˈOt", "ɡˈQt"),
        ("city", "sˈɪTi", "sˈɪti"),
        ("video", "vˈɪdiO", "vˈɪdɪQ"),
        ("idea", "Idˈiə", "Idˈɪə"),
        ("roses", "ɹˈOzᵻz", "ɹˈQzɪz"),
        ("button", "bˈʌʔn", "bˈʌtn"),
    ],
)
def test_the_vowels_are_those_of_the_dictionary(written: str, american: str, british: str) -> None:
    assert from_american(american, written) == british


@given(st.text(AMERICAN), st.text("aeio"))
def test_only_british_sounds_come_out_and_none_is_lost_but_r(american: str, written: str) -> None:
    british = from_american(american, written)
    assert set(british) <= BRITISH
    assert len(british) >= len(american) - american.count("ɹ")
