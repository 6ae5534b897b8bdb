"""The entries of one session that wait for the gateway, and how much speech they will make.

Pure. The estimate assumes a usual pace; it serves to decide how many containers are needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from firstword import codec
from firstword import messages as m
from services.tts_gateway.said import CHARACTERS_PER_S


class Entry(Protocol):
    """An entry of the segments stream."""

    @property
    def id(self) -> str: ...
    @property
    def fields(self) -> Mapping[bytes, bytes]: ...


E = TypeVar("E", bound=Entry)


class Backlog(Generic[E]):
    """A queue of entries that hold `seconds` of speech."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._entries: deque[tuple[E, float]] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entries: Iterable[E]) -> None:
        """Append these."""
        for entry in entries:
            seconds = _seconds(entry)
            self._entries.append((entry, seconds))
            self.seconds += seconds

    @property
    def next(self) -> E:
        """The oldest; raises IndexError if there is none."""
        return self._entries[0][0]

    def drop(self) -> None:
        """Remove the oldest."""
        _, seconds = self._entries.popleft()
        self.seconds = self.seconds - seconds if self._entries else 0.0


def speech_seconds(segment: m.Segment) -> float:
    """How long a segment will sound, at a usual pace."""
    return len(segment.spoken) / (CHARACTERS_PER_S * segment.speed)


def _seconds(entry: Entry) -> float:
    try:
        message = codec.unpack(entry.fields.get(b"m", b""), codec.SEGMENTS)
    except Exception:  # the runner finds and reports what is wrong when it comes to this entry
        return 0.0
    return speech_seconds(message) if isinstance(message, m.Segment) else 0.0
