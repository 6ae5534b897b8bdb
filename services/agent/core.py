"""What callers say to the agent and what they hear from it, as data: no socket, no clock.

Requests are JSON objects, checked here. Answers come in two shapes of the same events: `SseTurn`
for one turn over server-sent events (audio in base64), `frames` for a WebSocket (audio in binary).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firstword import messages as m
from firstword.audio import SAMPLE_BYTES
from firstword.codec import fields_of
from firstword.errors import DecodeError, FirstwordError
from firstword.keys import check_name

MODES = ("stream", "batch")
MAX_FRAME_BYTES = 32_768
MAX_TOKENS_PER_SECOND = 100_000
_MAX_NAME = 64
_PART = 2_048  # characters that JSON never makes more than 24,576 bytes of

Frame = dict[str, Any] | bytes


class RequestError(FirstwordError):
    """A caller asked for something that cannot be; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may ask for, and the pace of one that names none."""

    max_text_chars: int
    tokens_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Answer this prompt, or say this text, aloud. `session` None is a session of its own, `turn`
    None a turn that the agent names."""

    text: str
    mode: str
    tokens_per_second: float
    is_prompt: bool = False
    session: str | None = None
    turn: str | None = None
    voice: str | None = None
    speed: float | None = None
    lang: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Stop a turn, or all; `played` is what was really heard: {turn, n, samples}."""

    turn: str | None = None
    played: dict[str, Any] | None = None


# -- requests -------------------------------------------------------------------------------------


def parse_invocation(body: bytes | str, limits: Limits) -> Say:
    """The body of `POST /invocations`; raises RequestError."""
    return _say(json_object(body), limits)


def parse_frame(text: bytes | str, limits: Limits) -> Say | Cancel:
    """A text frame of a WebSocket; raises RequestError."""
    body = json_object(text)
    match body.get("type"):
        case "say":
            return _say(body, limits)
        case "cancel":
            return Cancel(turn=label(body, "turn"), played=played(body.get("played")))
        case _:
            raise RequestError("bad_type", "a frame's type is say or cancel")


def check_label(value: Any, kind: str = "session") -> str:
    """`value` if it may name a session or a turn; raises RequestError."""
    if not isinstance(value, str):
        raise RequestError("bad_field", f"{kind} must be a string")
    try:
        return check_name(kind, value)
    except DecodeError as error:
        raise RequestError(error.code, error.message) from error


def _say(body: Mapping[str, Any], limits: Limits) -> Say:
    given = [name for name in ("text", "prompt") if body.get(name) is not None]
    if len(given) != 1:
        raise RequestError("missing_text", "give either text (said as it is) or prompt (answered)")
    mode = body.get("mode", "stream")
    if mode not in MODES:
        raise RequestError("bad_field", "mode is stream or batch")
    pace = number(body, "tokens_per_second", 0, MAX_TOKENS_PER_SECOND)
    return Say(
        text=speech(body, given[0], limits.max_text_chars),
        is_prompt=given[0] == "prompt",
        mode=mode,
        tokens_per_second=limits.tokens_per_second if pace is None else pace,
        session=label(body, "session"),
        turn=label(body, "turn"),
        voice=word(body, "voice"),
        speed=number(body, "speed", *m.SPEEDS),
        lang=word(body, "lang"),
    )


# -- fields, for every door ------------------------------------------------------------------------
# Each takes a request's object and the name of a field; each raises RequestError.


def json_object(body: bytes | str) -> dict[str, Any]:
    """A request's object."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError("bad_json", "send a JSON object") from error
    if not isinstance(value, dict):
        raise RequestError("bad_json", "send a JSON object")
    return value


def speech(body: Mapping[str, Any], name: str, max_chars: int) -> str:
    """A text that can be spoken."""
    text = body.get(name)
    if not isinstance(text, str) or not text.strip():
        raise RequestError("missing_text", f"{name} must be a string that is not blank")
    if len(text) > max_chars:
        raise RequestError("too_large", f"{name} may have {max_chars} characters: send it in parts")
    return well_formed(text)


def well_formed(text: str) -> str:
    """JSON can write halves of a surrogate pair, which no UTF-8 can carry."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError("bad_text", "the text holds half of a surrogate pair") from error
    return text


def label(body: Mapping[str, Any], name: str) -> str | None:
    """The name of a session or a turn."""
    value = body.get(name)
    return None if value is None else check_label(value, name)


def word(body: Mapping[str, Any], name: str) -> str | None:
    """A short string, such as a voice."""
    value = body.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _MAX_NAME or not value.isprintable():
        raise RequestError("bad_field", f"{name} must be a short string")
    return well_formed(value)


def number(body: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    """A number from `low` to `high`."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise RequestError("bad_field", f"{name} must be a number from {low:g} to {high:g}")
    return float(value)


def played(value: Any) -> dict[str, Any] | None:
    """What was really heard, as {turn, n, samples}."""
    if value is None:
        return None
    counts = ("n", "samples")
    if not isinstance(value, dict) or not all(is_count(value.get(name)) for name in counts):
        raise RequestError("bad_field", "played is {turn, n, samples}")
    turn = check_label(value.get("turn"), "turn")
    return {"turn": turn, **{name: value[name] for name in counts}}


def is_count(value: Any) -> bool:
    """Whether it is a whole number that every program can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


# -- answers --------------------------------------------------------------------------------------


def agent_start(session: str, turn: str, mode: str) -> dict[str, Any]:
    """The agent begins to write."""
    return {"type": "agent_start", "session": session, "turn": turn, "mode": mode}


def text_deltas(turn: str, text: str, start: int) -> list[dict[str, Any]]:
    """What the agent has written now: `text`, from the character `start` of the turn's text on."""
    return [
        {"type": "text_delta", "turn": turn, "start": start + at, "text": text[at : at + _PART]}
        for at in range(0, len(text), _PART)
    ]


def error_event(error: FirstwordError, turn: str | None = None) -> dict[str, Any]:
    """An error of our own, in the shape of the stream's `error`."""
    return fields_of(
        m.ErrorEvent(code=error.code, message=error.message, retryable=error.retryable, turn=turn)
    )


class SseTurn:
    """One turn as server-sent events: from `audio_stream_start` to `agent_end`."""

    def __init__(self, turn: str) -> None:
        self.over = False
        self._turn = turn
        self._sounding = False

    def feed(self, message: m.Audio) -> list[dict[str, Any]]:
        """What the caller is to be told; events of other turns say nothing."""
        if isinstance(message, m.TurnCancelled) and self._turn in message.stopped:
            return self.finish("cancelled")
        about = getattr(message, "turn", None)
        if about is not None and about != self._turn:
            return []
        match message:
            case m.TurnStarted():
                self._sounding = True
                form = {"format": "pcm16", "sample_rate": message.sample_rate, "channels": 1}
                return [{"type": "audio_stream_start", **form, "voice": message.voice}]
            case m.AudioChunk():
                data = base64.b64encode(message.data).decode()
                place = {"n": message.n, "offset": message.offset}
                return [{"type": "audio_chunk", **place, "data": data}]
            case m.SegmentRestarted() | m.ErrorEvent():
                return [fields_of(message)]
            case m.Gap():
                lost = RequestError("gap", "you read too slowly: audio is missing here")
                return [error_event(lost, self._turn)]
            case m.TurnDone():
                told = {"samples": message.samples, "ttfa_ms": message.ttfa_ms}
                return self.finish(message.reason, **told)
            case m.Closed():
                return self.finish("closed")
            case _:
                return []

    def finish(self, reason: str, **told: Any) -> list[dict[str, Any]]:
        """The turn is over, or given up."""
        self.over = True
        end: list[dict[str, Any]] = [{"type": "agent_end", "turn": self._turn, "reason": reason}]
        return [{"type": "audio_stream_end", **told}, *end] if self._sounding else end


def frames(message: m.Audio, entry_id: str) -> list[Frame]:
    """An event as WebSocket frames, none longer than MAX_FRAME_BYTES.

    `entry_id` is where to go on listening after it. A binary frame is s16le mono, and the `at` in
    front of it says of which segment, and from which of its samples on.
    """
    if not isinstance(message, m.AudioChunk):
        return [event(message, entry_id)]
    out: list[Frame] = []
    for at in range(0, len(message.data), MAX_FRAME_BYTES):
        offset = message.offset + at // SAMPLE_BYTES
        place = {"type": "at", "turn": message.turn, "n": message.n, "offset": offset}
        last = at + MAX_FRAME_BYTES >= len(message.data)
        out.append({**place, "id": entry_id} if last else place)
        out.append(message.data[at : at + MAX_FRAME_BYTES])
    return out


def event(message: m.Audio, entry_id: str) -> dict[str, Any]:
    """An event of the session's stream as JSON, audio in base64, not too long for one frame."""
    match message:
        case m.AudioChunk():
            place = {"turn": message.turn, "n": message.n, "offset": message.offset}
            data = base64.b64encode(message.data).decode()
            return {"type": "audio_chunk", "id": entry_id, **place, "data": data}
        case m.TurnCancelled() if message.heard is not None:
            return {**fields_of(message), "id": entry_id, "heard": _short(message.heard)}
        case m.ErrorEvent():
            said = message.message[:_PART]
            return {**fields_of(message), "id": entry_id, "message": said}
        case _:
            return {**fields_of(message), "id": entry_id}


def _short(heard: dict[str, Any]) -> dict[str, Any]:
    """What was heard of a very long turn: its last part, and how much stands before it."""
    text = str(heard.get("text", ""))
    left_out = max(0, len(text) - _PART)
    return {**heard, "text": text[left_out:], "text_start": left_out} if left_out else heard
