"""What leaves a session for its gateway: numbered segments, and hints while it has time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from firstword import messages as m
from services.segmenter import core
from services.segmenter.turns import ForGateway, Output, Skipped, Turn

HINTS_UP_TO = 8
"""With more entries waiting, a gateway has no time for a segment that is merely likely."""


@dataclass(slots=True, eq=False)
class Outlet:
    """`n`: number of the session's last segment. `stored`: entries that wait for the gateway, when
    last looked at; `made`: segments that have left since and are not stored yet."""

    n: int = 0
    stored: int = 0
    made: int = 0

    @property
    def queued(self) -> int:
        """How many entries wait for the gateway, as far as is known."""
        return self.stored + self.made

    def leave(self, turn: Turn, segment: m.Segment) -> list[Output]:
        """Number a segment and send it, unless listeners have it from before a loss."""
        self.n = self._next_n(turn)
        skips = None
        if turn.heard is not None:
            if segment.end <= turn.heard.start:
                return [Skipped("heard")]
            if segment.start == turn.heard.start:
                skips = turn.heard.samples or None
        self.made += 1
        return [ForGateway(replace(segment, n=self.n, skip_samples=skips))]

    def hint(self, turn: Turn, event: core.Tentative | core.Revoke) -> list[Output]:
        """Send a hint: this segment is likely to be the next, or no longer is."""
        if self.queued > HINTS_UP_TO:
            return []
        return [ForGateway(turn.hint(event, self._next_n(turn)))]

    def _next_n(self, turn: Turn) -> int:
        return max(self.n + 1, turn.first_n)
