"""A turn that is published again because the server lost it: what was heard is not spoken again.

Its input is held until listeners have said what they have, or a short wait is over. Then it is
cut where they are, so that segments end there as they did before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firstword import codec
from firstword import messages as m
from services.segmenter.repair import repair

SETTLE_S = 0.25
"""How long after the first listener's `resume` the others' are waited for."""
MAX_CHARACTERS = 1_000_000
"""A turn longer than this is not held: it is spoken from its start."""
RESUMES_KEPT = 16

Input = m.Text | m.Flush | m.End


@dataclass(frozen=True, slots=True, order=True)
class Heard:
    """What a listener has of a turn: all before the character `start`, and `samples` samples more.

    `end` is where the segment at `start` ended, 0 if it is not known or none had begun.
    """

    start: int
    samples: int
    end: int = 0

    def snapshot(self) -> list[int]:
        """In msgpack types."""
        return [self.start, self.samples, self.end]

    @classmethod
    def restore(cls, saved: Sequence[int] | None) -> Heard | None:
        """As `snapshot` left it."""
        return None if saved is None else cls(*saved)


@dataclass(slots=True, eq=False)
class Resend:
    """The held input of one turn. `until`: when to stop waiting, on the session's clock."""

    until: float
    heard: Heard | None = None
    _input: list[Input] = field(default_factory=list)
    _characters: int = 0

    def keep(self, message: Input) -> None:
        """Take the next input; what follows an end is late."""
        if self._input and isinstance(self._input[-1], m.End):
            return
        self._input.append(message)
        self._characters += len(message.text) if isinstance(message, m.Text) else 0

    @property
    def full(self) -> bool:
        """Whether no more should be held."""
        return self._characters > MAX_CHARACTERS

    def learn(self, heard: Heard, now: float) -> None:
        """A listener says what it has; the listener with the least decides."""
        self.heard = least(self.heard, heard)
        self.until = min(self.until, now + SETTLE_S)

    def released(self) -> Iterator[Input]:
        """The input, cut where the listeners are."""
        heard = self.heard
        return cut(self._input, [] if heard is None else sorted({heard.start, heard.end}))

    def snapshot(self, session: str) -> dict[str, Any]:
        """What is held, in msgpack types."""
        return {
            "input": [codec.pack(message, session) for message in self._input],
            "heard": None if self.heard is None else self.heard.snapshot(),
        }

    @classmethod
    def restore(cls, saved: dict[str, Any], until: float) -> Resend:
        """As another worker left it."""
        messages = [codec.unpack(data, codec.INGRESS) for data in saved["input"]]
        held = [msg for msg in messages if isinstance(msg, m.Text | m.Flush | m.End)]
        characters = sum(len(msg.text) for msg in held if isinstance(msg, m.Text))
        return cls(until, Heard.restore(saved["heard"]), held, characters)


class Resumes:
    """What listeners have of the last few turns that were not published again yet."""

    def __init__(self) -> None:
        self._heard: dict[str, Heard] = {}

    def learn(self, turn: str, heard: Heard) -> None:
        """The listener with the least decides."""
        self._heard[turn] = least(self._heard.pop(turn, None), heard)
        if len(self._heard) > RESUMES_KEPT:
            self._heard.pop(next(iter(self._heard)))

    def take(self, turn: str) -> Heard | None:
        """What listeners have of this turn, which is published again now."""
        return self._heard.pop(turn, None)

    def snapshot(self) -> dict[str, list[int]]:
        """In msgpack types."""
        return {turn: heard.snapshot() for turn, heard in self._heard.items()}

    @classmethod
    def restore(cls, saved: dict[str, list[int]]) -> Resumes:
        """As `snapshot` left it."""
        resumes = cls()
        resumes._heard = {turn: Heard(*heard) for turn, heard in saved.items()}
        return resumes


def least(known: Heard | None, heard: Heard) -> Heard:
    """The lesser of the two."""
    return heard if known is None else min(known, heard)


def cut(messages: Iterable[Input], marks: Sequence[int]) -> Iterator[Input]:
    """The same input with a flush after each of the `marks`: characters of the turn, ascending.

    Characters that were cut between two pieces are joined, so that they are counted once.
    """
    at = 0
    rest: m.Text | None = None  # an unfinished character
    for message in messages:
        if not isinstance(message, m.Text):
            if rest is not None:
                yield rest
                at += len(repair(rest.text, final=True)[0])
                rest = None
            yield message
            continue
        text, held = repair((rest.text if rest else "") + message.text, final=False)
        rest = replace(message, text=held) if held else None
        start, end = at, at + len(text)
        for mark in marks:
            if start < mark <= end:
                yield replace(message, text=text[at - start : mark - start])
                yield m.Flush(session=message.session, turn=message.turn)
                at = mark
        yield replace(message, text=text[at - start :])
        at = end
    if rest is not None:
        yield rest
