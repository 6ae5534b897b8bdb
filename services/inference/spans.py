"""The spans of one request: how long it waited for the engine, and how long it was spoken."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from firstword.session_protocol import Synthesize
from firstword.tracing import RequestTrace
from services.inference.synthesizer import Stopped, SynthesisError


class RequestSpans:
    """Of the block that speaks a request; made when it ends, whatever ends it.

    Times are this machine's: a container knows no other clock. Where no traces are exported, or the
    request belongs to none, there are none.
    """

    def __init__(self, request: Synthesize) -> None:
        self._trace = RequestTrace(request.traceparent, request.id)
        self._accepted = self._made = time.time()
        self._begun: float | None = None
        self._worked_s = 0.0

    def piece(self, waited_s: float, worked_s: float) -> None:
        """A piece was made; it had waited, and the engine worked so long for it."""
        self._made = time.time()
        self._worked_s += worked_s
        if self._begun is None:
            self._begun = self._accepted + waited_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        outcome = _outcome(error)
        if self._begun is None:
            self._trace.record("queue", self._accepted, time.time(), outcome=outcome)
            return
        self._trace.record("queue", self._accepted, self._begun)
        self._trace.record(
            "synthesis", self._begun, self._made, outcome=outcome, worked_s=self._worked_s
        )


def _outcome(error: BaseException | None) -> str:
    match error:
        case None:
            return "complete"
        case Stopped():
            return "cancelled"
        case SynthesisError(code=code):
            return code
        case Exception():
            return "engine_failed"
        case _:  # who listened is gone
            return "cancelled"
