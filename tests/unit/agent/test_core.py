"""What callers may ask for, and the two shapes of what they are told."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from firstword.errors import FirstwordError
from services.agent.core import (
    MAX_FRAME_BYTES,
    Cancel,
    Limits,
    RequestError,
    Say,
    SseTurn,
    agent_start,
    check_label,
    error_event,
    event,
    frames,
    parse_frame,
    parse_invocation,
    text_deltas,
)

LIMITS = Limits(max_text_chars=50, tokens_per_second=30)


def invocation(**body: Any) -> Say:
    return parse_invocation(json.dumps(body).encode(), LIMITS)


# -- requests -------------------------------------------------------------------------------------


def test_a_text_is_enough() -> None:
    assert invocation(text="Hello.") == Say(text="Hello.", mode="stream", tokens_per_second=30)


def test_everything_can_be_said() -> None:
    say = invocation(
        prompt="Who are you?",
        mode="batch",
        session="demo",
        turn="first",
        voice="am_adam",
        speed=1,
        lang="en-us",
        tokens_per_second=0,
        surprise="ignored",
    )
    assert say == Say(
        text="Who are you?",
        is_prompt=True,
        mode="batch",
        session="demo",
        turn="first",
        voice="am_adam",
        speed=1.0,
        lang="en-us",
        tokens_per_second=0,
    )


@pytest.mark.parametrize("field", ["voice", "lang"])
@pytest.mark.parametrize("value", ["", None])
def test_what_is_left_empty_is_the_sessions(field: str, value: str | None) -> None:
    assert getattr(invocation(text="x", **{field: value}), field) is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad_json"),
        (b"hello", "bad_json"),
        (b"[]", "bad_json"),
        (b'"text"', "bad_json"),
        (b'{"text": "\xff"}', "bad_json"),
        (b"[" * 100_000, "bad_json"),
        (b"{}", "missing_text"),
        (b'{"text": null}', "missing_text"),
        (b'{"text": " \\n"}', "missing_text"),
        (b'{"text": 5}', "missing_text"),
        (b'{"text": "a", "prompt": "b"}', "missing_text"),
        (json.dumps({"text": "x" * 51}).encode(), "too_large"),
        (b'{"text": "\\ud83d"}', "bad_text"),
        (b'{"text": "a", "voice": "\\ud83d"}', "bad_field"),
        (b'{"text": "a", "voice": 5}', "bad_field"),
        (b'{"text": "a", "lang": "a\\u0000b"}', "bad_field"),
        (json.dumps({"text": "a", "voice": "x" * 65}).encode(), "bad_field"),
        (b'{"text": "a", "mode": "opera"}', "bad_field"),
        (b'{"text": "a", "mode": []}', "bad_field"),
        (b'{"text": "a", "speed": "fast"}', "bad_field"),
        (b'{"text": "a", "speed": true}', "bad_field"),
        (b'{"text": "a", "speed": 0.1}', "bad_field"),
        (b'{"text": "a", "speed": NaN}', "bad_field"),
        (b'{"text": "a", "tokens_per_second": -1}', "bad_field"),
        (b'{"text": "a", "tokens_per_second": Infinity}', "bad_field"),
        (b'{"text": "a", "tokens_per_second": 1' + b"0" * 400 + b"}", "bad_field"),
        (b'{"text": "a", "session": "with a space"}', "bad_name"),
        (b'{"text": "a", "session": 5}', "bad_field"),
        (b'{"text": "a", "turn": ""}', "bad_name"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(body: bytes, code: str) -> None:
    with pytest.raises(RequestError) as raised:
        parse_invocation(body, LIMITS)
    assert raised.value.code == code


@given(st.binary() | st.text())
def test_any_bytes_are_a_request_or_refused(body: bytes | str) -> None:
    try:
        parse_invocation(body, LIMITS)
    except RequestError as error:
        assert error.message


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
FIELDS = ("type", "text", "mode", "voice", "speed", "session", "turn", "played")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.sampled_from(["say", "cancel", ""]))
def test_any_object_is_a_frame_or_refused(body: dict[str, Any], kind: str) -> None:
    try:
        parse_frame(json.dumps(body | ({"type": kind} if kind else {})), LIMITS)
    except RequestError as error:
        assert error.message


def test_frames_say_and_cancel() -> None:
    say = parse_frame('{"type": "say", "text": "Hi."}', LIMITS)
    assert isinstance(say, Say)
    assert say.text == "Hi."
    assert parse_frame('{"type": "cancel"}', LIMITS) == Cancel()
    played = {"turn": "t", "n": 3, "samples": 240}
    body = {"type": "cancel", "turn": "t", "played": played | {"more": 1}}
    assert parse_frame(json.dumps(body), LIMITS) == Cancel(turn="t", played=played)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"type": "sing", "text": "la"},
        {"type": ["say"]},
        {"type": "cancel", "turn": "with a space"},
        {"type": "cancel", "turn": 5},
        {"type": "cancel", "played": "all"},
        {"type": "cancel", "played": {"turn": "t", "n": 0}},
        {"type": "cancel", "played": {"n": 0, "samples": 0}},
        {"type": "cancel", "played": {"turn": "t", "n": -1, "samples": 0}},
        {"type": "cancel", "played": {"turn": "t", "n": 0, "samples": True}},
        {"type": "cancel", "played": {"turn": "t", "n": 0, "samples": 2**53}},
    ],
)
def test_other_frames_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(RequestError):
        parse_frame(json.dumps(body), LIMITS)


def test_a_label_is_returned() -> None:
    assert check_label("demo") == "demo"


# -- answers: one turn over server-sent events ----------------------------------------------------

STARTED = m.TurnStarted(turn="t", voice="af_heart", sample_rate=24_000)
CHUNK = m.AudioChunk(turn="t", n=3, offset=7, data=b"\x00\x01{}")
DONE = m.TurnDone(turn="t", segments=1, samples=2, ttfa_ms=80.5, reason="complete")


def told(*messages: m.Audio) -> list[dict[str, Any]]:
    turn = SseTurn("t")
    return [event for message in messages for event in turn.feed(message)]


def test_a_turn_from_start_to_end() -> None:
    segment = m.SegmentStarted(turn="t", n=3, text="Hi.", start=0, end=3)
    done = m.SegmentDone(turn="t", n=3, samples=2)
    start, chunk, stream_end, end = told(STARTED, segment, CHUNK, done, DONE)
    assert start == {
        "type": "audio_stream_start",
        "format": "pcm16",
        "sample_rate": 24_000,
        "channels": 1,
        "voice": "af_heart",
    }
    assert base64.b64decode(chunk.pop("data")) == CHUNK.data
    assert chunk == {"type": "audio_chunk", "n": 3, "offset": 7}
    assert stream_end == {"type": "audio_stream_end", "samples": 2, "ttfa_ms": 80.5}
    assert end == {"type": "agent_end", "turn": "t", "reason": "complete"}


def test_other_turns_are_not_told() -> None:
    turn = SseTurn("another")
    assert [turn.feed(message) for message in (STARTED, CHUNK, DONE)] == [[], [], []]
    assert turn.over is False


def test_a_silent_turn_has_no_audio() -> None:
    assert told(DONE) == [{"type": "agent_end", "turn": "t", "reason": "complete"}]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (m.TurnCancelled(turn="t", sent={}, already_done=False), "cancelled"),
        (m.Closed(reason="idle"), "closed"),
    ],
)
def test_a_turn_may_end_otherwise(message: m.Audio, reason: str) -> None:
    turn = SseTurn("t")
    turn.feed(STARTED)
    stream_end, end = turn.feed(message)
    assert stream_end == {"type": "audio_stream_end"}
    assert end["reason"] == reason
    assert turn.over


def test_trouble_is_told_and_the_turn_goes_on() -> None:
    error = m.ErrorEvent(code="timeout", message="too slow", retryable=True, turn="t", n=3)
    restart, failure, gap = told(m.SegmentRestarted(turn="t", n=3), error, m.Gap(first="5-0"))
    assert restart == {"type": "segment_restarted", "turn": "t", "n": 3}
    assert (failure["type"], failure["code"], failure["n"]) == ("error", "timeout", 3)
    assert (gap["type"], gap["code"]) == ("error", "gap")


# -- answers: WebSocket frames --------------------------------------------------------------------


@given(st.binary(max_size=50_000).map(lambda data: data * 3))
def test_binary_frames_are_small_and_whole(data: bytes) -> None:
    data = data[: len(data) // 2 * 2]
    found = frames(m.AudioChunk(turn="t", n=1, offset=7, data=data), "5-0")
    announced, sound = found[0::2], [frame for frame in found[1::2] if isinstance(frame, bytes)]
    assert len(announced) == len(sound)
    assert all(0 < len(frame) <= MAX_FRAME_BYTES for frame in sound)
    assert b"".join(sound) == data
    offset = 7
    for place, frame in zip(announced, sound, strict=True):
        assert isinstance(place, dict)
        assert {**place, "id": ""} == {
            "type": "at",
            "turn": "t",
            "n": 1,
            "offset": offset,
            "id": "",
        }
        offset += len(frame) // 2
    # An entry that is not here as a whole is none to go on behind.
    ids = [place.get("id") for place in announced if isinstance(place, dict)]
    assert ids == [*[None] * (len(ids) - 1), "5-0"][: len(ids)]


def test_everything_else_is_an_object_that_says_where_it_stands() -> None:
    assert frames(STARTED, "5-0") == [
        {
            "type": "turn_started",
            "id": "5-0",
            "turn": "t",
            "voice": "af_heart",
            "sample_rate": 24_000,
        }
    ]


def test_an_event_without_binary_frames_has_its_audio_in_base64() -> None:
    chunk = m.AudioChunk(turn="t", n=1, offset=7, data=b"\1\2")
    assert event(chunk, "5-0") == {
        "type": "audio_chunk",
        "id": "5-0",
        "turn": "t",
        "n": 1,
        "offset": 7,
        "data": base64.b64encode(b"\1\2").decode(),
    }


@given(st.text(max_size=400).map(lambda text: text * 30))
def test_no_text_frame_is_too_long(text: str) -> None:
    heard = {"turn": "t", "text": text, "samples": 5}
    receipt = m.TurnCancelled(turn="t", sent={}, already_done=False, heard=heard)
    trouble = m.ErrorEvent(code="failed", message=text, retryable=False)
    told = [*frames(receipt, "5-0"), *frames(trouble, "5-0"), *text_deltas("t", text, 0)]
    assert all(len(json.dumps(frame).encode()) <= MAX_FRAME_BYTES for frame in told)
    cut = event(receipt, "5-0")["heard"]
    left_out = cut.get("text_start", 0)
    assert cut["text"] == text[left_out:] and (left_out == 0 or len(cut["text"]) > 1000)


@given(st.text(max_size=9_000), st.integers(0, 10**6))
def test_what_was_written_can_be_put_where_it_belongs(text: str, start: int) -> None:
    whole = " " * start
    for delta in text_deltas("t", text, start):
        assert (delta["type"], delta["turn"]) == ("text_delta", "t")
        whole = whole[: delta["start"]] + delta["text"]
    assert whole == " " * start + text


def test_a_receipt_that_heard_nothing_says_so() -> None:
    receipt = m.TurnCancelled(turn="t", sent={}, already_done=True)
    assert "heard" not in event(receipt, "5-0")


def test_what_the_agent_says_itself() -> None:
    assert agent_start("s", "t", "batch") == {
        "type": "agent_start",
        "session": "s",
        "turn": "t",
        "mode": "batch",
    }
    assert error_event(FirstwordError("busy", "later", retryable=True), "t") == {
        "type": "error",
        "code": "busy",
        "message": "later",
        "retryable": True,
        "turn": "t",
        "samples": 0,
    }
