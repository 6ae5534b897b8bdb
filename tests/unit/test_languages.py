"""Which languages speak here, and what the others need."""

from __future__ import annotations

import argparse
import io
import json
import tomllib
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from firstword import languages
from firstword.cli import voices
from firstword.cli.console import Console
from services.agent.service import _known_voices
from tools.tree import ROOT


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def find(module: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(languages, "find_spec", find)
    languages.why_silent.cache_clear()
    yield
    languages.why_silent.cache_clear()


@pytest.mark.usefixtures("without_extras")
def test_what_needs_a_dictionary_says_which_extra_brings_it() -> None:
    assert languages.why_silent("ja") == "install firstword[japanese]"
    assert languages.why_silent("zh") == "install firstword[chinese]"
    assert languages.why_silent("es") == "install firstword[espeak]"
    assert languages.spoken() == ("en-us", "en-gb")


def test_what_the_model_does_not_speak_cannot_be_installed() -> None:
    assert languages.why_silent("de") == "the model does not speak it"


def test_the_extras_named_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert {extra for extra, _ in languages.NEEDS.values()} <= set(extras)


@pytest.mark.usefixtures("without_extras")
def test_an_agent_whose_voices_are_elsewhere_names_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its own machine needs no extra for what another one speaks."""
    monkeypatch.setenv("FIRSTWORD_MODEL_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert {"af_heart", "ef_dora", "jf_alpha"} <= {voice["id"] for voice in _known_voices()}


@pytest.mark.usefixtures("without_extras")
def test_the_list_of_voices_says_who_cannot_speak_and_why() -> None:
    out = io.StringIO()
    console = Console(out, io.StringIO())
    voices.run_list(argparse.Namespace(json=True), console, {})
    rows = {row["name"]: row for row in json.loads(out.getvalue())}
    assert (rows["af_heart"]["speaks"], rows["af_heart"]["needs"]) == (True, None)
    assert rows["bf_emma"]["speaks"]
    assert not rows["jf_alpha"]["speaks"]
    assert rows["jf_alpha"]["needs"] == "install firstword[japanese]"
    out.truncate(0)
    voices.run_list(argparse.Namespace(json=False), console, {})
    (line,) = [line for line in out.getvalue().splitlines() if "jf_alpha" in line]
    assert line.endswith("(cannot speak here: install firstword[japanese])")
