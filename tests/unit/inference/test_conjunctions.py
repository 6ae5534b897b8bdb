"""Where a clause begins without a mark, and where it only seems to."""

from __future__ import annotations

import pytest

from services.inference.conjunctions import clause_starts


def marked(text: str, lang: str = "en-us") -> str:
    """The text with a bar at each place."""
    starts = clause_starts(text, lang)
    return "".join("|" * (at in starts) + character for at, character in enumerate(text))


@pytest.mark.parametrize(
    "text",
    [
        "We stayed at home |because it rained all day.",
        "I will wait here |until you come |unless it gets dark.",
        "She reads a lot |but never at night.",
        "Because it rained we stayed.",
        "Salt and pepper or sugar",
        "even if it rains, as though nothing had happened",
        "The train was late (|although nobody minded).",
        "Nothing but the truth",
        "Please tell me |if that’s right.",
        "butter, ifs and Butler",
        "It ended 3 hours ago |while we slept.",
    ],
)
def test_english(text: str) -> None:
    assert marked(text.replace("|", "")) == text


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("Nos quedamos en casa |porque llovía.", "es"),
        ("Nous restons ici |mais vous partez.", "fr-fr"),
        ("Restiamo a casa |perché piove.", "it"),
        ("Ficamos em casa |porque chove.", "pt-br"),
        ("हम घर पर रहे |क्योंकि बारिश थी।", "hi"),
        ("We stay because", "ja"),
        ("雨が降ったので家にいた。", "ja"),
    ],
)
def test_other_languages(text: str, lang: str) -> None:
    assert marked(text.replace("|", ""), lang) == text
