"""Where an agent's words come from. One file per real source; this is what they all are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol


class TokenSource(Protocol):
    """Writes one reply, piece by piece, as it is thought of."""

    def stream(self, prompt: str) -> AsyncIterator[str]:
        """The reply to `prompt`. Closing the iterator stops the writing."""
        ...
