"""Feeding a segmenter in the tests: pieces in, segments out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from services.segmenter.core import Event, Segment, Segmenter, SegmenterOptions


def events_of(pieces: Iterable[str], **options: Any) -> list[Event]:
    """Every event for `pieces`, the flush included; time stands still."""
    segmenter = Segmenter(SegmenterOptions(**{"lang": "en", **options}))
    events: list[Event] = []
    for piece in pieces:
        events += segmenter.push(piece, 0.0)
    return events + segmenter.flush(0.0)


def segments_of(pieces: Iterable[str], **options: Any) -> list[Segment]:
    """The segments for `pieces`."""
    return [event for event in events_of(pieces, **options) if isinstance(event, Segment)]


def texts_of(pieces: Iterable[str], **options: Any) -> list[str]:
    """The text of each segment for `pieces`."""
    return [segment.text for segment in segments_of(pieces, **options)]


def spoken_of(pieces: Iterable[str], **options: Any) -> list[str]:
    """What is said for `pieces`."""
    return [segment.spoken for segment in segments_of(pieces, **options)]
