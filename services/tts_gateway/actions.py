"""What the gateway's core asks of its shell, and the limits it goes by."""

from __future__ import annotations

from dataclasses import dataclass, field

from firstword import messages as m

Fields = dict[str, str | bytes | None]
"""Fields of a session's speech state; None deletes one."""

FIRST = "@first"
"""As a field's value: the id of the first event of the commit."""

CLOSED = "closed"
"""The field that stands in the state of a session from its close to its next opening."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The core's limits; seconds unless named otherwise."""

    attempts: int = 3
    patience_s: float = 30.0
    backoff_s: float = 0.25
    longest_backoff_s: float = 2.0
    first_byte_s: float = 30.0
    between_frames_s: float = 15.0
    ping_s: float = 45.0
    pong_s: float = 10.0
    first_chunk_s: float = 0.1
    chunk_s: float = 0.32
    chunk_bytes: int = 16_000
    max_ahead_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Connect:
    """Get a connection after this many seconds, then report `connected` or `lost`.

    It replaces a `Connect` that still waits. `code`: why the last try failed, for the log.
    """

    after_s: float = 0.0
    code: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Drop the connection, if there is one. A waiting `Connect` keeps waiting."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send this frame."""

    frame: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Publish events and store fields, in one step. A field of None is deleted.

    `guard`: commit only if this turn is not cancelled, else report `cancelled`. `done_to`: entries
    up to this one are finished. `drops`: what ends unspoken with it, `segment` or `turn`. `dry_s`:
    how long a listener who plays in real time had nothing to play before it. `speech_s`: how long
    its audio sounds.
    """

    events: tuple[m.Audio, ...] = ()
    fields: Fields = field(default_factory=dict)
    guard: str = ""
    done_to: str = ""
    drops: str = ""
    dry_s: float = 0.0
    speech_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Close:
    """The session is over."""


Action = Connect | Disconnect | Send | Commit | Close
