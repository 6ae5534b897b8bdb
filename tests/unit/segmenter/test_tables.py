"""The word lists."""

from __future__ import annotations

from importlib.resources import files

import pytest

from services.segmenter.tables import ENDS, MAY, NEVER, NUMBER, load

FILES = [file.name for file in (files("services.segmenter") / "data").iterdir()]
LANGUAGES = sorted(name[:-5] for name in FILES if name.endswith(".json") and name != "und.json")
WANTED = {"ar", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr"}


def test_every_language_of_the_product_has_a_table() -> None:
    assert set(LANGUAGES) >= WANTED | {"zh"}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_table_holds_what_the_rules_look_up(lang: str) -> None:
    table = load(lang)
    assert table.lang == lang
    for words in (table.all_starters, table.labels, table.calendar):
        assert all(word == word.lower() for word in words)
    for word, flags in table.classes.items():
        assert word.strip(" .") == word
        assert flags or word[0].isupper()  # "WG" is no "wg.", "Al" no "al."
        assert not (flags & NEVER and flags & (MAY | ENDS)), word


def test_a_region_does_not_matter_and_an_unknown_language_reads_like_a_relative() -> None:
    assert load("pt-BR").lang == "pt"
    assert load("EN_us").lang == "en"
    assert load("nb").lang == "sv"
    assert load("xx").lang == "und"
    assert load("xx").lookup("Dr") == NEVER
    assert load("xx").lookup("hon") == 0  # she, in Swedish; a title in English


def test_case_tells_words_from_abbreviations() -> None:
    english = load("en")
    assert english.lookup("No") == NUMBER | ENDS
    assert english.lookup("no") == 0
    assert english.lookup("DR") & NEVER
    assert english.lookup("EST") == 0
    assert load("fr").lookup("M") == NEVER
    assert load("fr").lookup("m") != NEVER


def test_latin_abbreviations_are_known_inside_other_scripts() -> None:
    assert load("ja").lookup("Dr") == NEVER
