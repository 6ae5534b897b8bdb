"""Which voice speaks a request, or which mixture of voices, and what language that is."""

from __future__ import annotations

from collections.abc import Set
from typing import Final, TypeAlias

from firstword.languages import spoken, why_silent
from firstword.voice_languages import LANGUAGES, family, meant
from services.inference.synthesizer import SynthesisError

MAX_BLENDED: Final = 8
"""Voices in one mixture."""

Blend: TypeAlias = tuple[tuple[str, float], ...]
"""Names of voices and their shares, which add up to 1."""


def choose(voice: str | None, lang: str | None, default: str, available: Set[str]) -> str:
    """The voice for a request: the one it names, else one of its language, else `default`.

    `voice` may be a mixture (`af_heart:2+af_bella:1`); it is returned in its normal form.
    `lang` may be a tag like `en-GB`, a bare language like `en`, or `auto`, which means the voice's
    own. An empty string is the same as None.
    Raises SynthesisError `bad_voice`, `unknown_voice`, `voices_mismatch`, `unsupported_lang`,
    `lang_mismatch`.
    """
    wanted = _languages(lang)
    blend = parse(voice or _default(wanted, default, available))
    if any(name not in available for name, _ in blend):
        raise SynthesisError(
            "unknown_voice",
            "this voice is not installed here; `firstword voices` lists the voices, "
            "`firstword voices fetch --all` installs them",
        )
    own = language_of(blend[0][0])
    if len({family(language_of(name)) for name, _ in blend}) > 1:
        raise SynthesisError("voices_mismatch", "voices of one mixture must speak one language")
    missing = why_silent(own)
    if missing is not None:
        raise SynthesisError("unsupported_lang", f"voices of {own} cannot speak here: {missing}")
    if own not in wanted:
        raise SynthesisError(
            "lang_mismatch",
            f"this voice speaks {own}; leave `lang` out or choose a voice of that language",
        )
    return plain(blend)


def listed(available: Set[str]) -> list[dict[str, str]]:
    """Name and language of each voice, and for one that cannot speak here what is missing."""
    return [_line(name) for name in sorted(available)]


def _line(voice: str) -> dict[str, str]:
    language = language_of(voice)
    missing = why_silent(language)
    line = {"id": voice, "language": language}
    return line if missing is None else line | {"missing": missing}


def parse(voice: str) -> Blend:
    """The voices of a mixture in the order written, each once. Raises SynthesisError `bad_voice`.

    A single voice is a mixture too. The default weight is 1.
    """
    shares: dict[str, float] = {}
    parts = voice.split("+")
    if len(parts) > MAX_BLENDED:
        raise SynthesisError("bad_voice", f"at most {MAX_BLENDED} voices can be mixed")
    for part in parts:
        name, colon, weight = part.partition(":")
        name = name.strip()
        if not name:
            message = "every part of a mixture must name a voice: `af_heart:2+af_bella:1`"
            raise SynthesisError("bad_voice", message)
        shares[name] = shares.get(name, 0.0) + (_weight(weight) if colon else 1.0)
    total = sum(shares.values())
    return tuple((name, share / total) for name, share in shares.items())


def plain(blend: Blend) -> str:
    """The normal form of a mixture: the same for all weights in the same proportion."""
    if len(blend) == 1:
        return blend[0][0]
    return "+".join(f"{name}:{share:.6g}" for name, share in blend)


def language_of(voice: str) -> str:
    """The language of a voice, or of a mixture's first voice, by the first letter of its name."""
    return LANGUAGES.get(voice[:1], "unknown")


def _weight(written: str) -> float:
    try:
        weight = float(written)
    except ValueError:
        weight = 0.0
    if not 0 < weight <= 1000:
        message = "a weight must be a number from 0 to 1000: `af_heart:2+af_bella:1`"
        raise SynthesisError("bad_voice", message)
    return weight


def _languages(lang: str | None) -> tuple[str, ...]:
    """What `lang` allows; every language of the model for None and `auto`."""
    if not lang or lang.lower() == "auto":
        return (*LANGUAGES.values(), "unknown")
    allowed = meant(lang)
    if not allowed:
        raise SynthesisError(
            "unsupported_lang", f"`lang` must be one of {', '.join(spoken())} or en"
        )
    return allowed


def _default(wanted: tuple[str, ...], default: str, available: Set[str]) -> str:
    if language_of(default) in wanted:
        return default
    found = min((voice for voice in available if language_of(voice) in wanted), default=None)
    if found is not None:
        return found
    missing = why_silent(wanted[0])
    if missing is not None:
        raise SynthesisError("unsupported_lang", f"{wanted[0]} cannot be spoken here: {missing}")
    raise SynthesisError(
        "unknown_voice",
        f"no voice that speaks {wanted[0]} is installed here; `firstword voices fetch --all` "
        "installs them",
    )
