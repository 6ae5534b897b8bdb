"""Whether an idle connection is still there: a ping now and then, and an answer in time."""

from __future__ import annotations


class Pulse:
    """Asks after `ping_s` of silence; anything that comes within `pong_s` is an answer.

    The pings also keep the connection alive: firewalls and load balancers drop flows that carry
    nothing for some minutes.
    """

    def __init__(self, ping_s: float, pong_s: float) -> None:
        self._ping_s = ping_s
        self._pong_s = pong_s
        self._since = 0.0
        self._asked = False

    def felt(self, now: float) -> None:
        """The connection is new, or something came on it."""
        self._since, self._asked = now, False

    def asked(self, now: float) -> None:
        """A ping goes out."""
        self._since, self._asked = now, True

    @property
    def overdue(self) -> bool:
        """Whether the next deadline is that of an answer."""
        return self._asked

    def timer(self) -> float:
        """When to ask, or to give the connection up."""
        return self._since + (self._pong_s if self._asked else self._ping_s)
