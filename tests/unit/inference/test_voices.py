"""Which voice speaks a request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference import voices
from services.inference.synthesizer import SynthesisError
from services.inference.voices import choose, language_of, parse, plain


@pytest.fixture(autouse=True)
def _everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voices, "why_silent", lambda language: None)


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
        ("jf_alpha", "ja", "jf_alpha"),
        (None, "ja-JP", "jf_alpha"),
        ("af_heart:2+af_bella:1", None, "af_heart:0.666667+af_bella:0.333333"),
        (" af_heart : 4 + af_bella : 2 ", "en", "af_heart:0.666667+af_bella:0.333333"),
        ("af_heart:2+af_heart", None, "af_heart"),
        ("bf_emma+af_heart", "en-gb", "bf_emma:0.5+af_heart:0.5"),
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
        ("af_heart", "ja", "lang_mismatch"),
        ("af_heart+", None, "bad_voice"),
        (" ", None, "bad_voice"),
        (":2+af_heart", None, "bad_voice"),
        ("af_heart:0+af_bella", None, "bad_voice"),
        ("af_heart:nan+af_bella", None, "bad_voice"),
        ("af_heart:two+af_bella", None, "bad_voice"),
        ("+".join(["af_heart"] * 9), None, "bad_voice"),
        ("af_heart+jf_alpha", None, "voices_mismatch"),
        ("af_heart+nobody", None, "unknown_voice"),
        ("af_heart+bf_emma", "en-gb", "lang_mismatch"),
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


def test_a_language_whose_pronunciation_is_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(voices, "why_silent", lambda language: "install firstword[japanese]")
    with pytest.raises(SynthesisError, match=r"install firstword\[japanese\]") as caught:
        choose("jf_alpha", None, "af_heart", INSTALLED)
    assert caught.value.code == "unsupported_lang"


def test_the_list_says_what_a_voice_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voices, "why_silent", lambda language: "x" if language == "ja" else None)
    assert voices.listed(frozenset({"jf_alpha", "af_heart"})) == [
        {"id": "af_heart", "language": "en-us"},
        {"id": "jf_alpha", "language": "ja", "missing": "x"},
    ]


def test_a_language_that_nobody_here_speaks_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SynthesisError, match="no voice that speaks zh is installed") as caught:
        choose(None, "zh", "af_heart", INSTALLED)
    assert caught.value.code == "unknown_voice"
    monkeypatch.setattr(voices, "why_silent", lambda language: f"install firstword[{language}]")
    with pytest.raises(SynthesisError, match=r"zh cannot .* install firstword\[zh\]") as caught:
        choose(None, "zh", "af_heart", INSTALLED)
    assert caught.value.code == "unsupported_lang"


@given(st.dictionaries(st.sampled_from(sorted(INSTALLED)), st.floats(0.01, 100), min_size=1))
def test_the_shares_of_a_mixture_add_up_and_its_form_is_stable(weights: dict[str, float]) -> None:
    blend = parse("+".join(f"{name}:{weight!r}" for name, weight in weights.items()))
    assert sum(share for _, share in blend) == pytest.approx(1)
    assert [name for name, _ in blend] == list(weights)
    again = parse(plain(blend))
    assert dict(again) == pytest.approx(dict(blend), abs=1e-4)
    assert language_of(plain(blend)) == language_of(blend[0][0])
