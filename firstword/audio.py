"""Putting the audio of one turn together from a session's events, and writing it as WAV."""

from __future__ import annotations

import io
import wave
from dataclasses import dataclass, field

from firstword import messages as m
from firstword.heard import Heard

SAMPLE_BYTES = 2


@dataclass(slots=True)
class TurnAudio:
    """Collects the audio of one turn: give it every event of the session in order.

    Events of other turns, and repeated ones, are ignored. What a `segment_restarted` takes back is
    dropped. Missing audio becomes silence.
    """

    turn: str
    sample_rate: int | None = None
    end: m.TurnDone | m.TurnCancelled | m.Closed | None = None
    errors: list[m.ErrorEvent] = field(default_factory=list)
    _heard: Heard = field(default_factory=Heard)
    _segments: list[bytearray] = field(default_factory=list)
    _by_number: dict[int, bytearray] = field(default_factory=dict)

    def feed(self, message: m.Audio) -> bool:
        """Take one event; True once the turn is over, and `end` says how."""
        if isinstance(message, m.Closed):
            self.end = self.end or message
        elif isinstance(message, m.TurnCancelled) and self.turn in message.stopped:
            self.end = message
        elif getattr(message, "turn", None) == self.turn:
            new = self._heard.take(message)
            if new is not None:
                self._take(new)
        return self.end is not None

    def _take(self, message: m.Audio) -> None:
        match message:
            case m.TurnStarted():
                self.sample_rate = message.sample_rate
            case m.SegmentStarted():
                self._begin(message.n)  # a number may come again after a loss; its place does not
            case m.SegmentRestarted():
                self._of(message.n).clear()
            case m.AudioChunk():
                self._put(message)
            case m.ErrorEvent():
                self.errors.append(message)
            case m.TurnDone():
                self.end = message
            case _:  # a segment's end says nothing about its sound
                pass

    @property
    def pcm(self) -> bytes:
        """What has come so far: s16le mono at `sample_rate`, the segments one after the other."""
        return b"".join(self._segments)

    @property
    def samples(self) -> int:
        """Length of `pcm` in samples."""
        return sum(map(len, self._segments)) // SAMPLE_BYTES

    def _begin(self, n: int) -> bytearray:
        held = self._by_number[n] = bytearray()
        self._segments.append(held)
        return held

    def _of(self, n: int) -> bytearray:
        held = self._by_number.get(n)
        return self._begin(n) if held is None else held

    def _put(self, chunk: m.AudioChunk) -> None:
        held = self._of(chunk.n)
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
