"""Which languages of the model can be spoken where this runs, and what the others need."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Final

from firstword.voice_languages import LANGUAGES

NEEDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "ja": ("japanese", ("fugashi", "jaconv", "mojimoji", "unidic_lite")),
    "zh": ("chinese", ("cn2an", "jieba", "ordered_set", "pypinyin")),
}
"""Languages whose pronunciation is not part of the `inference` extra: the extra, its modules."""


@cache
def why_silent(language: str) -> str | None:
    """What is missing for a language to be spoken here; None if nothing is."""
    if language not in LANGUAGES.values():
        return "the model does not speak it"
    extra, modules = NEEDS.get(language, ("", ()))
    if all(find_spec(module) is not None for module in modules):
        return None
    return f"install firstword[{extra}]"


def spoken() -> tuple[str, ...]:
    """The languages that can be spoken here, in the model's order."""
    return tuple(tag for tag in LANGUAGES.values() if why_silent(tag) is None)
