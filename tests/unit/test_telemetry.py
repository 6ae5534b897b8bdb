"""Labels of metrics: a few known words, whatever a backend says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
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


ARGUMENT = {"_error": 1, "_one_of": 2}
"""Where a code stands among the arguments, if not first. Of `_one_of` it is made of its field."""
INFERENCE = (
    *("services/inference/*.py", "firstword/encoding.py", "firstword/session_codec.py"),
    *("services/inference/kokoro_torch/*.py", "services/inference/g2p/*.py"),
)
SYNTHESIS = {
    *("SynthesisError", "FrameError", "EncodingError", "LexiconError"),
    *("_error", "_one_of", "_refused", "error", "failed"),
}
AGENT = (
    "services/agent/*.py",
    *(f"firstword/{each}.py" for each in ("session", "room", "outbox", "publisher", "pieces")),
    *(f"firstword/{each}.py" for each in ("listener", "server_errors", "streams", "encoding")),
)
REFUSALS = {"RequestError", "AccessError", "SpokenError", "FirstwordError", "EncodingError"}
NO_REFUSAL = {
    *("bad_origins", "bad_tokens", "no_tokens"),  # the agent does not start
    *("internal", "source_failed"),  # events in an answer that has begun
    "too_slow",  # firstword_agent_cut_listeners_total
    "encoder_closed",  # a bug, and told as `failed`
}


def written_in(patterns: tuple[str, ...], told_by: set[str]) -> set[str]:
    """Codes that stand in these sources as words, where an error is made or told."""
    codes: set[str] = set()
    paths = [path for pattern in patterns for path in ROOT.glob(pattern)]
    assert len(paths) >= len(patterns)
    for node in (each for path in paths for each in ast.walk(ast.parse(path.read_text("utf-8")))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name not in told_by or isinstance(getattr(node.func, "value", None), ast.Call):
            continue  # the latter is `logger().error(…)`
        place = ARGUMENT.get(name, 0)
        said = [*node.args[place : place + 1]]
        said += [each.value for each in node.keywords if each.arg == "code"]
        words = [each.value for each in said if isinstance(each, ast.Constant)]
        form = "unsupported_{}" if name == "_one_of" else "{}"
        codes |= {form.format(word) for word in words if isinstance(word, str)}
    return codes


def test_every_code_of_the_inference_service_is_there_from_the_start() -> None:
    written = written_in(INFERENCE, SYNTHESIS)
    assert {"id_in_use", "bad_utf8", "unsupported_transport", "missing_package"} <= written
    assert written <= set(telemetry.LABELS[telemetry.synthesis_errors])


def test_every_code_that_a_caller_is_refused_with_is_there_from_the_start() -> None:
    written = written_in(AGENT, REFUSALS)
    assert {"no_such_path", "bad_method", "turn_taken", "no_receipt"} <= written
    known = set(telemetry.LABELS[telemetry.refused_requests])
    assert written - NO_REFUSAL <= known
    assert telemetry.ERROR_CODES <= known, "a request that waits for its speech says them, too"
    assert set(telemetry.LABELS[telemetry.turns]) - {"complete"} <= known, "how a turn ends"


def test_every_code_of_a_model_that_fails_is_there_from_the_start() -> None:
    written = written_in(("services/agent/*.py",), {"SourceError"})
    assert "source_cut" in written
    assert written <= set(telemetry.LABELS[telemetry.model_failures])


@pytest.mark.parametrize(
    ("count", "name"),
    [
        (telemetry.count_refusal, "firstword_agent_refused_requests_total"),
        (telemetry.count_synthesis_error, "firstword_synthesis_errors_total"),
    ],
)
def test_what_is_not_known_counts_as_other(count: Callable[[str], None], name: str) -> None:
    def counts(code: str) -> float | None:
        return REGISTRY.get_sample_value(name, {"code": code})

    before = counts("other") or 0.0
    count("of_a_backends_own")
    assert counts("other") == before + 1
    assert counts("of_a_backends_own") is None
    before = counts("busy") or 0.0
    count("busy")
    assert counts("busy") == before + 1


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
