"""Which voice speaks a request."""

from __future__ import annotations

import pytest

from services.inference.synthesizer import SynthesisError
from services.inference.voices import choose

INSTALLED = frozenset({"af_heart", "af_bella", "bf_emma", "bm_lewis", "jf_alpha"})


@pytest.mark.parametrize(
    ("voice", "lang", "chosen"),
    [
        (None, None, "af_heart"),
        (None, "auto", "af_heart"),
        ("", "", "af_heart"),
        (None, "en", "af_heart"),
        (None, "en-US", "af_heart"),
        (None, "en_gb", "bf_emma"),
        ("bm_lewis", None, "bm_lewis"),
        ("bm_lewis", "auto", "bm_lewis"),
        ("bm_lewis", "en", "bm_lewis"),
        ("af_bella", "en-us", "af_bella"),
    ],
)
def test_the_voice(voice: str | None, lang: str | None, chosen: str) -> None:
    assert choose(voice, lang, "af_heart", INSTALLED) == chosen


@pytest.mark.parametrize(
    ("voice", "lang", "code"),
    [
        ("nobody", None, "unknown_voice"),
        ("../af_heart", None, "unknown_voice"),
        ("bf_alice", None, "unknown_voice"),
        ("jf_alpha", None, "unsupported_lang"),
        ("af_heart", "ja", "unsupported_lang"),
        (None, "klingon", "unsupported_lang"),
        ("af_heart", "en-gb", "lang_mismatch"),
    ],
)
def test_what_is_refused(voice: str | None, lang: str | None, code: str) -> None:
    with pytest.raises(SynthesisError) as caught:
        choose(voice, lang, "af_heart", INSTALLED)
    assert caught.value.code == code
    assert not caught.value.retryable


def test_an_unknown_voice_says_how_to_see_the_voices() -> None:
    with pytest.raises(SynthesisError, match="`firstword voices` lists"):
        choose("nobody", None, "af_heart", INSTALLED)


def test_a_default_that_is_not_installed_is_told() -> None:
    with pytest.raises(SynthesisError, match="unknown_voice"):
        choose(None, "en-gb", "af_heart", frozenset({"af_heart"}) - {"af_heart"})
