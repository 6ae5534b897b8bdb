"""docs/INFERENCE.md tells the truth: its frames decode, its settings and errors exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from firstword.session_protocol import decode_client, decode_server
from firstword.settings import table
from services.inference.settings import InferenceSettings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "INFERENCE.md").read_text("utf-8")
CLIENT = {"synthesize", "cancel", "ping", "close"}
FRAMES = re.findall(r'(?:^|`)(\{"type"[^`\n]*\})(?:$|`)', PAGE, re.MULTILINE)
CODE = re.compile(
    r"(?:SynthesisError|FrameError|(?<!logger\(\))[._]error|_refused|failed)"
    r'\(\s*(?:request, )?"([a-z0-9_]+)",'
)


@pytest.mark.parametrize("frame", FRAMES)
def test_every_frame_on_the_page_is_understood(frame: str) -> None:
    decode = decode_client if json.loads(frame)["type"] in CLIENT else decode_server
    decode(frame)


def test_there_are_frames_on_the_page() -> None:
    assert len(FRAMES) >= 8


def test_every_setting_is_on_the_page_with_its_default() -> None:
    for variable, default, _help in table(InferenceSettings):
        number = default.removesuffix(".0")
        assert f"| `{variable}` | {number} |" in PAGE


def test_every_error_code_of_the_code_is_on_the_page() -> None:
    sources = [*(ROOT / "services" / "inference").glob("*.py"), ROOT / "firstword/session_codec.py"]
    codes = {code for path in sources for code in CODE.findall(path.read_text("utf-8"))}
    assert {"empty_text", "bad_json", "engine_failed", "synthesis_stuck", "busy"} <= codes
    assert [code for code in sorted(codes) if f"`{code}`" not in PAGE] == []
