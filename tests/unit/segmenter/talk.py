"""A session core with its clock and its entries: what the tests of the session talk to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from firstword import messages as m
from services.segmenter.core import SegmenterOptions
from services.segmenter.session import Session
from services.segmenter.turns import (
    CancelTurns,
    Defaults,
    ForGateway,
    ForListeners,
    Output,
    Skipped,
)

STALL = 0.25


class Talk:
    """Publishes to one session. Entry ids count up from `1-0`; `outputs` is all that came out."""

    def __init__(self, *, stall: float = 0.0, **defaults: Any) -> None:
        self.defaults = Defaults(
            lang="en", options=SegmenterOptions(lang="en", stall=stall), **defaults
        )
        self.session = Session("demo", self.defaults)
        self.now = 100.0
        self.entries = 0
        self.queued = 0
        """Entries that wait before the gateway whenever ours are stored."""
        self.outputs: list[Output] = []

    def put(self, *messages: m.Ingress) -> list[Output]:
        """Hand over one entry."""
        self.entries += 1
        return self._keep(self.session.handle(f"{self.entries}-0", messages, self.now))

    def open(self, **settings: Any) -> list[Output]:
        return self.put(m.Open(session="demo", **settings))

    def text(self, text: str, turn: str | None = None, **fields: Any) -> list[Output]:
        return self.put(m.Text(session="demo", text=text, turn=turn, **fields))

    def flush(self, turn: str | None = None, **fields: Any) -> list[Output]:
        return self.put(m.Flush(session="demo", turn=turn, **fields))

    def end(self, turn: str | None = None, **fields: Any) -> list[Output]:
        return self.put(m.End(session="demo", turn=turn, **fields))

    def cancel(self, turn: str | None = None, played: dict[str, Any] | None = None) -> list[Output]:
        return self.put(m.Cancel(session="demo", turn=turn, played=played))

    def resume(self, turn: str, start: int, samples: int, end: int | None = None) -> list[Output]:
        resume = m.Resume(session="demo", turn=turn, start=start, samples=samples, end=end)
        return self.put(resume)

    def close(self) -> list[Output]:
        return self.put(m.Close(session="demo"))

    def wait(self, seconds: float) -> list[Output]:
        """Let time pass, ticking whenever the session asks for it."""
        until = self.now + seconds
        out: list[Output] = []
        while (at := self.session.timer()) is not None and at <= until:
            self.now = max(self.now, at)
            out += self._keep(self.session.tick(self.now))
            following = self.session.timer()
            assert following is None or following > self.now, "a tick settles what was due"
        self.now = until
        return out

    def succeed(self) -> None:
        """Another worker takes over from what is stored."""
        stored = msgpack.packb(self.session.snapshot(), unicode_errors="surrogateescape")
        saved = msgpack.unpackb(stored, unicode_errors="surrogateescape")
        self.session = Session.restore("demo", self.defaults, saved, self.now)

    def _keep(self, outputs: list[Output]) -> list[Output]:
        self.outputs += outputs
        self.session.committed(self.queued)
        return outputs


def to_gateway(outputs: Sequence[Output]) -> list[m.Segments]:
    return [output.message for output in outputs if isinstance(output, ForGateway)]


def segments(outputs: Sequence[Output]) -> list[m.Segment]:
    return [message for message in to_gateway(outputs) if isinstance(message, m.Segment)]


def spoken(outputs: Sequence[Output]) -> list[tuple[str, str]]:
    """(turn, text) of the segments."""
    return [(segment.turn, segment.text) for segment in segments(outputs)]


def hints(outputs: Sequence[Output]) -> list[m.Segments]:
    return [h for h in to_gateway(outputs) if isinstance(h, m.Tentative | m.Revoke)]


def ends(outputs: Sequence[Output]) -> list[tuple[str, int, str]]:
    """(turn, segments, reason) of the turns that ended."""
    return [
        (message.turn, message.segments, message.reason)
        for message in to_gateway(outputs)
        if isinstance(message, m.TurnEnd)
    ]


def errors(outputs: Sequence[Output]) -> list[m.ErrorEvent]:
    return [
        output.message
        for output in outputs
        if isinstance(output, ForListeners) and isinstance(output.message, m.ErrorEvent)
    ]


def skipped(outputs: Sequence[Output]) -> list[str]:
    return [output.reason for output in outputs if isinstance(output, Skipped)]


def cancels(outputs: Sequence[Output]) -> list[CancelTurns]:
    return [output for output in outputs if isinstance(output, CancelTurns)]
