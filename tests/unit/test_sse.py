"""Server-sent events, and an agent's answer, however the transport cuts them."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.errors import DecodeError
from firstword.sse import Invocation, ServerSentEvent, SseDecoder, read_invocation

PCM = bytes(range(256)) * 4
STREAM = (
    "\ufeff: a comment\n"
    "data: one\n\n"
    "event: greeting\r\nid: 7-0\r\ndata: zwei, drei, größer 🙂\r\ndata:vier\r\n\r\n"
    "data\rdata: \r\r"
    "retry: 1500\nretry: soon\nid: with\0nul\nunknown: x\nevent: nothing\n\n"
    "data:  indented\nid\n\n"
    "data: never finished\n"
).encode()
EVENTS = [
    ServerSentEvent("one"),
    ServerSentEvent("zwei, drei, größer 🙂\nvier", "greeting", "7-0"),
    ServerSentEvent("\n", "message", "7-0"),
    ServerSentEvent(" indented", "message", ""),
]


def in_parts(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    edges = sorted({0, len(data), *(cut for cut in cuts if cut <= len(data))})
    for start, end in pairwise(edges):
        yield data[start:end]


def decoded(parts: Iterator[bytes]) -> list[ServerSentEvent]:
    decoder = SseDecoder()
    return [event for part in parts for event in decoder.feed(part)]


# -- the format -----------------------------------------------------------------------------------


def test_one_stream_as_a_whole_and_byte_by_byte() -> None:
    assert decoded(iter([STREAM])) == EVENTS
    assert decoded(STREAM[at : at + 1] for at in range(len(STREAM))) == EVENTS


def test_a_cut_anywhere_changes_nothing() -> None:
    for cut in range(len(STREAM) + 1):
        assert decoded(iter([STREAM[:cut], b"", STREAM[cut:]])) == EVENTS, cut


def test_the_server_says_when_to_come_back() -> None:
    decoder = SseDecoder()
    decoder.feed(STREAM)
    assert decoder.retry_ms == 1500
    assert decoder.last_id == ""


def test_what_is_no_utf_8_is_marked() -> None:
    assert decoded(iter([b"data: a\xff\n\n"])) == [ServerSentEvent("a\ufffd")]


@pytest.mark.parametrize("data", [b"data: " + b"x" * 100, b"data: xxxxxxxx\n" * 12])
def test_an_event_without_end_is_refused(data: bytes) -> None:
    decoder = SseDecoder(max_bytes=100)
    with pytest.raises(DecodeError, match="too_large"):
        decoder.feed(data)


lines = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(st.data())
def test_what_is_written_is_read_however_it_is_cut(data: st.DataObject) -> None:
    told: list[ServerSentEvent] = []
    raw = ""
    for _ in range(data.draw(st.integers(0, 4))):
        said, name = data.draw(st.lists(lines, min_size=1)), data.draw(lines)
        end = data.draw(line_ends)  # the same for all of an event: CR and LF would be one
        for line in [f"event:{name}", *(f"data: {line}" for line in said), ":x", ""]:
            raw += line + end
        if end == "\r":  # else the next LF would belong to it
            raw += ":\n"
        name = name.removeprefix(" ")
        told.append(ServerSentEvent("\n".join(said), name or "message"))
    encoded = raw.encode()
    cuts = data.draw(st.lists(st.integers(0, len(encoded))))
    assert decoded(in_parts(encoded, cuts)) == told


@given(st.binary(), st.lists(st.integers(0, 100)))
def test_any_bytes_are_events_or_nothing_and_cuts_do_not_matter(
    data: bytes, cuts: list[int]
) -> None:
    assert decoded(in_parts(data, cuts)) == decoded(iter([data]))


# -- an agent's answer ----------------------------------------------------------------------------


def chunk(n: int, offset: int, pcm: bytes) -> dict[str, Any]:
    return {
        "type": "audio_chunk",
        "n": n,
        "offset": offset,
        "data": base64.b64encode(pcm).decode(),
    }


ANSWER: list[dict[str, Any]] = [
    {"type": "agent_start", "session": "s-1", "turn": "t-1", "mode": "stream"},
    {"type": "text_delta", "turn": "t-1", "text": "Schöne "},
    {"type": "text_delta", "turn": "t-1", "text": "Grüße 🙂."},
    {"type": "audio_stream_start", "format": "pcm16", "sample_rate": 24000, "voice": "af_heart"},
    chunk(1, 0, PCM[:400]),
    chunk(1, 200, PCM[400:]),
    {"type": "something_new", "of": "a later version"},
    chunk(2, 0, b"\1\1"),
    {"type": "segment_restarted", "turn": "t-1", "n": 2},
    {"type": "segment_restarted", "turn": "t-1", "n": 9},
    chunk(2, 0, PCM[:10]),
    {
        "type": "error",
        "code": "gap",
        "message": "missing",
        "retryable": False,
        "turn": "t-1",
        "n": 3,
    },
    {"type": "audio_stream_end", "samples": 517, "ttfa_ms": 212.5},
    {"type": "agent_end", "turn": "t-1", "reason": "complete"},
]


def written(events: list[dict[str, Any]]) -> bytes:
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    return ": still here\n\n".join(lines).encode()


def answered(parts: Iterator[bytes]) -> Invocation:
    answer = Invocation()
    for event in decoded(parts):
        answer.feed(event)
    return answer


WHOLE = written(ANSWER)


def test_an_answer_is_put_together() -> None:
    answer = answered(iter([WHOLE]))
    assert (answer.session, answer.turn, answer.mode) == ("s-1", "t-1", "stream")
    assert answer.text == "Schöne Grüße 🙂."
    assert (answer.voice, answer.sample_rate) == ("af_heart", 24000)
    assert answer.pcm == PCM + PCM[:10]
    assert answer.samples == len(PCM) // 2 + 5
    assert [(error.code, error.n) for error in answer.errors] == [("gap", 3)]
    assert (answer.reason, answer.ttfa_ms) == ("complete", 212.5)


def test_byte_by_byte_it_is_the_same() -> None:
    assert answered(WHOLE[at : at + 1] for at in range(len(WHOLE))) == answered(iter([WHOLE]))


@given(st.lists(st.integers(0, len(WHOLE))))
def test_cut_anywhere_it_is_the_same(cuts: list[int]) -> None:
    assert answered(in_parts(WHOLE, cuts)) == answered(iter([WHOLE]))


@pytest.mark.parametrize("every", [1, 2, 3, 50])
def test_base64_in_many_lines_is_one_piece(every: int) -> None:
    """A relay may break long lines: what was one string has line ends in it."""
    raw = json.dumps(chunk(1, 0, PCM))
    at = raw.index('"data": "') + len('"data": "')
    head, code = raw[:at], raw[at:]
    broken = [head + code[:every]]
    broken += [code[start : start + every] for start in range(every, len(code), every)]
    data = "".join(f"data: {line}\n" for line in broken) + "\n"
    assert answered(iter([data.encode()])).pcm == PCM


def test_audio_that_was_missed_is_silence() -> None:
    answer = answered(iter([written([chunk(4, 3, b"\1\2")])]))
    assert answer.pcm == bytes(6) + b"\1\2"
    assert answer.reason is None


def test_a_silent_turn_has_no_time_to_first_audio() -> None:
    events = [{"type": "audio_stream_end"}, {"type": "agent_end", "reason": "cancelled"}]
    answer = answered(iter([written(events)]))
    assert (answer.reason, answer.ttfa_ms, answer.pcm) == ("cancelled", None, b"")


def test_the_runtime_s_own_error_is_an_error() -> None:
    failed = {"error": "boom", "error_type": "RuntimeError", "message": "An error occurred"}
    (error,) = answered(iter([written([failed])])).errors
    assert (error.code, error.message) == ("agent_failed", "An error occurred")


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[1]",
        "[" * 100_000,
        '{"type": "audio_chunk"}',
        '{"type": "audio_chunk", "n": 1, "offset": 0, "data": "%%%%"}',
        '{"type": "audio_chunk", "n": 1, "offset": -1, "data": ""}',
        '{"type": "audio_chunk", "n": 1, "offset": 99999999999, "data": ""}',
        '{"type": "agent_start", "session": "s"}',
        '{"type": "error", "code": "x", "message": "y", "n": []}',
        '{"type": "audio_stream_start", "sample_rate": "fast", "voice": ""}',
    ],
)
def test_what_cannot_be_read_is_a_decode_error(data: str) -> None:
    with pytest.raises(DecodeError, match="bad_event"):
        Invocation().feed(ServerSentEvent(data))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_fields_give_an_answer_or_a_decode_error(value: Any) -> None:
    for event in ANSWER:
        for name in event:
            if name != "type":
                odd = json.dumps({**event, name: value})
                try:
                    Invocation().feed(ServerSentEvent(odd))
                except DecodeError:
                    pass


async def test_read_invocation_ends_with_the_turn_or_with_the_stream() -> None:
    async def body(data: bytes) -> AsyncIterator[bytes]:
        for at in range(0, len(data), 7):
            yield data[at : at + 7]

    assert (await read_invocation(body(WHOLE + b"data: never read\n\n"))).reason == "complete"
    assert (await read_invocation(body(WHOLE[:-40]))).reason is None
