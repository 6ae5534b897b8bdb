"""A listener that believes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from firstword import messages as m


class Ear:
    """Hears a session's events and fails on whatever breaks a promise of the audio stream.

    `segments`: the audio of each, s16le. `ends`: `done` or the code of its error.
    """

    def __init__(self, events: Iterable[m.Audio]) -> None:
        self.turns: list[str] = []
        self.segments: dict[int, bytearray] = {}
        self.ends: dict[int, str] = {}
        self.turn_ends: dict[str, m.TurnDone | m.TurnCancelled] = {}
        self._open_turn = ""
        self._open_n = 0
        for event in events:
            self._hear(event)

    def _hear(self, event: m.Audio) -> None:
        turn = getattr(event, "turn", None)
        assert turn not in self.turn_ends, f"{event} came after the turn's end"
        match event:
            case m.TurnStarted():
                assert event.turn not in self.turns
                self.turns.append(event.turn)
                self._open_turn = event.turn
            case m.SegmentStarted():
                assert event.turn == self._open_turn
                assert event.n not in self.segments, "started twice"
                self.segments[event.n] = bytearray()
                self._open_n = event.n
            case m.AudioChunk():
                assert event.n == self._open_n
                assert event.turn == self._open_turn
                assert 0 < len(event.data) <= 16_000
                assert event.offset == len(self.segments[event.n]) // 2, "a gap or a repetition"
                self.segments[event.n] += event.data
            case m.SegmentRestarted():
                assert event.n == self._open_n
                self.segments[event.n].clear()
            case m.SegmentDone() | m.ErrorEvent():
                assert event.n is not None
                assert event.n not in self.ends, "ended twice"
                assert event.samples == len(self.segments.get(event.n, b"")) // 2
                self.ends[event.n] = "done" if isinstance(event, m.SegmentDone) else event.code
            case m.TurnDone() | m.TurnCancelled():
                self.turn_ends[event.turn] = event
            case _:
                pass
