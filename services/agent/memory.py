"""One session's conversation for its model: bounded, and only what was heard.

A listener who barges in has not heard all that was written, and a model that believes otherwise
goes on from words that nobody heard. So the receipt of a cancel takes back what was not heard.
Pure: the session's events in, messages out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from firstword import messages as m

USER: Final = "user"
ASSISTANT: Final = "assistant"
UNASKED: Final = "(The conversation begins.)"
"""Precedes an agent's first words if nobody had asked: models want a user's message first."""
_SEGMENTS_KEPT = 16  # that have begun and not ended: normally one, after a loss a few


@dataclass(frozen=True, slots=True)
class Message:
    """One side's words; `role` is user or assistant."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """How much a model is told: messages of both sides, and their total characters."""

    messages: int
    characters: int


@dataclass(slots=True)
class _Exchange:
    prompt: str
    reply: str = ""
    sent: int = 0
    """Characters of the reply whose segments were spoken to their end."""
    sounding: dict[int, int] = field(default_factory=dict)
    """The ends of the segments that have begun and not ended, by number."""

    def count(self) -> int:
        return bool(self.prompt) + bool(self.reply)

    def size(self) -> int:
        return len(self.prompt) + len(self.reply)


class Memory:
    """The turns of a session, oldest first. The oldest are dropped first, the newest never."""

    def __init__(self, limits: MemoryLimits) -> None:
        self._limits = limits
        self._turns: dict[str, _Exchange] = {}

    def ask(self, turn: str, prompt: str = "") -> None:
        """A turn begins: it answers `prompt`; an empty one means that nobody asked."""
        self._turns.pop(turn, None)
        self._turns[turn] = _Exchange(prompt)
        self._bound()

    def write(self, turn: str, piece: str) -> None:
        """The reply goes on, unless its turn is forgotten already."""
        exchange = self._turns.get(turn)
        if exchange is not None:
            exchange.reply = (exchange.reply + piece)[: self._limits.characters]
            self._bound()

    def unsaid(self, turn: str) -> None:
        """Forget a turn of which nothing was or will be published."""
        self._shorten(turn, "")

    def take(self, message: m.Audio) -> None:
        """Take an event of the session: how far a turn was spoken, or what of it was heard."""
        match message:
            case m.SegmentStarted(turn=turn) if turn in self._turns:
                sounding = self._turns[turn].sounding
                sounding[message.n] = message.end
                if len(sounding) > _SEGMENTS_KEPT:
                    del sounding[next(iter(sounding))]
            case m.SegmentDone(turn=turn) if turn in self._turns:
                exchange = self._turns[turn]
                exchange.sent = max(exchange.sent, exchange.sounding.pop(message.n, 0))
            case m.TurnCancelled():
                self._cancelled(message)
            case m.Closed():
                self._turns.clear()
            case _:
                pass

    def messages(self, turn: str) -> tuple[Message, ...]:
        """The conversation for answering this turn, its prompt last.

        The sides alternate and the user begins, as models require.
        """
        said: list[Message] = []
        for name, exchange in self._turns.items():
            _add(said, USER, exchange.prompt)
            if name == turn:
                break
            if not said and exchange.reply.strip():
                _add(said, USER, UNASKED)
            _add(said, ASSISTANT, exchange.reply)
        return tuple(said)

    def _cancelled(self, receipt: m.TurnCancelled) -> None:
        stopped = receipt.stopped
        if receipt.heard is None:
            for turn in [] if receipt.already_done else stopped:
                exchange = self._turns.get(turn)
                if exchange is not None:
                    exchange.reply = exchange.reply[: exchange.sent]
            return
        last = receipt.heard["turn"]
        unheard = stopped[stopped.index(last) + 1 :] if last in stopped else stopped
        self._shorten(last, receipt.heard["text"])
        for turn in unheard:
            self._shorten(turn, "")

    def _shorten(self, turn: str, heard: str) -> None:
        if turn in self._turns:
            self._turns[turn].reply = heard[: self._limits.characters]
            self._bound()  # spoken forms may be longer than what was written

    def _bound(self) -> None:
        turns = self._turns.values()
        messages = sum(exchange.count() for exchange in turns)
        characters = sum(exchange.size() for exchange in turns)
        while len(self._turns) > 1 and (
            messages > self._limits.messages or characters > self._limits.characters
        ):
            oldest = self._turns.pop(next(iter(self._turns)))
            messages -= oldest.count()
            characters -= oldest.size()


def _add(said: list[Message], role: str, text: str) -> None:
    if not text.strip():
        return
    if said and said[-1].role == role:
        said[-1] = Message(role, f"{said[-1].text}\n\n{text}")
    else:
        said.append(Message(role, text))
