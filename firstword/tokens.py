"""A text cut into pieces like a language model's tokens: for demonstrations and scripted answers.

No tokenizer's vocabulary is imitated, only its look: a word carries the space before it, long words
come in several pieces, punctuation and line breaks stand apart.
"""

from __future__ import annotations

import re

# The three classes \w, \s and neither cover every character, so nothing can fall between pieces.
_PIECE = re.compile(r"['’]\w{1,8}| ?\w{1,8}| ?[^\w\s]{1,3}|\s")


def tokens(text: str) -> list[str]:
    """The pieces of `text`, in order; joined they are `text` again, and none is empty."""
    return _PIECE.findall(text)
