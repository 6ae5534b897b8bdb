"""What is said for what is written: the table of cases, and what holds for any text at all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.voice_languages import LANGUAGES
from services.inference.normalise import Spoken, clean, normalise
from services.inference.normalise.chinese import cardinal as chinese
from services.inference.normalise.hindi import cardinal as hindi
from services.inference.normalise.language import language
from services.inference.word_times import joined

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "cases" / "normalisation.jsonl")
    .read_text("utf-8")
    .splitlines()
]
MIXED = st.text(
    st.sampled_from(list("aAbI5012379 .,:;-–/$€%°'\"()[]@#&+x×hkmMB½²_~<>=é你あ।ñ\n\t")),
    max_size=40,
)
PLAIN = st.sampled_from("house tree river stone window garden bottle orange winter paper".split())
BETWEEN = st.sampled_from(
    [
        *(
            " ",
            ", ",
            ". ",
            " 5 ",
            " $5 ",
            " & ",
            " <b>",
            "</b> ",
            " **",
            "** ",
            " `",
            "` ",
            " #",
            " @",
        ),
        *("/", "_", " ~", " > ", " < ", " = ", " 10% ", " (", ") ", " [", "](x) ", " 3/4 ", " 😀 "),
        *("\n# ", " &amp; ", " - ", " -- ", " → ", " 2026-11-29 ", " II ", " a@b.co ", " ² ", " $"),
    ]
)
TAGS = st.sampled_from(list(LANGUAGES.values()))


def said(text: str, lang: str = "en-us") -> str:
    return normalise(clean(text), lang).text


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case['lang']}: {case['text'][:50]}" for case in CASES]
)
def test_what_is_said(case: dict[str, str]) -> None:
    assert said(case["text"], case["lang"]) == case["said"]


def test_there_are_enough_cases_and_each_is_another_one() -> None:
    assert len({(case["lang"], case["text"]) for case in CASES}) == len(CASES) > 1_200
    assert {case["lang"] for case in CASES} == set(LANGUAGES.values())


@given(st.text() | MIXED, TAGS)
def test_any_text_is_said_and_every_part_stands_for_its_own(text: str, lang: str) -> None:
    spoken = normalise(clean(text), lang)
    assert "".join(spoken.text[s.start : s.end] for s in spoken.spans) == spoken.text
    place = 0
    for span in spoken.spans:
        assert place <= span.source <= span.source_end <= len(text)
        if span.exact:
            assert spoken.text[span.start : span.end] == clean(text)[span.source : span.source_end]
        place = span.source_end


@given(MIXED, TAGS)
def test_no_digit_is_left(text: str, lang: str) -> None:
    assert not any(character.isdecimal() for character in said(text, lang))


@given(st.text() | MIXED, TAGS)
def test_what_has_a_letter_or_digit_still_has_one(text: str, lang: str) -> None:
    cleaned = clean(text)
    plain = [c for c in cleaned if c.isascii() and c.isalnum()]
    if plain:
        assert any(character.isalnum() for character in normalise(cleaned, lang).text)


@given(st.lists(st.tuples(PLAIN, BETWEEN), min_size=1, max_size=12))
def test_a_word_between_signs_is_never_dropped(pairs: list[tuple[str, str]]) -> None:
    text = "".join(word + between for word, between in pairs)
    heard = re.findall("[a-z]+", said(text))
    places = iter(heard)
    assert all(word in places for word, _ in pairs), heard


@given(st.lists(PLAIN, min_size=1, max_size=12), TAGS)
def test_words_alone_are_said_as_they_are(words: list[str], lang: str) -> None:
    text = " ".join(words)
    assert said(text, lang) == said(said(text, lang), lang) == text


@given(st.lists(st.sampled_from(CASES), min_size=1, max_size=3))
def test_each_word_said_stands_for_a_part_of_the_text_in_order(cases: list[dict[str, str]]) -> None:
    """So that a player can mark words: what one thing is said as never reaches into another."""
    lang = cases[0]["lang"]
    text = clean(" ".join(case["text"] for case in cases if case["lang"] == lang))
    spoken = normalise(text, lang)
    shown = [spoken.source(*word.span()) for word in re.finditer(r"\w+", spoken.text)]
    assert all(0 <= start < end <= len(text) for start, end in shown)
    joined_words = joined((start, end, 0.0, 0.0) for start, end in shown)
    ends = [0, *(end for _, end, _, _ in joined_words)]
    assert all(end <= word[0] for end, word in zip(ends, joined_words, strict=False))


FLOODS = (
    *("1", "1-", "1.", "1,", "a.", "A", "a@", "a-", "/a", "$", "$1", "ab ", "#", "1:", "(", "[a]("),
    *(
        "x1",
        "é",
        "e\u0301",
        "-",
        "www.",
        "http://a",
        "а",
        "_a",
        "½",
        "1h",
        "1x",
        "+1 ",
        "0 1 ",
        "中",
        *(
            "<a ",
            "<a>",
            "&#",
            "&a;",
            "[a][",
            "~~",
            "\\",
            "}{",
            "^",
            "⁻",
            "①",
            "XI ",
            "Mon/",
            "Jan-",
        ),
        *(
            "a\u200d",
            "аa",
            "नी",
            "1e",
            "5x",
            "1/a",
            "1°1'",
            "call 1 ",
            "0a-",
            "::",
            "f:",
            "#中",
            "1，",
        ),
        *("5C", "5A ", "*", ":) ", "<3", "Na", "1(a)", "C:\\a", "a\\", "1234 ", "1'000", "1 1/2 "),
        *(
            "Mon 1/2 ",
            "to 1/2 ",
            "John 1:",
            "AB12 ",
            "1.a4",
            "1x/",
            "1-km",
            "press * ",
            "I ",
            "1 a/",
            "(!a ",
            "a::",
            "10s-",
            "0s ",
            "order 1 ",
            "~/",
            "./a",
            "1/2th",
            "call 123 or ",
        ),
    ),
)


@pytest.mark.parametrize("part", FLOODS)
def test_a_flood_costs_no_more_than_its_length(part: str) -> None:
    """With a quadratic pattern among the rules this test does not end within its time."""
    flood = (part * 20_000)[:20_000]
    assert said(f"{flood} and the end").endswith(" end")
    assert said(f"{flood[:5_000]} y el fin", "es").endswith(" fin")


def test_a_word_on_the_screen_is_found_from_each_word_said() -> None:
    text = "Pay $5 to Dr. Lee at 10:30 a.m., OK?"
    spoken = normalise(text, "en-us")
    assert spoken.text == "Pay five dollars to Doctor Lee at ten thirty A M, okay?"

    def shown(word: str) -> str:
        start = spoken.text.index(word)
        first, past = spoken.source(start, start + len(word))
        return text[first:past]

    assert [shown(word) for word in ("Pay", "five", "dollars", "to", "Doctor", "Lee")] == [
        "Pay", "$5", "$5", "to", "Dr.", "Lee",
    ]  # fmt: skip
    assert shown("thirty A") == "10:30 a.m."
    assert shown("okay") == "OK"
    assert shown("dollars to Doctor") == "$5 to Dr."
    assert spoken.is_exact(0) and not spoken.is_exact(4)


def test_what_is_fixed_is_said_so_and_not_looked_into() -> None:
    text = "Ask SQL5 about 10 kg and 7."
    spoken = normalise(text, "en-us", [(4, 8, "sequel five"), (15, 20, None)])
    assert spoken.text == "Ask sequel five about 10 kg and seven."
    assert spoken.source(4, 10) == (4, 8)
    assert Spoken.plain("a b").source(2, 3) == (2, 3)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *[(0, "零"), (7, "七"), (10, "十"), (15, "十五"), (110, "一百一十"), (105, "一百零五")],
        *[(1_005, "一千零五"), (20_000, "两万"), (100_500, "十万零五百"), (10**12, "一万亿")],
    ],
)
def test_numbers_in_chinese(value: int, name: str) -> None:
    assert chinese(value) == name


def test_numbers_in_hindi_are_all_different() -> None:
    assert len({hindi(value) for value in range(2000)}) == 2000
    assert hindi(10_00_001) == "दस लाख एक"


def test_a_number_nobody_could_follow_is_read_digit_by_digit() -> None:
    words = language("fr-fr")
    assert words.ordinal("1" * 16) == words.digits("1" * 16)
    assert words.cardinal("007") == "zéro zéro sept"


def test_a_language_that_the_model_has_not() -> None:
    with pytest.raises(KeyError):
        normalise("Guten Tag", "de")
