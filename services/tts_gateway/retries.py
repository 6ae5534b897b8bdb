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
"""Codes of a backend that did not even begin: they do not count against the segment."""


class Retries:
    """A backend that breaks off gets a few tries per segment; one that is away gets time.

    The time is the session's: once it is used up, each segment is tried once and given up, until
    one makes progress. So a short outage is a pause in the session, and a long one is an error.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._furthest = (0, 0)
        self._n = 0
        self._failures = 0
        self._broken = 0
        self._waited_s = 0.0

    def got(self, n: int, samples: int) -> None:
        """`samples` samples of segment `n` are published."""
        if (n, samples) > self._furthest:
            self._furthest = (n, samples)
            self._failures = self._broken = 0
            self._waited_s = 0.0

    def pause_after(self, n: int, code: str, at_least_s: float = 0.0) -> float | None:
        """Seconds until segment `n` is requested again after this error, None to give it up.

        `at_least_s` is what the backend asks for; it is respected within the session's time.
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
