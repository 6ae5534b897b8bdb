"""`auto`: which language's words to use, from the script and from the commonest words so far."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .tables import NEVER, NUMBER, Table, load, load_mixed

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
# Letters that one of them has alone, nearly; each is worth a word.
_LETTERS = {
    "es": re.compile("[ñÑ¿¡]"),
    "pt": re.compile("[ãõÃÕ]"),
    "de": re.compile("ß"),
    "pl": re.compile("[łżźśęąŁŻŹŚ]"),
    "tr": re.compile("[ğşıĞŞİ]"),
    "sv": re.compile("[åÅ]"),
    "cs": re.compile("[ěřůĚŘŮ]"),
    "vi": re.compile("[ơưđƠƯĐ\u1ea0-\u1ef9]"),
}
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
            for lang, letters in _LETTERS.items():
                self.counts[_LATIN.index(lang)] += letters.search(context) is not None
        words = _WORD.findall(context.lower())
        for index, lang in enumerate(_LATIN):
            common = load(lang).function_words
            self.counts[index] += sum(word in common for word in words)
        most = max(self.counts)
        leaders = [lang for lang, count in zip(_LATIN, self.counts, strict=True) if count == most]
        if most and len(leaders) > 1:
            last = [*context.split(), ""][-1]
            leaders.sort(key=lambda lang: not load(lang).lookup(last) & (NEVER | NUMBER))
        return load_mixed(leaders[0])
