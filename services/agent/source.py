"""Where an agent's words come from. One file per real source; this is what they all are."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from firstword.errors import FirstwordError
from services.agent.memory import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One reply that is wanted.

    `messages`: what was said in the session before, as far as it is remembered, and the prompt as
    the last; sides alternate. `tokens_per_second` is for sources that have no pace of their own.
    """

    text: str
    session: str
    turn: str
    tokens_per_second: float = 0.0
    messages: tuple[Message, ...] = ()


class TokenSource(Protocol):
    """Writes the replies of one session, piece by piece, as they are thought of; one at a time."""

    def stream(self, ask: Ask) -> AsyncGenerator[str, None]:
        """The reply: what is to be spoken of it, so neither tool calls nor reasoning.

        Closing it stops the writing. Raises SourceError, after what was written, or what
        the model's own library raises.
        """
        ...


class SourceError(FirstwordError):
    """A model failed. The message is for who runs the agent; no word of a conversation is in it."""
