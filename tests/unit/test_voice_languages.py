"""Which voice may speak which language."""

from __future__ import annotations

import pytest

from firstword.voice_languages import may_speak, meant


@pytest.mark.parametrize(
    ("lang", "languages"),
    [
        ("en", ("en-us", "en-gb")),
        ("en_GB", ("en-gb",)),
        ("es-MX", ("es",)),
        ("pt-PT", ("pt-br",)),
        ("klingon", ()),
    ],
)
def test_what_a_tag_stands_for(lang: str, languages: tuple[str, ...]) -> None:
    assert meant(lang) == languages


@pytest.mark.parametrize(
    ("voice", "lang", "may"),
    [
        ("af_heart", "en", True),
        ("af_heart", "auto", True),
        ("af_heart", "", True),
        ("af_heart", "en-gb", False),
        ("af_heart:2+af_bella:1", "es", False),
        ("af_heart", "klingon", False),
        ("alloy", "es", True),
        ("", "es", True),
    ],
)
def test_whether_a_voice_may_have_a_text(voice: str, lang: str, may: bool) -> None:
    assert may_speak(voice, lang) is may
