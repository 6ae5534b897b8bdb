"""Who is let in while the server's memory runs short: known sessions, no new ones.

Pure: takes messages and `now` (monotonic seconds), says what to do with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from firstword import messages as m

FORGOTTEN_S = 30.0
"""A refused turn without input for this long is over: later input is another turn."""


@dataclass(slots=True, eq=False)
class Memory:
    """How much of its memory the server uses (`share`, 0 to 1), and the limit for new sessions."""

    limit: float
    share: float = 0.0

    @property
    def short(self) -> bool:
        """Whether no new session is let in."""
        return self.share >= self.limit


class Verdict(Enum):
    """What to do with an entry."""

    TAKE = "take"
    REFUSE = "refuse"
    """It is not taken, and its session must be told."""
    DROP = "drop"
    """It is not taken, and its session has been told."""


class Admission:
    """Judges the entries of one partition.

    A turn is refused as a whole: it does not begin in the middle once there is room again.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._refused: dict[tuple[str, str], float] = {}  # session, turn -> last input

    def judge(self, messages: Sequence[m.Ingress], opened: bool, now: float) -> Verdict:
        """What to do with an entry's messages; `opened`: their session exists already."""
        self._forget(now)
        inputs = [each for each in messages if isinstance(each, m.Text | m.Flush | m.End)]
        if any(_turn_of(each) in self._refused for each in inputs):
            verdict = Verdict.DROP
        elif not opened and self._memory.short and _begins(messages):
            verdict = Verdict.REFUSE
        else:
            return Verdict.TAKE
        for each in inputs:
            self._refused.pop(_turn_of(each), None)  # so that the oldest input stands first
            if not isinstance(each, m.End):
                self._refused[_turn_of(each)] = now
        return verdict

    def _forget(self, now: float) -> None:
        while self._refused:
            oldest = next(iter(self._refused))
            if now - self._refused[oldest] < FORGOTTEN_S:
                return
            del self._refused[oldest]


def _begins(messages: Sequence[m.Ingress]) -> bool:
    """Whether this would create a session."""
    return any(isinstance(each, m.Open | m.Text) for each in messages)


def _turn_of(message: m.Text | m.Flush | m.End) -> tuple[str, str]:
    """Session and turn; a session's unnamed text is one turn."""
    return message.session, message.turn or ""
