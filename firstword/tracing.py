"""One trace for each turn, over all services (the extra `tracing`).

Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set: then no exporter is imported, and all here returns
at once. Spans are made when their ends are known, by the Redis server's clock, so that those of
several machines lie right beside each other.

A turn belongs to the trace of its text's `traceparent`; without one to a trace of its own, whose id
every service makes out of the same three things.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from firstword import telemetry
from firstword.ids import id_key

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"

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
    """A span around what the caller does; what is published meanwhile carries its `traceparent`."""
    if _tracer is None:
        yield
        return
    with _tracer.start_as_current_span(name):
        yield


class TurnTrace:
    """The spans of one turn at one service, each a child of what its text came with.

    `exemplar` leads from a measurement of the turn to them; None where there is no trace.
    """

    def __init__(self, traceparent: str | None, session: str, turn: str, opened_at: str) -> None:
        self.turn = turn
        self.opened_at = opened_at
        self.exemplar = telemetry.trace_of(traceparent)
        self._context: Any = None
        self._attributes = {"firstword.session": session, "firstword.turn": turn}
        if _tracer is not None:
            self._context, trace_id = _parent(traceparent, f"{session} {turn} {opened_at}")
            self.exemplar = {"trace_id": trace_id}

    def record(self, name: str, start_s: float, end_s: float, **said: float | str) -> None:
        """A span that is over; seconds since 1970, by the server's clock (`at`)."""
        if self._context is None or _tracer is None:
            return
        began = _tracer.start_span(
            f"firstword.{name}",
            context=self._context,
            start_time=_ns(start_s),
            attributes=self._attributes
            | {f"firstword.{key}": value for key, value in said.items()},
        )
        began.end(_ns(max(start_s, end_s)))


def at(entry_id: str) -> float:
    """When an entry was written, seconds since 1970."""
    return id_key(entry_id)[0] / 1000


def _ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def _parent(traceparent: str | None, turn: str) -> tuple[Any, str]:
    """The context that spans of a turn are made in, and the id of its trace."""
    from opentelemetry import trace

    digest = hashlib.sha256(turn.encode("utf-8", "surrogatepass")).digest()
    trace_id, span_id, flags = int.from_bytes(digest[:16]), int.from_bytes(digest[16:24]), 1
    if telemetry.trace_of(traceparent) is not None:
        with contextlib.suppress(ValueError):  # not hexadecimal after all
            told = [int(part, 16) for part in (traceparent or "").split("-")[1:4]]
            trace_id, span_id, flags = told
    known = trace.SpanContext(
        trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags)
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(known)), f"{trace_id:032x}"
