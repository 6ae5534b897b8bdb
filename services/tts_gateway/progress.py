"""How much of a session is published: the events of its audio stream, and the fields that say so.

Every event is made together with the change of state that it means, so that the state stored with a
commit is always what listeners have once it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from firstword import messages as m
from firstword.errors import FirstwordError
from firstword.ids import START, id_key
from firstword.session_protocol import BYTES_PER_SAMPLE, DEFAULT_SAMPLE_RATE, Words
from services.tts_gateway.actions import Fields, Limits


@dataclass(slots=True)
class Progress:
    """How far a session has been spoken; stored with every commit."""

    position: str = START
    """The last finished entry of the segments stream."""
    turn: str = ""
    """The turn that has begun and not ended, '' between turns."""
    turn_at: str = ""
    """Entry id of its first event."""
    turn_rate: int = DEFAULT_SAMPLE_RATE
    """Its sample rate, in Hz: fixed once announced, although the session's may change."""
    turn_segments: int = 0
    """How many of its segments are done; a cancel's receipt says so."""
    turn_samples: int = 0
    n: int = 0
    """The last segment that has audio."""
    samples: int = 0
    """How many samples of that segment are published."""
    plan: str = ""
    """The plan of its audio; see `skip_samples` of the session frames."""

    @classmethod
    def restore(cls, saved: Mapping[str, bytes]) -> Progress:
        """As another worker, or this one, left it."""
        progress = cls()
        for field in fields(cls):
            if field.name in saved:
                kind = type(getattr(progress, field.name))
                setattr(progress, field.name, kind(saved[field.name].decode()))
        return progress

    def fields(self) -> Fields:
        """The fields of the state hash, without `turn_at`: the server gives that one."""
        return {name: str(value) for name, value in asdict(self).items() if name != "turn_at"}

    def samples_of(self, n: int) -> int:
        """How many samples of segment `n` are published."""
        return self.samples if self.n == n else 0

    # -- a segment --------------------------------------------------------------------------------

    def open_turn(self, segment: m.Segment, rate: int, chosen: str = "") -> list[m.Audio]:
        """The events before the first audio of a turn; none if it has begun.

        `chosen`: the voice that the backend chose for a segment that names none.
        """
        if self.turn == segment.turn:
            return []
        self.turn, self.turn_at, self.turn_rate = segment.turn, "", rate
        self.turn_segments = self.turn_samples = 0
        voice = segment.voice or chosen
        return [m.TurnStarted(turn=segment.turn, voice=voice, sample_rate=rate)]

    def open_segment(
        self, segment: m.Segment, plan: str, committed_at: str, ttfb_s: float, skipped: int
    ) -> list[m.Audio]:
        """The events before the first audio of a segment; none if it has some already.

        In a turn that is spoken again, `skipped` samples count as published: listeners have them.
        """
        self.plan = plan
        if self.n == segment.n:
            return []
        self.n, self.samples = segment.n, 0
        self._add(skipped)
        return [
            m.SegmentStarted(
                turn=segment.turn,
                n=segment.n,
                text=segment.text,
                start=segment.start,
                end=segment.end,
                committed_at=committed_at,
                ttfb_ms=round(max(0.0, ttfb_s) * 1000, 1),
                spoken=None if segment.spoken == segment.text else segment.spoken,
            )
        ]

    def audio(
        self, segment: m.Segment, data: bytes, limits: Limits, *, first: bool
    ) -> list[m.Audio]:
        """The next audio of the open segment, in chunks; the first one is short, for TTFA."""
        chunks: list[m.Audio] = []
        seconds = limits.first_chunk_s if first else limits.chunk_s
        at = 0
        while at < len(data):
            piece = data[at : at + _chunk_bytes(seconds, self.turn_rate, limits)]
            chunks.append(
                m.AudioChunk(turn=segment.turn, n=segment.n, offset=self.samples, data=piece)
            )
            self._add(len(piece) // BYTES_PER_SAMPLE)
            at += len(piece)
            seconds = limits.chunk_s
        return chunks

    def restart(self, segment: m.Segment) -> m.SegmentRestarted:
        """Take back what is published of the open segment."""
        self._add(-self.samples)
        return m.SegmentRestarted(turn=segment.turn, n=segment.n)

    def done(self, segment: m.Segment, words: Words) -> m.SegmentDone:
        """The segment is complete. One without a sound ends without having started."""
        if self.turn == segment.turn:
            self.turn_segments += 1
        return m.SegmentDone(
            turn=segment.turn,
            n=segment.n,
            samples=self.samples_of(segment.n),
            words=[list(word) for word in words],
        )

    def failed(self, segment: m.Segment, error: FirstwordError) -> m.ErrorEvent:
        """The rest of the segment will not be spoken."""
        return m.ErrorEvent(
            code=error.code,
            message=error.message,
            retryable=error.retryable,
            turn=segment.turn,
            n=segment.n,
            samples=self.samples_of(segment.n),
        )

    def _add(self, samples: int) -> None:
        self.samples += samples
        self.turn_samples += samples

    # -- a turn's end -----------------------------------------------------------------------------

    def turn_done(self, end: m.TurnEnd) -> m.TurnDone:
        """The turn is over. TTFA is known if it made a sound."""
        spoken = self.turn == end.turn
        ttfa_ms = None
        if spoken and self.turn_at and end.opened_at:
            ttfa_ms = float(id_key(self.turn_at)[0] - id_key(end.opened_at)[0])
        return m.TurnDone(
            turn=end.turn,
            segments=end.segments,
            samples=self.turn_samples if spoken else 0,
            ttfa_ms=ttfa_ms,
            reason=end.reason,
        )

    def after_turn(self) -> Progress:
        """The same position, without a turn."""
        return Progress(self.position)

    def after_turn_fields(self) -> Fields:
        """The fields of `after_turn`; the turn's own are deleted."""
        gone: Fields = {field.name: None for field in fields(self)}
        return {**gone, "position": self.position}


def _chunk_bytes(seconds: float, rate: int, limits: Limits) -> int:
    samples = min(int(seconds * rate), limits.chunk_bytes // BYTES_PER_SAMPLE)
    return max(1, samples) * BYTES_PER_SAMPLE
