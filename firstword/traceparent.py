"""The trace that a publisher's text belongs to, by W3C's `traceparent`."""

from __future__ import annotations

import re
import sys
from contextvars import ContextVar
from typing import Final

given: Final[ContextVar[str | None]] = ContextVar("traceparent", default=None)
"""What came with the request that is being served, from whoever made it."""


_WELL_FORMED: Final = re.compile(
    "[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)


def take(header: str | None) -> None:
    """From now on the caller serves a request with this header; what cannot be read is none."""
    given.set(header if header and _WELL_FORMED.fullmatch(header) else None)


def current() -> str | None:
    """The `traceparent` of the OpenTelemetry span that surrounds the caller, else the `given` one.

    A program that has not imported OpenTelemetry has no span, and does not pay for the look.
    """
    return of_span() or given.get()


def of_span() -> str | None:
    """The `traceparent` of the span that surrounds the caller, if there is one."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
