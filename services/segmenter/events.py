"""What a segmenter is told and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["safe", "eager"]
SkipCode = Literal["read", "announce", "skip"]


@dataclass(frozen=True, slots=True)
class SegmenterOptions:
    """How a session wants its text cut.

    `lang` is an ISO 639-1 code or `auto`. `max_chars` 0 is no limit. `max_wait` and `stall` are
    seconds, 0 is off. `first_clause` is the least number of words of a clause that may go first, 0
    is off. `min_chars` merges shorter segments into the next one; the first of a turn is exempt
    unless `merge_first`.
    """

    lang: str = "auto"
    mode: Mode = "safe"
    min_chars: int = 0
    max_chars: int = 0
    max_wait: float = 0.0
    first_clause: int = 0
    skip_code: SkipCode = "read"
    stall: float = 0.25
    merge_first: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """A finished segment. `start` and `end` count the turn's characters (code points)."""

    text: str
    spoken: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tentative:
    """A segment that is likely, as it would be spoken; a `Segment` or a `Revoke` follows."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Revoke:
    """The last `Tentative` will not come as it was announced."""


Event = Segment | Tentative | Revoke
