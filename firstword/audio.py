"""Putting the audio of one turn together from a session's events, and writing it as WAV."""

from __future__ import annotations

import io
import wave
from dataclasses import dataclass, field

from firstword import messages as m

SAMPLE_BYTES = 2


@dataclass(slots=True)
class TurnAudio:
    """Collects the audio of one turn: give it every event of the session in order.

    Events of other turns are ignored. What a `segment_restarted` takes back is dropped.
    """

    turn: str
    sample_rate: int | None = None
    end: m.TurnDone | m.TurnCancelled | m.Closed | None = None
    errors: list[m.ErrorEvent] = field(default_factory=list)
    _segments: dict[int, bytearray] = field(default_factory=dict)

    def feed(self, message: m.Audio) -> bool:
        """Take one event; True once the turn is over, and `end` says how."""
        if isinstance(message, m.Closed):
            self.end = self.end or message
        elif getattr(message, "turn", None) == self.turn:
            self._take(message)
        return self.end is not None

    def _take(self, message: m.Audio) -> None:
        match message:
            case m.TurnStarted():
                self.sample_rate = message.sample_rate
            case m.SegmentRestarted():
                self._segments[message.n] = bytearray()
            case m.AudioChunk():
                self._put(message)
            case m.ErrorEvent():
                self.errors.append(message)
            case m.TurnDone() | m.TurnCancelled():
                self.end = message
            case _:  # a segment's start and end say nothing about its sound
                pass

    @property
    def pcm(self) -> bytes:
        """What has come so far: s16le mono at `sample_rate`, the segments one after the other."""
        return b"".join(bytes(self._segments[n]) for n in sorted(self._segments))

    @property
    def samples(self) -> int:
        """Length of `pcm` in samples."""
        return sum(map(len, self._segments.values())) // SAMPLE_BYTES

    def _put(self, chunk: m.AudioChunk) -> None:
        held = self._segments.setdefault(chunk.n, bytearray())
        start = chunk.offset * SAMPLE_BYTES
        if start > len(held):  # a listener that fell behind: silence keeps the timing right
            held.extend(bytes(start - len(held)))
        held[start : start + len(chunk.data)] = chunk.data


def wav_bytes(pcm: bytes, sample_rate: int) -> bytes:
    """A WAV file of s16le mono samples."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(SAMPLE_BYTES)
        file.setframerate(sample_rate)
        file.writeframes(pcm)
    return out.getvalue()
