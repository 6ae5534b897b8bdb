"""`auto`: which language's words to use, from the script and from the commonest words so far."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .tables import Table, load

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u4e00-\u9fff\u3400-\u4dbf]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("uk", re.compile("[іїєґІЇЄҐ]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff\u1f00-\u1fff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
)
_LATIN = ("en", "es", "pt", "de", "fr", "it", "nl", "pl", "tr", "sv", "cs", "vi")  # add at the end
_WORD = re.compile(r"[^\W\d_]+")


class Votes:
    """Counts the function words of each Latin language, mark by mark; the commonest leads."""

    __slots__ = ("counts",)

    def __init__(self, counts: Sequence[int] = ()) -> None:
        self.counts = [*counts, *[0] * (len(_LATIN) - len(counts))]

    def table(self, context: str) -> Table:
        """The table for the text before a mark; the votes of that text are counted."""
        if not context.isascii():
            for lang, script in _SCRIPTS:
                if script.search(context):
                    return load(lang)
        words = _WORD.findall(context.lower())
        for index, lang in enumerate(_LATIN):
            common = load(lang).function_words
            self.counts[index] += sum(word in common for word in words)
        return load(_LATIN[self.counts.index(max(self.counts))])
