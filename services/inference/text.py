"""From text to phonemes: written forms to words, words to phonemes, and the way back.

The libraries behind this keep state in globals and silently give wrong phonemes when two threads
use them at once. So all of it runs under one lock, and one session's words cannot get into
another's audio. Recent results are cached.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Final, Protocol

from services.inference.g2p.english import English, possessive
from services.inference.lexicon import Entry, Lexicon, fixed
from services.inference.normalise import Spoken, normalise
from services.inference.pieces import Token
from services.inference.synthesizer import SynthesisError

REMEMBERED: Final = 512
"""Texts whose phonemes are kept."""

_LOCK: Final = threading.Lock()


class FrontEnd(Protocol):
    """One of `g2p/`."""

    def tokens(self, spoken: Spoken, lang: str) -> list[Token]:
        """Tokens with their places in `spoken.text`."""


class Pronouncer:
    """Grapheme-to-phoneme conversion for every language that is installed. Safe from any thread."""

    def __init__(self) -> None:
        with _LOCK:
            self._english = English()
        self._front_ends: dict[str, FrontEnd] = dict.fromkeys(("en-us", "en-gb"), self._english)
        self.name = self._english.name
        self._lexicon: Lexicon | None = None
        self._remembered = lru_cache(REMEMBERED)(self._pronounce)

    def with_lexicon(self, lexicon: Lexicon | None) -> Pronouncer:
        """The same, with the service's own pronunciations; those of a session take precedence."""
        other = copy(self)
        other._lexicon = lexicon
        return other

    def pronounce(self, text: str, lang: str, lexicon: Lexicon | None = None) -> list[Token]:
        """The tokens of a cleaned text. Raises SynthesisError `pronunciation_failed`."""
        try:
            return list(self._remembered(text, lang, fixed(text, lang, self._lexicon, lexicon)))
        except Exception as error:
            # Three libraries may raise anything; the text must not leave in their messages.
            kind = type(error).__name__
            message = f"this text cannot be pronounced ({kind}); change it"
            raise SynthesisError("pronunciation_failed", message) from None

    def _pronounce(self, text: str, lang: str, entries: tuple[Entry, ...]) -> tuple[Token, ...]:
        tokens = self._read(text, lang, entries)
        for entry in entries:
            if entry.phonemes is not None:
                tokens = self._put(entry, entry.phonemes, tokens, text, lang)
        return tuple(tokens)

    def _read(self, text: str, lang: str, entries: Sequence[Entry] = ()) -> list[Token]:
        spoken = normalise(text, lang, [(e.start, e.end, e.respelled) for e in entries])
        with _LOCK:
            tokens = self._front_end(lang).tokens(spoken, lang)
        return [_moved(token, *spoken.source(token.start, token.end)) for token in tokens]

    def _put(
        self, entry: Entry, phonemes: str, tokens: list[Token], text: str, lang: str
    ) -> list[Token]:
        """Put `phonemes` in place of the word's own; what is attached to it is read separately."""
        hit = [i for i, t in enumerate(tokens) if t.start < entry.end and entry.start < t.end]
        if not hit:
            return tokens
        first, last = tokens[hit[0]], tokens[hit[-1]]
        before, behind = text[first.start : entry.start], text[entry.end : last.end]
        end = entry.end
        if behind == "'s" and lang.startswith("en"):
            phonemes, behind, end = possessive(phonemes), "", last.end
        fixed = Token(phonemes, last.space and not behind, entry.start, end, True)
        return [
            *tokens[: hit[0]],
            *self._alone(before, first.start, lang),
            fixed,
            *self._alone(behind, entry.end, lang, space=last.space),
            *tokens[hit[-1] + 1 :],
        ]

    def _alone(self, text: str, at: int, lang: str, *, space: bool = False) -> list[Token]:
        tokens = [_moved(t, t.start + at, t.end + at) for t in self._read(text, lang)]
        if tokens:
            tokens[-1] = replace(tokens[-1], space=space)
        return tokens

    def _front_end(self, lang: str) -> FrontEnd:
        """The front end of a language; optional ones are loaded on first use."""
        if lang not in self._front_ends:
            self._front_ends |= self._load(lang)
        return self._front_ends[lang]

    def _load(self, lang: str) -> dict[str, FrontEnd]:
        """The front end for `lang`, by each language that it speaks."""
        match lang:
            case "ja":
                from services.inference.g2p.japanese import Japanese

                return {lang: Japanese(self._english)}
            case "zh":
                from services.inference.g2p.chinese import Chinese

                return {lang: Chinese(self._english)}
            case _:
                from services.inference.g2p.espeak import LANGUAGES, Espeak

                return dict.fromkeys(LANGUAGES, Espeak())


def _moved(token: Token, start: int, end: int) -> Token:
    return replace(token, start=start, end=end)
