"""Which voice speaks a request, and whether it can speak the language asked for. Pure."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from firstword.assets import LANGUAGES
from services.inference.synthesizer import SynthesisError

SUPPORTED: Final = ("en-us", "en-gb")
"""Languages whose pronunciation is built in."""


def choose(voice: str | None, lang: str | None, default: str, available: Set[str]) -> str:
    """The voice for a request: the one asked for, else one of the language, else `default`.

    `lang` may be a tag as `en-GB`, a bare language as `en`, or `auto`, which means the voice's
    own. Empty is the same as not asked for.
    Raises SynthesisError `unknown_voice`, `unsupported_lang`, `lang_mismatch`.
    """
    wanted = _languages(lang)
    if not voice:
        voice = _default(wanted, default, available)
    if voice not in available:
        raise SynthesisError(
            "unknown_voice",
            "this voice is not installed here; `firstword voices` lists the voices, "
            "`firstword voices fetch --all` installs them",
        )
    own = language_of(voice)
    if own not in SUPPORTED:
        raise SynthesisError(
            "unsupported_lang", f"voices of {own} cannot speak yet; use {' or '.join(SUPPORTED)}"
        )
    if own not in wanted:
        raise SynthesisError(
            "lang_mismatch",
            f"this voice speaks {own}; leave `lang` out or choose a voice of that language",
        )
    return voice


def language_of(voice: str) -> str:
    """The language that the first letter of a voice's name stands for."""
    return LANGUAGES.get(voice[:1], "unknown")


def _languages(lang: str | None) -> tuple[str, ...]:
    """What `lang` allows; every language of the model for None and `auto`."""
    everything = tuple(LANGUAGES.values())
    if not lang or lang.lower() == "auto":
        return (*everything, "unknown")
    tag = lang.lower().replace("_", "-")
    allowed = tuple(known for known in everything if tag in (known, known.split("-")[0]))
    if not any(known in SUPPORTED for known in allowed):
        raise SynthesisError(
            "unsupported_lang", f"`lang` must be one of {', '.join(SUPPORTED)} or en"
        )
    return allowed


def _default(wanted: tuple[str, ...], default: str, available: Set[str]) -> str:
    if language_of(default) in wanted:
        return default
    return min((voice for voice in available if language_of(voice) in wanted), default=default)
