"""Text of others never steers a terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.terminal import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hi\x1b[2J\a\r!", "Hi\\x1b[2J\\x07\\x0d!"),
        ("\x7f\x9b31m \u202egnp", "\\u007f\\u009b31m \\u202egnp"),
        ("one\n\ttwo", "one\n\ttwo"),
        ("naïve 漢字 👩\u200d💻", "naïve 漢字 👩\u200d💻"),
    ],
)
def test_what_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_no_control_character_is_left_and_json_stays_what_it_is(text: str) -> None:
    assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in visible(text))
    assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == text
