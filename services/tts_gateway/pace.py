"""How far the audio of a session is ahead of a listener who plays it as it comes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Pace:
    """`plays_until`: when such a listener will have played all that is out (monotonic seconds)."""

    max_ahead_s: float
    plays_until: float = 0.0

    def begin(self, now: float) -> None:
        """A turn begins: whatever was out before, it is played from now on."""
        self.plays_until = now

    def add(self, seconds: float, now: float) -> None:
        """So much more is out."""
        self.plays_until = max(self.plays_until, now) + seconds

    def take_back(self, seconds: float) -> None:
        """So much of it comes again."""
        self.plays_until -= seconds

    def ahead(self, now: float) -> float:
        """Seconds that are out and not played yet; negative for how long nothing has been."""
        return self.plays_until - now

    def wait(self, now: float) -> float:
        """Seconds to wait, so that audio is not made too far ahead."""
        return max(0.0, self.ahead(now) - self.max_ahead_s)
