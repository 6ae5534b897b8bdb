"""Which languages of the model can be spoken where this runs, and what the others need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Final

from firstword.voice_languages import LANGUAGES

_ESPEAK: Final = ("espeak", ("espeakng_loader", "phonemizer"))

NEEDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    **dict.fromkeys(("es", "fr-fr", "hi", "it", "pt-br"), _ESPEAK),
    "ja": ("japanese", ("fugashi", "jaconv", "mojimoji", "unidic_lite")),
    "zh": ("chinese", ("cn2an", "jieba", "ordered_set", "pypinyin")),
}
"""Languages that not every installation can pronounce: the extra that brings it, its modules."""


@cache
def why_silent(language: str) -> str | None:
    """What is missing for a language to be spoken here; None if nothing is."""
    if language not in LANGUAGES.values():
        return "the model does not speak it"
    extra, modules = NEEDS.get(language, ("", ()))
    return None if _installed(modules) else f"install firstword[{extra}]"


def has_espeak() -> bool:
    """Whether espeak is here, which is under the GPL and may be left out."""
    return _installed(_ESPEAK[1])


def _installed(modules: Iterable[str]) -> bool:
    return all(find_spec(module) is not None for module in modules)


def spoken() -> tuple[str, ...]:
    """The languages that can be spoken here, in the model's order."""
    return tuple(tag for tag in LANGUAGES.values() if why_silent(tag) is None)
