"""Whether to ask the backend again for a segment, and when."""

from __future__ import annotations

from services.tts_gateway.actions import Limits

NOT_BEGUN = frozenset(
    {
        *("busy", "loading", "draining"),
        *("upstream_unreachable", "upstream_refused", "upstream_throttled", "upstream_unavailable"),
        "upstream_no_credentials",
    }
)
"""What a backend says that has not begun: that is not for the segment to answer for."""


class Retries:
    """A backend that breaks off gets a few tries a segment; one that is away gets time.

    The time is the session's: once it is used up, each segment asks once more and is given up,
    until one gets somewhere. So an outage costs a session a pause, and a long one is told.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._furthest = (0, 0)
        self._n = 0
        self._failures = 0
        self._broken = 0
        self._waited_s = 0.0

    def got(self, n: int, samples: int) -> None:
        """So many samples of segment `n` are out."""
        if (n, samples) > self._furthest:
            self._furthest = (n, samples)
            self._failures = self._broken = 0
            self._waited_s = 0.0

    def pause_after(self, n: int, code: str, at_least_s: float = 0.0) -> float | None:
        """Seconds until segment `n` is asked for again after this error, None to give it up.

        `at_least_s` is what the backend says; it is heeded as far as the time reaches.
        """
        if n != self._n:
            self._n, self._failures, self._broken = n, 0, 0
        self._failures += 1
        if code in NOT_BEGUN:
            over = self._waited_s >= self._limits.patience_s
        else:
            self._broken += 1
            over = self._broken >= self._limits.attempts
        if over:
            return None
        pause_s = self._limits.backoff_s * 2.0 ** min(self._failures - 1, 10)
        pause_s = min(pause_s, self._limits.longest_backoff_s)
        pause_s = max(pause_s, min(at_least_s, self._limits.patience_s - self._waited_s))
        self._waited_s += pause_s
        return pause_s
