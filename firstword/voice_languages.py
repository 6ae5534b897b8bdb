"""Which language a voice of the model speaks, and which of them a `lang` means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

LANGUAGES: Final[Mapping[str, str]] = {
    "a": "en-us",
    "b": "en-gb",
    "e": "es",
    "f": "fr-fr",
    "h": "hi",
    "i": "it",
    "j": "ja",
    "p": "pt-br",
    "z": "zh",
}
"""A voice's language is told by the first letter of its name."""

_NAME: Final = re.compile(r"[a-z][fm]_")


def family(language: str) -> str:
    """`en` of `en-us`."""
    return language.split("-")[0]


def meant(lang: str) -> tuple[str, ...]:
    """The model's languages that a tag as `en-GB`, `en_gb`, `en` or `es-MX` stands for."""
    tag = lang.lower().replace("_", "-")
    everything = tuple(LANGUAGES.values())
    allowed = tuple(known for known in everything if tag in (known, family(known)))
    # es-MX is spoken as es, pt-PT as the model's pt-br
    return allowed or tuple(known for known in everything if family(known) == family(tag))


def may_speak(voice: str, lang: str) -> bool:
    """Whether a text in `lang` may be given to `voice`. Of voices that are not named as the model's
    are nothing is known: they may."""
    if lang.lower() in ("", "auto") or not _NAME.match(voice):
        return True
    return LANGUAGES.get(voice[0]) in meant(lang)
