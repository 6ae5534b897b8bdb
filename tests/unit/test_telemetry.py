"""Labels of metrics: a few known words, whatever a backend says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from firstword import telemetry

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
