"""How far the audio of a session is ahead of a listener who plays it as it comes."""

from __future__ import annotations

from dataclasses import dataclass

BUFFERED_S = 0.05
"""The least that any player buffers, seconds."""


@dataclass(slots=True, eq=False)
class Pace:
    """`plays_until`: when such a listener will have played all that is out (monotonic seconds)."""

    max_ahead_s: float
    plays_until: float = 0.0

    def begin(self, now: float) -> None:
        """A turn begins: it plays from now on, whatever was published before."""
        self.plays_until = now

    def add(self, seconds: float, now: float, since: float) -> float:
        """`seconds` more are published, of a segment that was in hand `since` then.

        Returns how long a listener had nothing to play because of it. The time before there was
        anything to say does not count, nor what any player's buffer hides.
        """
        dry_s = now - self.plays_until if since <= self.plays_until else 0.0
        self.plays_until = max(self.plays_until, now) + seconds
        return dry_s if dry_s > BUFFERED_S else 0.0

    def take_back(self, seconds: float) -> None:
        """The last `seconds` are taken back; they come again."""
        self.plays_until -= seconds

    def ahead(self, now: float) -> float:
        """Seconds that are published and not played yet; negative: how long there has been none."""
        return self.plays_until - now

    def wait(self, now: float) -> float:
        """Seconds to wait, so that audio is not made too far ahead."""
        return max(0.0, self.ahead(now) - self.max_ahead_s)
