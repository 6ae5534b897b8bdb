"""The stream messages as frozen dataclasses: what docs/PROTOCOL.md says, as types.

Three families: `Ingress` (publishers to Firstword), `Segments` (segmenter to gateway) and
`Audio` (gateway to listeners). `codec` turns them into bytes and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SPEEDS = (0.5, 2.0)
"""The slowest and the fastest speech there is, as a factor; the same at every door."""

UNREADABLE: dict[str, Any] = {
    "voice": "",
    "speed": 0.0,
    "lang": "",
    "sample_rate": 0,
    "pace": "",
    "meta": {"": ""},
}
"""What stands for a setting of an `open` or a text that could not be read. It is never valid, so it
is refused like any bad setting, and a text is still spoken."""

# -- in: fw:text, fw:text:{p} ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ingress:
    """Fields of any ingress message. `src`: its entry id on the door that it was copied from."""

    session: str
    traceparent: str | None = None
    src: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(_Ingress):
    """Start or update a session; None leaves a setting as it is."""

    voice: str | None = None
    speed: float | None = None
    lang: str | None = None
    sample_rate: int | None = None
    pace: str | None = None
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(_Ingress):
    """A piece of text, any size, cut anywhere, even inside a UTF-8 character.

    `again`, here and below: published again because the server lost the turn; the number that its
    first segment had, as far as is known.
    """

    text: str
    turn: str | None = None
    seq: int | None = None
    again: int | None = None
    voice: str | None = None
    speed: float | None = None
    lang: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush(_Ingress):
    """Speak what is there now; the turn goes on."""

    turn: str | None = None
    seq: int | None = None
    again: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End(_Ingress):
    """No more text in this turn."""

    turn: str | None = None
    seq: int | None = None
    again: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(_Ingress):
    """Barge-in: stop this turn, or without a name all turns so far, now.

    `played` is what the listener had really heard: {turn, n, samples}.
    """

    turn: str | None = None
    played: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(_Ingress):
    """From a listener after `state_lost`: it has this turn up to the character `start`, and then
    `samples` of a segment, which ended at the character `end`."""

    turn: str
    start: int
    samples: int
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(_Ingress):
    """After what is queued, close the upstream connection and the session."""


Ingress = Open | Text | Flush | End | Cancel | Resume | Close

# -- between: fw:{session}:segments ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The unit of synthesis. `text` is what the model wrote, `spoken` what is said.

    `n` counts segments in the session and never repeats; `start`, `end` are characters of the
    turn; `opened_at` is the entry id of the turn's first text, the start of TTFA. Of a turn that is
    spoken again after a loss, listeners have `skip_samples` of this segment already.
    """

    turn: str
    n: int
    text: str
    spoken: str
    start: int
    end: int
    voice: str
    speed: float
    lang: str
    first: bool
    last: bool
    opened_at: str
    traceparent: str | None = None
    skip_samples: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tentative:
    """Hint: segment `n` will probably be spoken as `text`. Without a position; may be lost."""

    turn: str
    n: int
    text: str
    voice: str
    speed: float
    lang: str
    opened_at: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoke:
    """Hint: the tentative segment `n` will not come as announced."""

    turn: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """All segments of the turn are on the stream."""

    turn: str
    segments: int
    reason: str = "complete"
    opened_at: str = ""
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpen:
    """The session's settings, in full; the gateway connects its upstream now.

    `lexicon`: words, and how they are said in this session.
    """

    voice: str
    speed: float
    lang: str
    sample_rate: int
    pace: str
    lexicon: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClose:
    """Nothing comes after this."""


Segments = Segment | Tentative | Revoke | TurnEnd | SessionOpen | SessionClose

# -- out: fw:{session}:audio ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """Committed with the turn's first audio."""

    turn: str
    voice: str
    sample_rate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentStarted:
    """Committed with the segment's first audio.

    `committed_at`: entry id of the segment on the segments stream; `ttfb_ms`: synthesis request
    sent to first audio byte. Both for waterfalls. `spoken`: what is said of it, where that differs
    from `text`.
    """

    turn: str
    n: int
    text: str
    start: int
    end: int
    committed_at: str = ""
    ttfb_ms: float = 0.0
    spoken: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioChunk:
    """PCM s16le mono; `offset` in samples from the segment's start; at most 16,000 bytes."""

    turn: str
    n: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRestarted:
    """Drop what you hold of this segment: it comes again from offset 0."""

    turn: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDone:
    """All `samples` are out. `words`: [start_char, end_char, start_s, end_s] of the spoken text."""

    turn: str
    n: int
    samples: int
    words: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDone:
    """The turn is spoken. `ttfa_ms`: first text to first audio, None if silent."""

    turn: str
    segments: int
    samples: int
    reason: str
    ttfa_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCancelled:
    """The one answer to a cancel. `sent`: {segments, n, samples} that went out before it.

    `turns`: all that it stopped, where these are several; `turn` is the first of them.
    """

    turn: str
    sent: dict[str, int]
    already_done: bool
    heard: dict[str, Any] | None = None
    turns: list[str] | None = None

    @property
    def stopped(self) -> list[str]:
        """All turns that are over with it."""
        return self.turns or [self.turn]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent:
    """With `n`: the rest of that segment (after `samples`) is not spoken; the session goes on."""

    code: str
    message: str
    retryable: bool
    turn: str | None = None
    n: int | None = None
    samples: int = 0
    expected: int | None = None


STATE_LOST = ErrorEvent(
    code="state_lost",
    message="the server lost what was published: publish the open turn again",
    retryable=True,
)
"""What every part that notices a loss tells the listeners."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """You asked for older entries than are kept; `first` is the first there is."""

    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The session is over; nothing more comes."""

    reason: str


Audio = (
    TurnStarted
    | SegmentStarted
    | AudioChunk
    | SegmentRestarted
    | SegmentDone
    | TurnDone
    | TurnCancelled
    | ErrorEvent
    | Gap
    | Closed
)
