"""What publishers without Redis may ask for, as the stream's messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import codec
from firstword import messages as m
from services.agent.core import Limits, RequestError
from services.agent.ingress import KINDS, read

LIMITS = Limits(max_text_chars=50, tokens_per_second=30)


def asked(kind: str, **body: Any) -> Any:
    return read(kind, json.dumps(body).encode(), "demo", LIMITS)


def test_a_text_and_its_end() -> None:
    text = m.Text(session="demo", text=" Hi.", turn="t", seq=3, voice="af_sky", speed=2.0, lang="x")
    assert asked("text", text=" Hi.", turn="t", seq=3, voice="af_sky", speed=2, lang="x") == [text]
    assert asked("text", text=" ", turn="t") == [m.Text(session="demo", text=" ", turn="t")]
    assert asked("text", text="Hi.", turn="t", seq=3, again=0, end=True) == [
        m.Text(session="demo", text="Hi.", turn="t", seq=3, again=0),
        m.End(session="demo", turn="t", seq=4, again=0),
    ]
    assert asked("text", text="Hi.", end=True)[1] == m.End(session="demo")


def test_the_others() -> None:
    assert asked("flush", turn="t", seq=1) == [m.Flush(session="demo", turn="t", seq=1)]
    assert asked("end", turn="t") == [m.End(session="demo", turn="t")]
    assert asked("close") == read("close", b" ", "demo", LIMITS) == [m.Close(session="demo")]
    assert asked("cancel") == m.Cancel(session="demo")
    heard = {"turn": "t", "n": 1, "samples": 2}
    cancel = m.Cancel(session="demo", turn="t", played=heard)
    assert asked("cancel", turn="t", played=heard) == cancel
    opened = m.Open(session="demo", voice="af_sky", sample_rate=8000, pace="none", meta={"a": 1})
    given = asked("open", voice="af_sky", sample_rate=8000, pace="none", meta={"a": 1}, more=1)
    assert given == [opened]
    assert asked("open") == [m.Open(session="demo")]


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        ("text", {}, "missing_text"),
        ("text", {"text": ""}, "missing_text"),
        ("text", {"text": 5}, "missing_text"),
        ("text", {"text": "x" * 51}, "too_large"),
        ("text", {"text": "\ud800"}, "bad_text"),
        ("text", {"text": "x", "end": 1}, "bad_field"),
        ("text", {"text": "x", "turn": "a b"}, "bad_name"),
        ("text", {"text": "x", "turn": "t", "seq": -1}, "bad_field"),
        ("text", {"text": "x", "turn": "t", "seq": True}, "bad_field"),
        ("text", {"text": "x", "turn": "t", "seq": 0, "again": "x"}, "bad_field"),
        ("text", {"text": "x", "turn": "t", "again": 1}, "bad_field"),
        ("text", {"text": "x", "seq": 1}, "bad_field"),
        ("text", {"text": "x", "speed": 9}, "bad_field"),
        ("flush", {"seq": 1}, "bad_field"),
        ("open", {"sample_rate": 1}, "bad_field"),
        ("open", {"sample_rate": [8000]}, "bad_field"),
        ("open", {"sample_rate": True}, "bad_field"),
        ("open", {"pace": "slow"}, "bad_field"),
        ("open", {"meta": []}, "bad_field"),
        ("cancel", {"played": 1}, "bad_field"),
    ],
)
def test_what_cannot_be_is_told(kind: str, body: dict[str, Any], code: str) -> None:
    with pytest.raises(RequestError) as raised:
        asked(kind, **body)
    assert raised.value.code == code


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
FIELDS = ("text", "turn", "seq", "again", "end", "voice", "speed", "lang", "sample_rate", "pace")


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from((*FIELDS, "meta", "played")), JSON))
def test_whatever_comes_is_refused_or_can_be_published(kind: str, body: dict[str, Any]) -> None:
    try:
        found = asked(kind, **body)
    except RequestError:
        return
    for message in found if isinstance(found, list) else [found]:
        packed = codec.pack(message, "demo")
        assert codec.decode_ingress({b"m": packed}) == [message]


@given(st.sampled_from(KINDS), st.binary(max_size=40))
def test_bytes_that_are_no_json_are_refused(kind: str, body: bytes) -> None:
    try:
        read(kind, body, "demo", LIMITS)
    except RequestError:
        pass
