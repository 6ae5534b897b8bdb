"""Sentences of every kind in many languages: where they end, however the text is cut."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.segmentation import segment_stream, segment_stream_eager, tokens_of

CASES = Path(__file__).parents[2] / "cases"


def _sentences() -> Iterator[tuple[str, str, list[str]]]:
    for line in (CASES / "sentences.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            lang, marked = line.split("\t")
            marked = marked.replace("\\n", "\n").replace("\\r", "\r")
            wanted = [part.strip() for part in marked.split("‖") if part.strip()]
            yield lang, marked.replace("‖", ""), wanted


SENTENCES = list(_sentences())
_LINES = [
    line
    for name in ("segmentation.jsonl", "segmentation_more.jsonl")
    for line in (CASES / name).read_text("utf-8").splitlines()
]
# Those marked `soft` are debatable: a better answer may differ.
REPLIES: list[dict[str, Any]] = [c for c in map(json.loads, _LINES) if not c.get("soft")]


def _texts(tokens: list[str], lang: str, options: dict[str, Any] | None = None) -> list[str]:
    return [text for text, _ in segment_stream(tokens, lang, options or {})]


def _in_pieces(text: str, seed: int) -> list[str]:
    chance, pieces, at = random.Random(seed), [], 0
    while at < len(text):
        size = chance.randint(1, 7)
        pieces.append(text[at : at + size])
        at += size
    return pieces


def _skeleton(text: str) -> str:
    """A segment without what may hang on either side of an end: space, emoji, decoration."""
    text = unicodedata.normalize("NFC", text.encode("utf-16", "surrogatepass").decode("utf-16"))
    return "".join(
        c
        for c in text
        if not c.isspace() and c not in "*_`#~|>" and unicodedata.category(c) not in ("So", "Cf")
    )


@pytest.mark.parametrize(
    ("lang", "text", "wanted"), SENTENCES, ids=[f"{c[0]}-{c[1][:24]}" for c in SENTENCES]
)
def test_a_text_comes_apart_where_its_sentences_end(
    lang: str, text: str, wanted: list[str]
) -> None:
    assert _texts([text], lang) == wanted
    assert _texts(list(text), lang) == wanted
    assert _texts(_in_pieces(text, 1), lang) == wanted


@pytest.mark.parametrize("case", REPLIES, ids=[case["id"] for case in REPLIES])
def test_a_reply_comes_apart_where_it_should(case: dict[str, Any]) -> None:
    lang, options = case["lang"], case.get("options", {})
    texts = _texts(case["tokens"], lang, options)
    assert list(map(_skeleton, texts)) == list(map(_skeleton, case["expected"]))
    joined = "".join(case["tokens"])
    assert _texts([joined], lang, options) == texts
    assert _texts(list(joined), lang, options) == texts


def test_eager_mode_is_seldom_wrong_and_mostly_at_the_mark() -> None:
    ends = early = late = 0
    for lang, text, wanted in SENTENCES:
        tokens = tokens_of(text)
        where, total = set(), 0
        for sentence in wanted:
            total += len(_skeleton(sentence))
            where.add(total)
        at = 0
        for segment, index in segment_stream_eager(tokens, lang, {})[:-1]:
            at += len(_skeleton(segment))
            ends += 1
            early += at not in where and index < len(tokens)
            late += not "".join(tokens[index : index + 1]).rstrip().endswith(segment[-1])
    assert early / ends < 0.007
    assert late / ends < 0.5


def test_safe_mode_waits_for_one_token_and_seldom_for_more() -> None:
    waited = []
    for lang, text, _ in SENTENCES:
        tokens = tokens_of(text)
        ends, total = [], 0
        for token in tokens:
            total += len(token)
            ends.append(total)
        read = 0
        for segment, index in segment_stream(tokens, lang, {}):
            read = text.index(segment, read) + len(segment)
            if index < len(tokens):
                waited.append(index - next(i for i, end in enumerate(ends) if end >= read))
    waited.sort()
    assert waited[len(waited) // 2] == 1
    assert waited[int(len(waited) * 0.9)] == 1
