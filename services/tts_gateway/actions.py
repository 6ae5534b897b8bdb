"""What the gateway's core asks of its shell, its limits, and what it stores of its progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from firstword import messages as m
from firstword.ids import START

Fields = dict[str, str | bytes | None]
"""Fields of a session's speech state; None deletes one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the core goes by; seconds unless named otherwise."""

    attempts: int = 3
    backoff_s: float = 0.25
    first_byte_s: float = 30.0
    between_frames_s: float = 15.0
    first_chunk_s: float = 0.1
    chunk_s: float = 0.32
    chunk_bytes: int = 16_000
    max_ahead_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Connect:
    """Have a connection after this many seconds, then report `connected` or `lost`."""

    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Drop the connection, if there is one."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send this frame."""

    frame: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Publish events and store fields, in one step. A field of None is deleted.

    `guard`: only if this turn is not cancelled, else report `cancelled`. `done_to`: entries up to
    this one are done with. `drops` names what ends unspoken by it, `segment` or `turn`.
    """

    events: tuple[m.Audio, ...] = ()
    fields: Fields = field(default_factory=dict)
    guard: str = ""
    done_to: str = ""
    drops: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """The session is over."""


Action = Connect | Disconnect | Send | Commit | Close


@dataclass(slots=True)
class Progress:
    """What is out, as stored with every commit."""

    position: str = START
    turn: str = ""
    turn_at: str = ""
    turn_segments: int = 0
    turn_samples: int = 0
    n: int = 0
    samples: int = 0
    plan: str = ""

    @classmethod
    def restore(cls, saved: Mapping[str, bytes]) -> Progress:
        """As another worker, or this one, left it."""
        return cls(
            position=saved.get("position", START.encode()).decode(),
            turn=saved.get("turn", b"").decode(),
            turn_at=saved.get("turn_at", b"").decode(),
            turn_segments=int(saved.get("turn_segments", b"0")),
            turn_samples=int(saved.get("turn_samples", b"0")),
            n=int(saved.get("n", b"0")),
            samples=int(saved.get("samples", b"0")),
            plan=saved.get("plan", b"").decode(),
        )

    def fields(self) -> Fields:
        """The fields of the state hash."""
        return {
            "position": self.position,
            "turn": self.turn,
            "turn_at": self.turn_at,
            "turn_segments": str(self.turn_segments),
            "turn_samples": str(self.turn_samples),
            "n": str(self.n),
            "samples": str(self.samples),
            "plan": self.plan,
        }
