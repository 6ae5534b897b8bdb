"""Names of variables: every one that is read is known, and a misspelt one is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.settings import table
from firstword.variables import DEPLOYED, KNOWN, READ, told, unknown
from services.agent.settings import AgentSettings
from services.inference.settings import InferenceSettings
from services.segmenter.settings import SegmenterSettings
from services.tts_gateway.settings import GatewaySettings
from tools.cores import ROOT

NAME = re.compile(r"FIRSTWORD_[A-Z0-9_]*[A-Z0-9]\b")


def named(*files: Path) -> set[str]:
    return {name for file in files for name in NAME.findall(file.read_text("utf-8"))}


def test_what_the_code_names_is_what_is_known() -> None:
    code = [file for where in ("firstword", "services") for file in (ROOT / where).rglob("*.py")]
    assert named(*code) == READ


def test_what_the_deployment_names_is_known() -> None:
    files = [ROOT / "deploy" / "compose.yaml", *(ROOT / "deploy" / "docker").iterdir()]
    names = named(*(file for file in files if file.is_file()))
    assert names <= KNOWN
    assert names >= DEPLOYED


@pytest.mark.parametrize(
    "cls", [AgentSettings, GatewaySettings, InferenceSettings, SegmenterSettings]
)
def test_every_setting_is_known(cls: type) -> None:
    names = {name for name, _, _ in table(cls)} - {"ECS_AGENT_URI"}
    assert names <= READ
    assert unknown(names) == []


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("FIRSTWORD_INFERENCE_PRECISON", "FIRSTWORD_INFERENCE_PRECISION"),
        ("FIRSTWORD_UPSTREEM", "FIRSTWORD_UPSTREAM"),
        ("FIRSTWORD_INFERENCE_MAX_WAITS", "FIRSTWORD_INFERENCE_MAX_WAIT_S"),
        ("FIRSTWORD_API_TOKEN", "FIRSTWORD_API_TOKENS"),
        ("FIRSTWORD_ZYXWVUTSRQ", None),
    ],
)
def test_a_misspelt_name_is_told_with_the_one_that_was_meant(name: str, near: str | None) -> None:
    assert unknown([name, "PATH", "FIRSTWORD_UPSTREAM", "FIRSTWORD_WEIGHTS"]) == [(name, near)]
    assert told(name, near).startswith(f"nothing reads {name}")
    assert near is None or near in told(name, near)


@given(st.lists(st.text(max_size=20)))
def test_other_names_are_none_of_ours(names: list[str]) -> None:
    assert all(name.startswith("FIRSTWORD_") for name, _ in unknown(names))
