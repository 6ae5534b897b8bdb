"""What the gateway needs from a synthesis backend, whatever carries the frames."""

from __future__ import annotations

from typing import Protocol

from firstword.session_protocol import Frame


class Link(Protocol):
    """One session's open connection to the backend. Every method raises UpstreamError."""

    @property
    def max_age_s(self) -> float | None:
        """After how many seconds another link must replace it, between segments; None: never."""

    async def send(self, frame: Frame) -> None:
        """Send one frame: str as text, bytes as binary where the transport tells them apart.

        The gateway sends text; `doctor` sends both, to see that the far end reads both. Called by
        one task at a time.
        """

    async def receive(self) -> tuple[Frame, bool | None]:
        """The next frame, and whether the transport says it is text (None: it does not say).

        Called by one task, and never cancelled while the link is in use. Raises at the end of the
        connection, whether the backend closed it or it broke.
        """

    async def close(self) -> None:
        """Close the connection cleanly if possible; never raises, ends within seconds."""


class Upstream(Protocol):
    """Opens connections to one backend."""

    async def connect(self) -> Link:
        """A new connection, ready for a synthesis. Raises UpstreamError that says what to do."""

    async def look(self) -> None:
        """Check that the backend is there, at no cost: nothing is spoken. Raises UpstreamError."""

    async def close(self) -> None:
        """Free what the connections share."""
