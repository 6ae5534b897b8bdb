"""Labels of metrics: a few known words, whatever a backend says."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, CollectorRegistry, Histogram
from prometheus_client.metrics import MetricWrapperBase

from firstword import telemetry
from tools.metrics import PAGE, page

ROOT = Path(__file__).parents[2]
RAISED = {"UpstreamError", "ErrorEvent", "SynthesisError", "RemoteProtocolError"}
"""Their first argument, or `code`, is what an error event may say."""
WHERE = ("firstword/session_*.py", "services/tts_gateway/*.py", "services/segmenter/*.py")
ENGINES = ("services/inference/[!h]*.py",)  # over HTTP other codes are told, to others


def counted(code: str) -> float:
    return REGISTRY.get_sample_value("firstword_errors_total", {"code": code}) or 0.0


@pytest.mark.parametrize("code", ["who_knows", "", "a" * 1000, "42"])
def test_a_code_of_a_backends_own_is_no_label(code: str) -> None:
    before = counted("other")
    telemetry.count_error(code)
    assert counted("other") == before + 1
    assert REGISTRY.get_sample_value("firstword_errors_total", {"code": code}) is None


def test_a_code_of_ours_is_one() -> None:
    before = counted("gap")
    telemetry.count_error("gap")
    assert counted("gap") == before + 1


def told_in(path: Path) -> set[str]:
    """Codes of errors that are made there."""
    codes: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        if getattr(node.func, "id", getattr(node.func, "attr", "")) in RAISED:
            said = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "code")]
            codes |= {str(each.value) for each in said if isinstance(each, ast.Constant)}
    return codes


def test_every_code_that_the_sources_tell_is_known() -> None:
    paths = [path for pattern in (*WHERE, *ENGINES) for path in ROOT.glob(pattern)]
    assert paths
    paths = [path for path in paths if not path.name.startswith("doctor")]  # a command
    unknown = {
        (str(path.relative_to(ROOT)), code)
        for path in paths
        for code in told_in(path) - telemetry.ERROR_CODES
    }
    assert not unknown, "add them to ERROR_CODES"


def metrics() -> list[Any]:
    """Every metric that the module has."""
    return [
        each
        for name, each in vars(telemetry).items()
        if isinstance(each, MetricWrapperBase) and not name.startswith("_")
    ]


def test_every_metric_stands_in_one_section() -> None:
    listed = [metric for section in telemetry.SECTIONS.values() for metric in section]
    assert sorted(map(id, listed)) == sorted(map(id, metrics()))


def test_the_page_of_the_metrics_is_theirs() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(PAGE.read_text(encoding="utf-8")), (
        "make it anew: python -m tools.metrics"
    )


def test_names_say_what_they_are_and_every_metric_has_a_help() -> None:
    for metric in metrics():
        family = metric.describe()[0]
        assert family.name.startswith("firstword_")
        assert family.documentation.endswith(".")
        if family.type == "histogram" and family.name != "firstword_rtf":
            assert family.name.endswith("_seconds")


def test_what_a_label_may_say_is_there_as_a_zero_from_the_start() -> None:
    unlisted = {telemetry.build}
    for metric in metrics():
        if not metric._labelnames or metric in unlisted:
            continue
        (label,) = metric._labelnames
        name = metric.describe()[0].name + {"counter": "_total", "histogram": "_count"}.get(
            metric._type, ""
        )
        for value in telemetry.LABELS[metric]:
            assert REGISTRY.get_sample_value(name, {label: value}) is not None


def test_labels_never_carry_a_session_a_turn_or_text() -> None:
    labels = {label for metric in metrics() for label in metric._labelnames}
    assert labels <= {
        *("stage", "outcome", "code", "reason", "mode", "door", "check"),
        *("service", "version", "python"),
    }


def test_reasons_that_the_sources_name_are_known() -> None:
    segmenter = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "services/segmenter").glob("*.py")
    )
    told = re.findall(r'Skipped\("(\w+)"\)|skipped\.labels\("(\w+)"\)', segmenter)
    assert {a or b for a, b in told} <= set(telemetry.LABELS[telemetry.skipped])
    codec = (ROOT / "firstword/codec.py").read_text(encoding="utf-8")
    decode = set(re.findall(r'DecodeError\(\s*"(\w+)"', codec))
    assert decode <= set(telemetry.LABELS[telemetry.dead_letters])


def test_the_objective_is_a_boundary_of_the_buckets() -> None:
    for metric in (telemetry.first_audio, telemetry.client_first_audio):
        assert telemetry.SLO_FIRST_AUDIO_S in metric._kwargs["buckets"]


def test_a149_the_buckets_reach_far_beyond_the_objective_and_what_lies_beyond_is_counted() -> None:
    assert telemetry.FIRST_AUDIO[-1] >= 10 * telemetry.SLO_FIRST_AUDIO_S
    registry = CollectorRegistry()
    first_audio = Histogram("a_seconds", "-", buckets=telemetry.FIRST_AUDIO, registry=registry)
    first_audio.observe(30)
    assert registry.get_sample_value("a_seconds_bucket", {"le": "10.0"}) == 0
    assert registry.get_sample_value("a_seconds_bucket", {"le": "+Inf"}) == 1
    # The rule FirstwordFirstAudioOffTheScale goes by the difference.


@given(milliseconds=st.floats(20.01, 1000))
def test_a150_a_median_is_right_to_a_tenth_even_if_every_turn_takes_the_same(
    milliseconds: float,
) -> None:
    """As Prometheus does: a straight line through the bucket in which the median lies."""
    seconds = milliseconds / 1000
    bounds = (0.0, *telemetry.FIRST_AUDIO)
    low, high = next(pair for pair in pairwise(bounds) if pair[0] < seconds <= pair[1])
    assert abs((low + high) / 2 - seconds) / seconds < 0.1


@pytest.mark.parametrize(
    ("traceparent", "exemplar"),
    [
        ("00-" + "0af7" * 8 + "-b7ad6b7169203331-01", {"trace_id": "0af7" * 8}),
        (None, None),
        ("", None),
        ("00-trace", None),
        ("00-" + "0AF7" * 8 + "-b7ad6b7169203331-01", None),
        ("00-" + "a" * 500 + "-b-01", None),
    ],
)
def test_a_measurement_leads_to_its_trace(
    traceparent: str | None, exemplar: dict[str, str] | None
) -> None:
    assert telemetry.trace_of(traceparent) == exemplar


def test_exemplars_are_told_to_who_asks_for_openmetrics() -> None:
    telemetry.first_audio.observe(0.1, {"trace_id": "0af7" * 8})
    told, kind = telemetry.exposition("application/openmetrics-text;version=1.0.0,*/*;q=0.1")
    assert kind.startswith("application/openmetrics-text")
    assert b'# {trace_id="' in told
    assert told.endswith(b"# EOF\n")
    plain, kind = telemetry.exposition("")
    assert kind.startswith("text/plain")
    assert b"trace_id" not in plain
