"""Mandarin: jieba's words, pypinyin's readings, misaki's phonemes; Latin words as in English."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from typing import Final

from services.inference.g2p.english import English
from services.inference.normalise import Spoken
from services.inference.pieces import Token
from services.inference.vocabulary import is_speakable, keep_known

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # escapes in their sources that Python will no longer take
    import jieba
    from misaki.zh import ZHG2P

jieba.setLogLevel(logging.WARNING)

_PART: Final = re.compile(r"[\u3400-\u9fff]+|[A-Za-z]+(?:[ '-][A-Za-z]+)*|\S")
_MARKS: Final = str.maketrans("、，。．！？：；（）", ",,..!?:;()")


class Chinese:
    """Words in characters, and English ones between them."""

    def __init__(self, english: English) -> None:
        self._english = english
        _load_dictionary()  # else the first sentence would wait for that

    def tokens(self, spoken: Spoken, _lang: str) -> list[Token]:
        """Places are characters of `spoken.text`."""
        found: list[Token] = []
        for part in _PART.finditer(spoken.text):
            start, written = part.start(), part[0]
            if written[0].isascii() and written[0].isalpha():
                found += _moved(self._english.tokens(Spoken.plain(written), "en-us"), start)
            elif is_speakable(written):
                found += _words(written, start)
            else:
                mark = keep_known(written.translate(_MARKS))
                found.append(Token(mark, bool(mark), start, part.end(), False))
        return found


def _load_dictionary() -> None:
    """As jieba does it, but without its copy in the folder for temporary files: that is no quicker,
    stays there, and may be anybody's."""
    with jieba.dt.lock:
        if not jieba.dt.initialized:
            jieba.dt.FREQ, jieba.dt.total = jieba.dt.gen_pfdict(jieba.dt.get_dict_file())
            jieba.dt.initialized = True


def _moved(tokens: list[Token], by: int) -> Iterator[Token]:
    for index, token in enumerate(tokens, 1):
        space = token.space or index == len(tokens)
        yield Token(token.phonemes, space, token.start + by, token.end + by, token.is_word)


def _words(written: str, start: int) -> Iterator[Token]:
    for word in jieba.lcut(written):
        yield Token(keep_known(_said(word)), True, start, start + len(word), True)
        start += len(word)


def _said(word: str) -> str:
    try:
        phonemes: str = ZHG2P.word2ipa(word)
    except ValueError:  # a character without a reading among others
        return "".join(map(_said, word)) if len(word) > 1 else ""
    return phonemes
