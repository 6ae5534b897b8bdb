"""The 114 symbols that Kokoro was trained on, and their token ids. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

QUOTES: Final = frozenset('"“”')
"""Known to the model, but it voices them: up to 0.7 s of noise behind a quoted exclamation."""


@cache
def symbols() -> Mapping[str, int]:
    """Symbol -> token id; 0, which is not among them, pads both ends of an input."""
    data = resources.files("services.inference").joinpath("vocab.json").read_text("utf-8")
    table: dict[str, int] = json.loads(data)["symbols"]
    return table


def keep_known(phonemes: str) -> str:
    """`phonemes` without what the model does not know, and without quotes."""
    known = symbols()
    return "".join(c for c in phonemes if c in known and c not in QUOTES)


def is_speakable(text: str) -> bool:
    """Whether there is a letter or digit: anything else the model turns into noise."""
    return any(character.isalnum() for character in text)
