"""Streaming segmentation: adaptors for the scorer, and what a token costs.

    python -m benchmarks.segmentation

prints microseconds per token at 250, 1,000 and 4,000 tokens, for prose and for text without a mark,
beside other libraries (`pip install firstword[bench]`). `segment_stream(tokens, lang, options)` is
what a scorer calls.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from typing import Any

from services.segmenter.core import Mode, Segment, Segmenter, SegmenterOptions

Emitted = list[tuple[str, int]]
Feed = Callable[[list[str]], Iterator[None]]  # one step a token

PATIENCE_S = 4.0  # a run that takes longer is stopped; what it had done by then counts
ROUNDS = 7  # the best counts: others share the machine
SIZES = (250, 1_000, 4_000)
PROSE = """\
Good question. A heat pump moves warmth instead of making it, so one unit of power gives up to
4.5 units of heat. In winter it takes what it needs from the air outside, even at 5 degrees below
zero. Dr. Hale's study from 2019 found that a house of 120 square metres saves about $640 a year,
which is more than most owners expect! Do you heat with gas at the moment? Then the change is
worth a look, because the U.S. government pays a part of it until Dec. 31. I would start with the
windows, e.g. the large ones to the north, and ask two firms for an offer. "Take your time," they
will say. Do not: prices rise in the spring. If you like, I can write down what to ask them.
"""
_LETTERS = r"(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff])+"  # vowel signs are no \w
_TOKEN = re.compile(
    rf"(?:[^\r\n\w]|_)?{_LETTERS}|\d{{1,3}}| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s"
)


def segment_stream(tokens: list[str], lang: str, options: dict[str, Any]) -> Emitted:
    """Each segment with the index of the token after which it came (`len(tokens)`: the flush)."""
    return _segments(tokens, lang, options, "safe")


def segment_stream_eager(tokens: list[str], lang: str, options: dict[str, Any]) -> Emitted:
    """The same in eager mode."""
    return _segments(tokens, lang, options, "eager")


def _segments(tokens: list[str], lang: str, options: dict[str, Any], mode: Mode) -> Emitted:
    segmenter = Segmenter(
        SegmenterOptions(
            lang=lang,
            mode=mode,
            min_chars=options.get("min_chars", 0),
            max_chars=options.get("max_chars", 0),
            first_clause=int(options.get("first_clause", 0)),
            merge_first=True,  # the cases want short openers merged too
        )
    )
    emitted: Emitted = []
    for index, token in enumerate(tokens):
        for event in segmenter.push(token, 0.0):
            if isinstance(event, Segment):
                emitted.append((event.text, index))
    for event in segmenter.flush(0.0):
        if isinstance(event, Segment):
            emitted.append((event.text, len(tokens)))
    return emitted


# --- what a token costs ---------------------------------------------------------------------


def tokens_of(text: str) -> list[str]:
    """Pieces such as a language model's: words with what stands before them, marks, digits."""
    return _TOKEN.findall(text)


def _own(lang: str = "en", mode: Mode = "safe") -> Feed:
    def feed(tokens: list[str]) -> Iterator[None]:
        segmenter = Segmenter(SegmenterOptions(lang=lang, mode=mode))
        for token in tokens:
            segmenter.push(token, 0.0)
            yield
        segmenter.flush(0.0)

    return feed


def _held(split: Callable[[str], list[str]]) -> Feed:
    """A batch library on a stream: run on the buffer for every token, the last sentence held."""

    def feed(tokens: list[str]) -> Iterator[None]:
        buffer = ""
        for token in tokens:
            buffer += token
            sentences = split(buffer)
            if len(sentences) > 1:
                buffer = sentences[-1]
            yield

    return feed


def _sentencex() -> Feed:
    module = importlib.import_module("sentencex")
    return _held(lambda text: list(module.segment("en", text)))


def _pysbd() -> Feed:
    segmenter = importlib.import_module("pysbd").Segmenter(language="en", clean=False)
    return _held(lambda text: list(segmenter.segment(text)))


def _stream2sentence() -> Feed:
    module = importlib.import_module("stream2sentence")

    def feed(tokens: list[str]) -> Iterator[None]:
        taken = 0

        def source() -> Iterable[str]:
            nonlocal taken
            for token in tokens:
                taken += 1
                yield token

        done = 0
        for _ in module.generate_sentences(
            source(), minimum_sentence_length=1, minimum_first_fragment_length=1
        ):
            yield from (None for _ in range(taken - done))
            done = taken
        yield from (None for _ in range(len(tokens) - done))

    return feed


def measure(feed: Feed, tokens: list[str]) -> tuple[float, bool]:
    """Microseconds per token, the best of several rounds; and whether the round was cut short."""
    best, cut = float("inf"), False
    deadline = time.perf_counter() + PATIENCE_S
    for _ in range(ROUNDS):
        count, start = 0, time.perf_counter()
        for _ in feed(tokens):
            count += 1
            if count % 16 == 0 and time.perf_counter() > deadline:
                cut = count < len(tokens)
                break
        best = min(best, (time.perf_counter() - start) / max(count, 1))
        if time.perf_counter() > deadline:
            break
    return best * 1e6, cut


def main() -> None:
    """Print the table."""
    prose = tokens_of(PROSE.replace("\n", " "))
    makers: dict[str, Callable[[], Feed]] = {
        "firstword safe": _own,
        "firstword eager": lambda: _own(mode="eager"),
        "firstword safe, auto language": lambda: _own(lang="auto"),
        "sentencex, held": _sentencex,
        "pysbd, held": _pysbd,
        "stream2sentence": _stream2sentence,
    }
    print("Microseconds per token (* stopped after a few seconds)")
    print("| segmenter | " + " | ".join(f"prose {n:,} | no mark {n:,}" for n in SIZES) + " |")
    print("|---|" + "---|" * 2 * len(SIZES))
    for name, make in makers.items():
        try:
            feed = make()
        except ImportError:
            print(f"| {name} | not installed |")
            continue
        cells = []
        for size in SIZES:
            for tokens in (list(islice(cycle(prose), size)), [" word"] * size):
                cost, cut = measure(feed, tokens)
                cells.append(f"{cost:.1f}{'*' if cut else ''}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
