"""OpenAI's words for a text that is to be spoken, and the sound of a turn as a file."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from firstword.encoding import FORMATS as ENCODED
from firstword.errors import FirstwordError
from services.agent.core import Limits, RequestError
from services.agent.speech_request import (
    FORMATS,
    MODEL,
    VOICES,
    Speech,
    Spoken,
    SpokenError,
    delta,
    done,
    model,
    models,
    parse_speech,
    refusal,
)

LIMITS = Limits(max_text_chars=50, tokens_per_second=30)
INSTALLED = frozenset({"af_heart", "af_alloy"})


def asked(**body: Any) -> Speech:
    given = {"model": "tts-1", "input": "Hello.", "voice": "alloy", **body}
    return parse_speech(json.dumps(given).encode(), LIMITS, INSTALLED, "af_heart")


def test_what_the_official_client_sends() -> None:
    assert asked() == Speech("Hello.", "af_alloy", "mp3", None, None, False)
    given = asked(response_format="aac", speed=1, stream_format="sse", lang="en-gb", voice="bm_x")
    assert given == Speech("Hello.", "bm_x", "adts", 1.0, "en-gb", True)
    assert set(FORMATS.values()) <= set(ENCODED)


def test_a_voice_of_openais_is_one_of_ours() -> None:
    assert asked(voice="nova").voice == "af_heart", "the one that is meant is not here"
    everywhere = parse_speech(b'{"input": "x", "voice": "nova"}', LIMITS, frozenset(), "af_heart")
    assert everywhere.voice == "af_nova"
    assert asked(voice={"id": "echo"}).voice == "af_heart"
    assert asked(voice=None).voice is None
    assert asked(voice="af_heart:2+af_alloy:1").voice == "af_heart:2+af_alloy:1"
    assert not set(VOICES) & set(VOICES.values())


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"input": ""}, "missing_text"),
        ({"input": "x" * 51}, "too_large"),
        ({"response_format": "tape"}, "unsupported_format"),
        ({"response_format": ["mp3"]}, "unsupported_format"),
        ({"stream_format": "tape"}, "bad_field"),
        ({"speed": 4}, "bad_field"),
        ({"voice": 5}, "bad_field"),
        ({"voice": {"id": ["x"]}}, "bad_field"),
    ],
)
def test_what_cannot_be_is_told(body: dict[str, Any], code: str) -> None:
    with pytest.raises(RequestError) as raised:
        asked(**body)
    assert raised.value.code == code


def started(n: int, start: int) -> m.SegmentStarted:
    return m.SegmentStarted(turn="t", n=n, text="x", start=start, end=start + 1)


def chunk(n: int, offset: int, data: bytes, turn: str = "t") -> m.AudioChunk:
    return m.AudioChunk(turn=turn, n=n, offset=offset, data=data)


def fed(*messages: m.Audio) -> tuple[bytes, Spoken]:
    spoken = Spoken("t")
    return b"".join(map(spoken.feed, messages)), spoken


def test_the_sound_of_a_turn_is_its_segments() -> None:
    end = m.TurnDone(turn="t", segments=2, samples=3, reason="complete")
    words = m.SegmentDone(turn="t", n=1, samples=2)
    sound, spoken = fed(
        started(1, 0),
        chunk(1, 0, b"aabb"),
        chunk(9, 0, b"zz", turn="other"),
        words,
        m.TurnDone(turn="other", segments=1, samples=1, reason="complete"),
        started(2, 6),
        chunk(2, 0, b"cc"),
        end,
    )
    assert (sound, spoken.samples, spoken.over) == (b"aabbcc", 3, True)


@given(st.integers(0, 6), st.lists(st.integers(1, 3), max_size=6))
def test_a_segment_that_comes_again_goes_on_where_it_was(before: int, parts: list[int]) -> None:
    """After a restart, and after a loss, when its number may be another's."""
    whole = b"".join(bytes([number, number]) for number in range(20))
    again: list[m.Audio] = []
    offset = 0
    for part in parts:
        again.append(chunk(1, offset, whole[2 * offset : 2 * (offset + part)]))
        offset += part
    sound, _ = fed(
        started(1, 0), chunk(1, 0, whole[: 2 * before]), m.SegmentRestarted(turn="t", n=1), *again
    )
    assert sound == whole[: 2 * max(before, offset)]
    sound, _ = fed(
        started(7, 0), chunk(7, 0, b"aabb"), started(7, 30), chunk(7, 0, b"cc"), started(8, 0)
    )
    assert sound == b"aabbcc"


def test_what_is_missing_inside_a_segment_is_silence() -> None:
    assert fed(started(1, 0), chunk(1, 2, b"aa"))[0] == bytes(4) + b"aa"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (m.ErrorEvent(code="unknown_voice", message="no", retryable=False, turn="t"), None),
        (m.TurnDone(turn="t", segments=0, samples=0, reason="failed"), "failed"),
        (m.TurnDone(turn="t", segments=0, samples=0, reason="complete"), "missing_text"),
        (m.TurnCancelled(turn="t", sent={}, already_done=False), "cancelled"),
        (m.Gap(first="5-0"), "gap"),
        (m.Closed(reason="idle"), "closed"),
    ],
)
def test_where_something_is_missing_the_file_breaks_off(message: m.Audio, code: str | None) -> None:
    with pytest.raises(SpokenError) as raised:
        fed(message)
    assert raised.value.code == (code or "unknown_voice")


def test_a_loss_is_no_end() -> None:
    assert fed(m.STATE_LOST, m.TurnCancelled(turn="u", sent={}, already_done=True))[0] == b""


def test_answers_are_shaped_like_openais() -> None:
    assert delta(b"abc") == {
        "type": "speech.audio.delta",
        "audio": base64.b64encode(b"abc").decode(),
    }
    assert done(5, 7)["usage"] == {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
    told = refusal(FirstwordError("bad_field", "do it so"), 400)["error"]
    assert (told["message"], told["code"]) == ("do it so", "bad_field")
    assert told["type"] == "invalid_request_error"
    assert refusal(FirstwordError("busy", ""), 429)["error"]["type"] == "server_error"
    assert models()["data"] == [model()] and model()["id"] == MODEL
