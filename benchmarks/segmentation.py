"""Segments for the scorer: `segment_stream(tokens, lang, options)`, safe and eager."""

from __future__ import annotations

from typing import Any

from services.segmenter.core import Mode, Segment, Segmenter, SegmenterOptions

Emitted = list[tuple[str, int]]


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
