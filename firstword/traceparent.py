"""The trace that a publisher's text belongs to, by W3C's `traceparent`."""

from __future__ import annotations

import sys


def current() -> str | None:
    """The `traceparent` of the OpenTelemetry span that surrounds the caller, where there is one.

    A program that has not imported OpenTelemetry has none, and does not pay for the look.
    """
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
