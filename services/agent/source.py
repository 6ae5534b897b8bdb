"""Where an agent's words come from: the interface of all token sources. Each has its own file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from firstword.errors import FirstwordError
from services.agent.memory import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request for one reply.

    `messages`: the conversation so far, as far as it is remembered, with the prompt last; the sides
    alternate. `tokens_per_second` is for sources without a pace of their own.
    """

    text: str
    session: str
    turn: str
    tokens_per_second: float = 0.0
    messages: tuple[Message, ...] = ()


class TokenSource(Protocol):
    """Writes the replies of one session, one at a time, each piece by piece as it is generated."""

    def stream(self, ask: Ask) -> AsyncGenerator[str, None]:
        """The words of the reply to be spoken: neither tool calls nor reasoning.

        Closing the iterator stops the model. Raises SourceError, after what was written, or what
        the model's own library raises.
        """
        ...


class SourceError(FirstwordError):
    """A model failed. The message is for the operator, and holds no word of a conversation."""
