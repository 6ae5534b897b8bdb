"""Whether the synthesis backend can be reached, by how connections to it went.

Pure: is told of outcomes and `now` (monotonic seconds).
"""

from __future__ import annotations

FAILURES = 5
"""So many in a row, without a success between them, are more than one connection's bad luck."""
QUIET_S = 10.0
"""A backend that said something within this time is there, whatever happened to others since."""
BRIEF_S = 5.0
"""A connection that ends so soon, without a word, was not wanted."""


class Reachability:
    """What all sessions of a gateway know of their backend together."""

    def __init__(self) -> None:
        self._failures = 0
        self._last = ""
        self._worked_at: float | None = None

    def worked(self, now: float) -> None:
        """The backend said something, or took a connection and kept it."""
        self._failures, self._worked_at = 0, now

    def refused(self, reason: str) -> None:
        """A connection could not be had."""
        self._failures += 1
        self._last = reason

    def ended(self, reason: str, lived_s: float, *, asked: bool) -> None:
        """A connection on which nothing ever came was ended by the backend.

        Without a request (`asked`) only a brief one counts: idle ones are closed everywhere.
        """
        if asked or lived_s < BRIEF_S:
            self.refused(reason)

    def problem(self, now: float) -> str | None:
        """Why the backend counts as away, for `/readyz`; None when well."""
        quiet = self._worked_at is None or now - self._worked_at >= QUIET_S
        if self._failures < FAILURES or not quiet:
            return None
        return (
            f"the last {self._failures} connections to the synthesis backend failed, and none did "
            f"any good; the newest: {self._last}"
        )
