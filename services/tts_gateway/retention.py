"""How much of a session's audio stream is kept: by age and bytes, cut between segments."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from firstword.ids import id_key


@dataclass(slots=True, eq=False)
class Retention:
    """Remembers where segments begin on the stream, and what they weigh."""

    max_age_s: float = 120.0
    max_bytes: int = 16_000_000
    _segments: deque[tuple[str, int]] = field(default_factory=deque)
    _bytes: int = 0

    def note(self, first_id: str, size: int) -> None:
        """A segment is out that begins at `first_id` and holds `size` bytes of audio."""
        self._segments.append((first_id, size))
        self._bytes += size

    def keep_from(self, newest_id: str) -> str:
        """The oldest id to keep when `newest_id` is the newest there is; '' to keep all."""
        cut = ""
        oldest_ms = id_key(newest_id)[0] - int(self.max_age_s * 1000)
        while len(self._segments) > 1 and (
            self._bytes > self.max_bytes or id_key(self._segments[1][0])[0] < oldest_ms
        ):
            self._bytes -= self._segments.popleft()[1]
            cut = self._segments[0][0]
        return cut
