"""One trace for each turn, over all services (the extra `tracing`).

Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set: without it no exporter is imported, and everything
here returns at once. Spans are made when their ends are known, on the Redis server's clock, so that
those of several machines fit together.

A turn belongs to the trace of its text's `traceparent`; without one to a trace of its own, whose id
every service makes out of the same three things.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from firstword import telemetry, traceparent
from firstword.ids import id_key

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"

_Ids = tuple[int, int, int]
"""Trace id, id of the parent's span, flags."""

_tracer: Any = None
"""Any: OpenTelemetry may not be there."""


def configure(service: str, environ: Mapping[str, str] = os.environ) -> None:
    """Export this process's spans by OTLP over HTTP, if the environment says where to.

    The other variables are OpenTelemetry's own (OTEL_EXPORTER_OTLP_HEADERS, …).
    """
    if not environ.get(ENDPOINT):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        remedy = f"pip install 'firstword[tracing]', or unset {ENDPOINT}"
        telemetry.logger().warning("tracing_not_installed", remedy=remedy)
        return
    provider = TracerProvider(resource=Resource.create({"service.name": f"firstword-{service}"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    use(provider)


def use(provider: Any) -> None:
    """Make spans with this provider from now on; None: make none."""
    global _tracer
    _tracer = None if provider is None else provider.get_tracer("firstword")


@contextlib.contextmanager
def span(name: str) -> Iterator[None]:
    """A span around what the caller does; what is published meanwhile carries its `traceparent`.

    It is a child of the span around it, else of the one that the request came with.
    """
    if _tracer is None:
        yield
        return
    ids = None if traceparent.of_span() else _told(traceparent.given.get())
    with _tracer.start_as_current_span(name, context=None if ids is None else _context(ids)):
        yield


class Trace:
    """Spans that are children of one that was made elsewhere, or would have been."""

    def __init__(self, parent: _Ids | None, **said: str) -> None:
        self._context = None if parent is None else _context(parent)
        self._attributes = _named(said)

    def record(self, name: str, start_s: float, end_s: float, **said: float | str) -> None:
        """A span that is over; seconds since 1970, by the server's clock (`at`) where it tells."""
        if self._context is None or _tracer is None:
            return
        began = _tracer.start_span(
            f"firstword.{name}",
            context=self._context,
            start_time=_ns(start_s),
            attributes=self._attributes | _named(said),
        )
        began.end(_ns(max(start_s, end_s)))


class TurnTrace(Trace):
    """The spans of one turn at one service, each a child of what its text came with.

    `exemplar` leads from a measurement of the turn to them, `traceparent` makes spans elsewhere
    part of them; None where there is no trace.
    """

    def __init__(self, traceparent: str | None, session: str, turn: str, opened_at: str) -> None:
        self.turn = turn
        self.opened_at = opened_at
        self.exemplar = telemetry.trace_of(traceparent)
        self.traceparent: str | None = None
        ids: _Ids | None = None
        if _tracer is not None:
            ids = _told(traceparent) or _own(f"{session} {turn} {opened_at}")
            trace_id, span_id, flags = ids
            self.exemplar = {"trace_id": f"{trace_id:032x}"}
            self.traceparent = f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}"
        super().__init__(ids, session=session, turn=turn)


class RequestTrace(Trace):
    """The spans of one request to a container; none unless it came with a `traceparent`."""

    def __init__(self, traceparent: str | None, request: str) -> None:
        super().__init__(None if _tracer is None else _told(traceparent), request=request)


def at(entry_id: str) -> float:
    """When an entry was written, seconds since 1970."""
    return id_key(entry_id)[0] / 1000


def _ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def _named(said: Mapping[str, float | str]) -> dict[str, float | str]:
    return {f"firstword.{key}": value for key, value in said.items()}


def _told(traceparent: str | None) -> _Ids | None:
    """What a `traceparent` says; None if it says nothing that can be read."""
    if telemetry.trace_of(traceparent) is None:
        return None
    try:
        trace_id, span_id, flags = (int(part, 16) for part in (traceparent or "").split("-")[1:4])
    except ValueError:  # not hexadecimal after all
        return None
    return trace_id, span_id, flags & 0xFF


def _own(turn: str) -> _Ids:
    """Those of a turn that came without: the same at every service."""
    digest = hashlib.sha256(turn.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:24]), 1


def _context(ids: _Ids) -> Any:
    from opentelemetry import trace

    trace_id, span_id, flags = ids
    known = trace.SpanContext(
        trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags)
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(known))
