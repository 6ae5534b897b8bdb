"""Whether the synthesis backend can be reached and speaks, by how connections to it went.

Pure: is told of outcomes and `now` (monotonic seconds).
"""

from __future__ import annotations

FAILURES = 5
"""This many failures in a row, without a success between, are not one connection's bad luck."""
QUIET_S = 10.0
"""A backend that said something within this time is reachable, whatever failed since."""
BRIEF_S = 5.0
"""A connection that ends sooner than this, without a frame, was refused."""
UNANSWERED = 2
"""So many requests in a row without audio, while no other was spoken, are not one text's fault."""


class Reachability:
    """What all sessions of a gateway together know about their backend."""

    def __init__(self) -> None:
        self._failures = 0
        self._last = ""
        self._worked_at: float | None = None
        self._unanswered = 0
        self._spoke_at: float | None = None

    def worked(self, now: float) -> None:
        """The backend said something, or accepted a connection and kept it."""
        self._failures, self._worked_at = 0, now

    def refused(self, reason: str) -> None:
        """A connection could not be opened."""
        self._failures += 1
        self._last = reason

    def ended(self, reason: str, lived_s: float, *, asked: bool) -> None:
        """The backend ended a connection on which nothing had come.

        Without a request (`asked`) only a brief one counts: idle connections get closed anywhere.
        """
        if asked or lived_s < BRIEF_S:
            self.refused(reason)

    def spoke(self, now: float) -> None:
        """A request was spoken to its end."""
        self._unanswered, self._spoke_at = 0, now

    def silent(self, since: float) -> None:
        """A request has got no audio since `since`, and its time is up.

        That says nothing about the backend if another request was spoken meanwhile.
        """
        if self._spoke_at is None or self._spoke_at < since:
            self._unanswered += 1

    @property
    def untried(self) -> bool:
        """Whether it was never reached yet."""
        return self._worked_at is None

    @property
    def mute(self) -> bool:
        """Whether it accepts requests and makes no audio."""
        return self._unanswered >= UNANSWERED

    def problem(self, now: float) -> str | None:
        """Why no speech can be expected of the backend, for `/readyz`; None when well."""
        if self.mute:
            return (
                f"the last {self._unanswered} requests to the synthesis backend got no audio in "
                "their time, and no other was spoken since: it takes requests and does not speak"
            )
        if self._worked_at is None:
            return self._untried()
        if self._failures < FAILURES or now - self._worked_at < QUIET_S:
            return None
        return (
            f"the last {self._failures} connections to the synthesis backend failed, and none did "
            f"any good; the newest: {self._last}"
        )

    def _untried(self) -> str:
        """Red until it was reached once: before that nothing says that it ever can be."""
        if not self._failures:
            return "no connection to the synthesis backend was tried yet"
        return f"no connection to the synthesis backend did any good yet; the newest: {self._last}"
