"""docs/DOCTOR.md and docs/UPSTREAMS.md tell the truth: every line and every code stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firstword.server_check import Facts, findings
from services.tts_gateway import doctor_pings
from services.tts_gateway.doctor import CHECKS
from services.tts_gateway.openai_frames import Target, refusal

DOCS = Path(__file__).parents[2] / "docs"
FIRST_CELL = re.compile(r"^\| `([a-z_]+)` \|", re.MULTILINE)
SERVER = [finding.name for finding in findings([Facts({}, {})])]


def test_every_line_of_the_doctor_is_explained_and_no_other() -> None:
    own = ["redis_reachable", *SERVER, "takes_writes", "partitions"]
    backend = ["upstream_settings", "upstream_reachable", "session_opens"]
    shown = [*own, *backend, *(check.name for check in CHECKS), doctor_pings.NAME]
    assert FIRST_CELL.findall((DOCS / "DOCTOR.md").read_text()) == shown


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 405, 429, 500, 502, 503, 504])
def test_what_a_speech_servers_status_becomes_is_told(status: int) -> None:
    rows = [row for row in (DOCS / "UPSTREAMS.md").read_text().splitlines() if row[:2] == "| "]
    code = refusal("1", status, "", Target("http://h/v1")).code
    (row,) = [row for row in rows if f"`{code}`" in row and "sample_rate" not in row]
    named = {302: "redirect", 500: "5xx"}.get(status, str(status))
    assert named in row
