"""docs/AGENT.md tells every setting as it is."""

from __future__ import annotations

from pathlib import Path

from firstword.settings import table
from services.agent.settings import AgentSettings

DOCS = Path(__file__).parents[3] / "docs" / "AGENT.md"


def test_every_setting_is_told() -> None:
    told = DOCS.read_text(encoding="utf-8")
    for variable, default, help_text in table(AgentSettings):
        assert f"| {variable} | {default} | {help_text} |" in told
