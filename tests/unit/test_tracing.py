"""Traces are exported where the environment says, and cost nothing where it does not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog

from firstword import traceparent, tracing
from tests.doubles.otlp_collector import collector
from tests.support import eventually

EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


@pytest.fixture(autouse=True)
def off_again() -> Iterator[None]:
    yield
    tracing.use(None)


async def test_spans_are_exported_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with collector() as (url, came):
        monkeypatch.setenv(tracing.ENDPOINT, url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        # Services do it before their loop runs.
        await asyncio.to_thread(tracing.configure, "gateway")
        trace = tracing.TurnTrace(None, "s", "t", "1700000000000-0")
        await asyncio.to_thread(trace.record, "turn", 1.7e9, 1.7e9 + 1, outcome="complete")
        await eventually(lambda: came, "the collector has a span")
    assert b"firstword.turn" in came[0]
    assert b"firstword-gateway" in came[0]


def test_without_an_endpoint_there_are_none() -> None:
    tracing.configure("gateway", {})
    trace = tracing.TurnTrace(None, "s", "t", "1-0")
    trace.record("turn", 0, 1)
    assert trace.exemplar is None
    with tracing.span("firstword.reply"):
        assert traceparent.current() is None


def test_where_the_extra_is_not_installed_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, EXPORTER, None)
    with structlog.testing.capture_logs() as logs:
        tracing.configure("gateway", {tracing.ENDPOINT: "http://127.0.0.1:1"})
    [line] = logs
    assert line["event"] == "tracing_not_installed"
    assert "firstword[tracing]" in line["remedy"]


def test_a_traceparent_that_is_none_after_all_makes_a_trace_of_the_turns_own() -> None:
    from opentelemetry.sdk.trace import TracerProvider

    tracing.use(TracerProvider())
    own = tracing.TurnTrace(None, "s", "t", "1-0")
    other = tracing.TurnTrace(f"00-{'a' * 32}-not hexadecimal-01", "s", "t", "1-0")
    assert own.exemplar is not None
    assert other.exemplar == own.exemplar


def test_no_exporter_is_imported_for_nothing() -> None:
    told = "import sys, firstword.tracing; print([n for n in sys.modules if 'otlp' in n])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


WELL_FORMED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        (WELL_FORMED, WELL_FORMED),
        (None, None),
        ("", None),
        (WELL_FORMED + "-and-more", None),
        (WELL_FORMED.replace("a", "A"), None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None),
        (f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01", None),
    ],
)
def test_the_trace_of_a_request_is_the_one_that_its_header_says(
    header: str | None, taken: str | None
) -> None:
    traceparent.take("00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    traceparent.take(header)
    assert traceparent.current() == taken
    traceparent.take(None)
