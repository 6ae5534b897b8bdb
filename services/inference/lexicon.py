"""Users' own pronunciations: a word to a respelling, or to phonemes between slashes. Pure.

    {"Nginx": "engine X", "GIF": "/ʤˈɪf/", "Jorge": {"en-us": "hor-hay", "es": "/xˈɔɾxe/"}}

An entry in lower case matches any capitalisation, any other entry only its own spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from firstword.errors import FirstwordError
from services.inference.vocabulary import keep_known

MAX_ENTRIES: Final = 2000
MAX_CHARS: Final = 200
"""Of a word, and of its pronunciation."""

_WORD: Final = re.compile(r"[^\W_]+")
_IPA: Final = (
    ("tʃ", "ʧ"), ("dʒ", "ʤ"), ("ts", "ʦ"), ("g", "ɡ"), ("'", "ˈ"),
)  # fmt: skip
_ENGLISH_IPA: Final = (
    ("eɪ", "A"), ("aɪ", "I"), ("oʊ", "O"), ("əʊ", "Q"), ("aʊ", "W"), ("ɔɪ", "Y"), ("r", "ɹ"),
)  # fmt: skip


class LexiconError(FirstwordError):
    """A lexicon that cannot be used, and which of its words is why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The pronunciation of characters `start` to `end` of a text, in one of two forms."""

    start: int
    end: int
    respelled: str | None
    phonemes: str | None


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Words and their pronunciations by language ("" for all). Empty by default."""

    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    heads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def said(self, written: str, lang: str) -> str | None:
        """The pronunciation of a word as it is written in a text; None if there is none."""
        for key in (written, written.lower()):
            by_lang = self.words.get(key, {})
            for tag in (lang, lang.split("-")[0], ""):
                if tag in by_lang:
                    return by_lang[tag]
        return None


def read(raw: object) -> Lexicon:
    """A lexicon from a decoded JSON object. Raises LexiconError, saying where."""
    if not isinstance(raw, Mapping):
        raise _bad("must be an object of words")
    if len(raw) > MAX_ENTRIES:
        raise _bad(f"has {len(raw)} words; {MAX_ENTRIES} are read")
    words: dict[str, Mapping[str, str]] = {}
    heads: dict[str, list[str]] = {}
    for number, (word, value) in enumerate(raw.items(), 1):
        where = f"word {number}"
        if not isinstance(word, str) or not 0 < len(word) <= MAX_CHARS:
            raise _bad(f"{where}: the word must have 1 to {MAX_CHARS} characters")
        head = _WORD.match(word)
        if head is None:
            raise _bad(f"{where}: a word must begin with a letter or a digit")
        by_lang = value if isinstance(value, Mapping) else {"": value}
        words[word] = {str(tag).lower(): _checked(said, where) for tag, said in by_lang.items()}
        heads.setdefault(head[0].lower(), []).append(word)
    longest_first = {
        head: tuple(sorted(group, key=lambda word: (-len(word), word)))
        for head, group in heads.items()
    }
    return Lexicon(words, longest_first)


def _checked(said: object, where: str) -> str:
    if not isinstance(said, str) or not 0 < len(said) <= MAX_CHARS:
        raise _bad(f"{where}: what is said must have 1 to {MAX_CHARS} characters")
    if said.startswith("/"):
        _check_phonemes(said, where)
    elif said.endswith("/"):
        raise _bad(f"{where}: phonemes stand between two slashes, and the first is missing")
    return said


def _check_phonemes(said: str, where: str) -> None:
    if not (len(said) > 1 and said.endswith("/")):
        raise _bad(f"{where}: phonemes stand between two slashes, and the last is missing")
    symbols = _as_model(said[1:-1], "en")
    known = keep_known(symbols)
    if strange := [c for c in symbols if c not in known]:
        listed = " ".join(dict.fromkeys(strange))
        raise _bad(f"{where}: the model has no phoneme {listed}")
    if not known.strip():
        raise _bad(f"{where}: between the slashes there is no phoneme")


def _bad(message: str) -> LexiconError:
    return LexiconError("bad_lexicon", f"the lexicon: {message}; see docs/INFERENCE.md")


def _as_model(phonemes: str, lang: str) -> str:
    """The model's symbols for the IPA of dictionaries."""
    for written, symbol in (*_IPA, *(_ENGLISH_IPA if lang.startswith("en") else ())):
        phonemes = phonemes.replace(written, symbol)
    return phonemes


def fixed(text: str, lang: str, *lexicons: Lexicon | None) -> tuple[Entry, ...]:
    """The words of the text that the lexicons, the last first, have; in order, not overlapping."""
    ordered = [lexicon for lexicon in reversed(lexicons) if lexicon is not None and lexicon.words]
    return tuple(_found(text, lang, ordered)) if ordered else ()


def _found(text: str, lang: str, lexicons: list[Lexicon]) -> Iterator[Entry]:
    past = 0
    for head in _WORD.finditer(text):
        if head.start() < past:
            continue
        entry = _at(text, head.start(), head[0].lower(), lang, lexicons)
        if entry is not None:
            past = entry.end
            yield entry


def _at(text: str, start: int, head: str, lang: str, lexicons: list[Lexicon]) -> Entry | None:
    for lexicon in lexicons:
        for word in lexicon.heads.get(head, ()):
            end = start + len(word)
            written = text[start:end]
            if written.lower() != word.lower() or text[end : end + 1].isalnum():
                continue
            said = lexicon.said(written, lang)
            if said is None:
                continue
            if said[0] == "/":
                return Entry(start, end, None, keep_known(_as_model(said[1:-1], lang)))
            return Entry(start, end, said, None)
    return None
