"""What the gateway's core works on: a segment that is being spoken, or one that is likely."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from firstword import codec
from firstword import messages as m
from firstword import session_protocol as wire
from firstword.errors import UpstreamError
from services.tts_gateway.actions import Limits
from services.tts_gateway.progress import Progress


@dataclass(slots=True, eq=False)
class Work:
    """The segment being spoken. Without a request it waits for a connection, or to try again."""

    entry_id: str
    segment: m.Segment
    request: wire.Synthesize | None = None
    sent_at: float = 0.0
    heard_at: float | None = None
    arrived: int = 0
    """Samples that came for this request, including those that listeners had before."""
    plan: str = ""
    voice: str = ""
    """The voice that the backend chose, if the segment names none."""
    since: float = 0.0
    """When work on it began."""

    @property
    def skips(self) -> int:
        """Samples that listeners had before the server lost the turn: not to be published again."""
        return self.segment.skip_samples or 0

    @property
    def owed_since(self) -> float | None:
        """Since when the backend owes audio; None while no request runs."""
        if self.request is None:
            return None
        return self.sent_at if self.heard_at is None else self.heard_at

    def deadline(self, limits: Limits) -> float | None:
        """By when the next audio must come."""
        owed = self.owed_since
        if owed is None:
            return None
        return owed + (limits.first_byte_s if self.heard_at is None else limits.between_frames_s)


@dataclass(slots=True, eq=False)
class Early:
    """A synthesis begun on a hint: its events are held until the segment is committed."""

    hint: m.Tentative
    request: wire.Synthesize
    sent_at: float
    events: list[tuple[wire.Event, float]] = field(default_factory=list)


def request(
    said: m.Segment | m.Tentative,
    text: str,
    *,
    number: int,
    session: str,
    out: Progress,
    rate: int,
    ahead_s: float,
    lexicon: Mapping[str, str] | None = None,
    traceparent: str | None = None,
) -> wire.Synthesize:
    """The request for a segment; `ahead_s` of audio is out and not played yet."""
    same_turn = out.turn == said.turn
    resumed = out.samples_of(said.n) if out.plan else 0
    return wire.Synthesize(
        id=f"{said.n}.{number}",
        text=text,
        voice=said.voice or None,  # without one the backend chooses by the language
        speed=said.speed,
        lang=None if said.lang == "auto" else said.lang,
        sample_rate=out.turn_rate if same_turn else rate,
        # From the text, not from its number: a turn that is published again sounds the same.
        seed=zlib.crc32(f"{session} {said.turn} {text}".encode("utf-8", "surrogatepass")),
        deadline_ms=max(0, round(ahead_s * 1000)) if same_turn else 0,
        skip_samples=resumed,
        plan=out.plan if resumed else None,
        first=said.first if isinstance(said, m.Segment) else not same_turn,
        lexicon=lexicon,
        traceparent=traceparent,
    )


def rate_differs(start: wire.SynthesisStart, asked: wire.Synthesize) -> UpstreamError:
    """The error for a backend with another sample rate than the session's."""
    told = (
        f"the backend speaks at {start.sample_rate} Hz and the session wants {asked.sample_rate} "
        "Hz: open it with a sample_rate that the backend has"
    )
    return UpstreamError("sample_rate_differs", told)


def broken(turn: str | None = None) -> m.ErrorEvent:
    """The error for an entry on which our own code failed too often."""
    told = "this could not be handled, and was put aside for an operator"
    return m.ErrorEvent(code="failed", message=told, retryable=False, turn=turn)


def is_of(event: wire.Event, request: wire.Synthesize) -> bool:
    """Whether the event is an answer to this request."""
    return getattr(event, "id", None) == request.id


def announced(hint: m.Tentative, segment: m.Segment) -> bool:
    """Whether the segment is as the hint said, so that the audio made early may be used."""
    said = (hint.n, hint.text, hint.voice, hint.speed, hint.lang)
    return said == (segment.n, segment.spoken, segment.voice, segment.speed, segment.lang)


def is_speakable(segment: m.Segment) -> bool:
    """Whether it must make a sound: it has a letter or a digit."""
    return any(map(str.isalnum, segment.spoken))


def saved_settings(saved: Mapping[str, bytes]) -> m.SessionOpen:
    """The session's stored settings, or the defaults."""
    if "settings" in saved:
        settings = codec.unpack(saved["settings"], codec.SEGMENTS)
        if isinstance(settings, m.SessionOpen):
            return settings
    return m.SessionOpen(
        voice="", speed=1.0, lang="auto", sample_rate=wire.DEFAULT_SAMPLE_RATE, pace="realtime"
    )
