"""How much of a session's audio stream is kept: by age and bytes, cut between segments."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from firstword.ids import id_key


@dataclass(slots=True)
class _Segment:
    first_id: str
    size: int = 0


@dataclass(slots=True, eq=False)
class Retention:
    """Remembers where segments begin on the stream, and their size.

    What precedes the first segment it knows of is trimmed with that one.
    """

    max_age_s: float = 120.0
    max_bytes: int = 16_000_000
    _segments: deque[_Segment] = field(default_factory=deque)
    _bytes: int = 0

    def segment(self, first_id: str) -> None:
        """A segment begins at this id."""
        self._segments.append(_Segment(first_id))

    def audio(self, entry_id: str, size: int) -> None:
        """`size` bytes of the newest segment's audio were published, at `entry_id` or later.

        If there is no segment, another worker began it.
        """
        if not self._segments:
            self.segment(entry_id)
        self._segments[-1].size += size
        self._bytes += size

    def keep_from(self) -> str:
        """The oldest id to keep now, '' if nothing is to be trimmed; each is returned once."""
        cut = ""
        while len(self._segments) > 1 and (self._bytes > self.max_bytes or self._is_old()):
            self._bytes -= self._segments.popleft().size
            cut = self._segments[0].first_id
        return cut

    def _is_old(self) -> bool:
        """Whether the oldest segment had ended `max_age_s` before the newest began."""
        ended, newest = (
            id_key(self._segments[1].first_id)[0],
            id_key(self._segments[-1].first_id)[0],
        )
        return newest - ended > self.max_age_s * 1000
