"""Japanese: MeCab's words and readings, misaki's phonemes for kana; Latin words as in English."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any, Final

from services.inference.g2p.english import English
from services.inference.normalise import Spoken
from services.inference.pieces import Token
from services.inference.vocabulary import is_speakable, keep_known

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it opens its word list through a deprecated interface
    import jaconv
    from misaki.cutlet import Cutlet, Word

_LATIN: Final = re.compile(r"[A-Za-z]+(?:[ '-][A-Za-z]+)*")
_KANA: Final = re.compile("[\u3041-\u3096\u30a1-\u30fc]+")
_SAME_KANJI: Final = str.maketrans(
    "髙﨑𠮷濵濱邉邊齋齊德槗惠澤圓國", "高崎吉浜浜辺辺斎斉徳橋恵沢円国"
)
"""Forms of names' characters that dictionaries do not have."""
MOST_WORDS: Final = 24
_KNOWN_TYPE: Final = 6  # MeCab's class for words in kana and kanji


class _Recorder(Cutlet):  # type: ignore[misc] # misaki has no types
    """Keeps which words of the text each group of phonemes came from."""

    def __init__(self) -> None:
        super().__init__()
        self.surfaces: list[str] = []

    def _romaji_word(self, word: Any) -> str:
        self.surfaces.append(word.surface)
        said: str = super()._romaji_word(word)
        return said


class Japanese:
    """Words in kana and kanji, and English ones between them."""

    def __init__(self, english: English) -> None:
        self._english = english
        self._cutlet = _Recorder()

    def tokens(self, spoken: Spoken, _lang: str) -> list[Token]:
        """Places are characters of `spoken.text`."""
        text = spoken.text.translate(_SAME_KANJI)
        found: list[Token] = []
        start = 0
        for part in _LATIN.finditer(text):
            found += self._japanese(text, start, part.start())
            for token in self._english.tokens(Spoken.plain(part[0]), "en-us"):
                place = (token.start + part.start(), token.end + part.start())
                found.append(Token(token.phonemes, True, *place, token.is_word))
            start = part.end()
        found += self._japanese(text, start, len(text))
        return found

    def _japanese(self, text: str, start: int, end: int) -> Iterator[Token]:
        self._cutlet.surfaces = []
        words = self._words(text[start:end])
        # misaki takes a time that grows with the cube of the number of words.
        said = [
            token
            for first in range(0, len(words), MOST_WORDS)
            for token in self._cutlet._romaji_tokens(words[first : first + MOST_WORDS])
        ]
        cursor = start
        for token, surface in zip(said, self._cutlet.surfaces, strict=True):
            at = text.index(surface[:1], cursor)
            cursor = at + len(surface)
            is_word = is_speakable(surface)
            phonemes = keep_known(token.surface)
            if not is_word and phonemes.isalnum():
                phonemes = ""
            yield Token(phonemes, bool(token.space), at, min(cursor, end), is_word)

    def _words(self, text: str) -> list[Word]:
        """Words with their readings; one that no dictionary has is read character by character."""
        found = [
            Word(w.surface, _reading(w), w.char_type if _is_unreadable(w) else _KNOWN_TYPE)
            for w in self._cutlet.tagger(text)
        ]
        return [
            part
            for word in found
            for part in (
                map(self._character, word.surface)
                if word.char_type != _KNOWN_TYPE and len(word.surface) > 1
                else (word,)
            )
        ]

    def _character(self, character: str) -> Word:
        (word,) = self._cutlet.tagger(character)
        return Word(character, _reading(word), word.char_type if word.is_unk else _KNOWN_TYPE)


def _is_unreadable(word: Any) -> bool:
    """Whether nobody knows how it is said: a word that no dictionary has, unless it is in kana."""
    return bool(word.is_unk) and _KANA.fullmatch(word.surface) is None


def _reading(word: Any) -> str:
    reading: str = jaconv.kata2hira(word.feature.pron or word.feature.kana or word.surface)
    return reading
