"""Spanish, French, Hindi, Italian and Portuguese, by espeak as misaki runs it; and what it does for
English words that no dictionary has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from misaki.espeak import EspeakFallback, EspeakG2P

from services.inference.g2p import align, espeak_library
from services.inference.normalise import Spoken
from services.inference.pieces import Token
from services.inference.vocabulary import is_speakable, keep_known

LANGUAGES: Final = ("es", "fr-fr", "hi", "it", "pt-br")

MOST_WORDS: Final = 24
"""Words that are said together at most; more are said in turns."""

_ALONE: Final = {("pt-br", "é"): "hé", ("pt-br", "à"): "há"}
"""Words that are said as the names of their letters where nothing stands beside them, and what
sounds as they do."""

_PART: Final = re.compile(r"[^\s.,;:!?…—–()\[\]{}\"“”«»¿¡।॥|]{1,60}|[^\s]")
_MARKS: Final = {"।": ".", "॥": ".", "–": "—", "[": "(", "]": ")", "{": "(", "}": ")"}


espeak_library.install()


def unknown_words(*, british: bool) -> Any:
    """misaki's fallback for English. Raises EspeakError."""
    return EspeakFallback(british=british)


class Espeak:
    """One espeak voice per language."""

    def __init__(self) -> None:
        self._g2p: dict[str, EspeakG2P] = {}

    def tokens(self, spoken: Spoken, lang: str) -> list[Token]:
        """Places are characters of `spoken.text`."""
        text = spoken.text
        found: list[Token] = []
        clause: list[tuple[int, int]] = []
        for part in _PART.finditer(text):
            if is_speakable(part[0]):
                clause.append(part.span())
                if len(clause) < MOST_WORDS:
                    continue
            found += self._clause(text, clause, lang)
            clause = []
            if not is_speakable(part[0]):
                mark = keep_known(_MARKS.get(part[0], part[0]))
                mark = mark if not mark.isalnum() else ""
                found.append(Token(mark, _space_at(text, part.end()), *part.span(), False))
        found += self._clause(text, clause, lang)
        return found

    def _clause(self, text: str, words: list[tuple[int, int]], lang: str) -> Iterator[Token]:
        written = [text[start:end] for start, end in words]
        together = self._say(" ".join(written), lang) if written else ""
        said = together.split()
        if len(said) != len(words):
            said = align.split(together, [self._say(word, lang) for word in written])
        for (start, end), phonemes in zip(words, said, strict=True):
            space = _space_at(text, end)
            yield Token(keep_known(phonemes.strip()), space, start, end, True)

    def _say(self, text: str, lang: str) -> str:
        if lang not in self._g2p:
            self._g2p[lang] = EspeakG2P(language=lang)
        phonemes, _ = self._g2p[lang](_ALONE.get((lang, text.lower()), text))
        return " ".join(phonemes.split())


def _space_at(text: str, place: int) -> bool:
    return text[place : place + 1].isspace()
