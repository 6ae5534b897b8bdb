"""The codec of the session frames: bytes in, messages out; see `session_protocol.py`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from firstword.session_messages import (
    DEFAULT_SAMPLE_RATE,
    Cancel,
    Cancelled,
    ClientMessage,
    Close,
    Closing,
    Error,
    FrameError,
    Ping,
    Pong,
    ServerMessage,
    SynthesisComplete,
    SynthesisStart,
    Synthesize,
    Words,
)

MAX_FRAME_BYTES: Final = 1 << 20
"""Largest client frame that is read. 100 kB of text fit even with every character escaped."""

MAX_SERVER_FRAME_BYTES: Final = 8 << 20
"""Largest server frame that is read: containers that send a whole sentence at once stay below."""

MAX_NAME_CHARS: Final = 256
"""Longest id, voice, language or plan."""

MAX_LEXICON_WORDS: Final = 200
"""Most words that a request may bring its own pronunciations for."""

Frame: TypeAlias = str | bytes
T = TypeVar("T")

# --------------------------------------------------------------------------- encoding


def encode_client(message: ClientMessage) -> str:
    """The JSON frame of a client message, without optional fields that are not set."""
    match message:
        case Synthesize():
            body: dict[str, Any] = {"type": "synthesize", "id": message.id, "text": message.text}
            body |= {"speed": message.speed, "sample_rate": message.sample_rate}
            body |= {"seed": message.seed, "skip_samples": message.skip_samples}
            optional = {
                "voice": message.voice,
                "lang": message.lang,
                "deadline_ms": message.deadline_ms,
                "plan": message.plan,
                "lexicon": message.lexicon or None,
                "first": message.first or None,
                "traceparent": message.traceparent,
            }
            body |= {name: value for name, value in optional.items() if value is not None}
        case Cancel():
            body = {"type": "cancel", "id": message.id}
        case Ping():
            body = {"type": "ping"}
        case _:
            body = {"type": "close"}
    return _dump(body)


def encode_server(message: ServerMessage) -> str:
    """The JSON text frame of a control message. Audio is sent as it is, in a binary frame."""
    match message:
        case SynthesisStart():
            body: dict[str, Any] = {"type": "synthesis_start", "id": message.id}
            body |= {"sample_rate": message.sample_rate, "plan": message.plan}
            if message.voice is not None:
                body["voice"] = message.voice
        case SynthesisComplete():
            body = {"type": "synthesis_complete", "id": message.id, "samples": message.samples}
            body |= {"duration_s": message.duration_s, "words": message.words}
            body |= {"synthesis_ms": message.synthesis_ms, "queue_ms": message.queue_ms}
        case Cancelled():
            body = {"type": "cancelled", "id": message.id, "samples": message.samples}
        case Error():
            body = {"type": "error", "id": message.id, "code": message.code}
            body |= {"message": message.message, "retryable": message.retryable}
            if message.retry_after_ms is not None:
                body["retry_after_ms"] = message.retry_after_ms
        case Pong():
            body = {"type": "pong"}
        case _:
            body = {"type": "closing", "reason": message.reason}
    return _dump(body)


def _dump(body: Mapping[str, Any]) -> str:
    # Lone surrogates have no UTF-8: they are replaced, so that no frame can fail on its way out.
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _repair(text)


def _repair(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_SURROGATE: Final = re.compile("[\ud800-\udfff]")

# --------------------------------------------------------------------------- decoding


def decode_client(frame: Frame) -> ClientMessage:
    """Read a client frame, text or binary.

    `type` may be absent if there is a `text`, and `request_id` stands for a missing `id`, as
    clients of the published AWS example write. Unknown fields are ignored.

    Raises: FrameError with code `frame_too_large`, `bad_utf8`, `bad_json`, `bad_message`,
    `unknown_type` or `bad_field`; its `id` is set where the frame had a usable one.
    """
    fields = _Fields(_parse_object(frame, MAX_FRAME_BYTES))
    kind = fields.raw.get("type", "synthesize" if "text" in fields.raw else None)
    match kind:
        case "synthesize":
            return _decode_synthesize(fields)
        case "cancel":
            return Cancel(fields.id())
        case "ping":
            return Ping()
        case "close":
            return Close()
        case None:
            raise fields.error("bad_message", "neither `type` nor `text` is there")
        case _:
            known = "synthesize, cancel, ping, close"
            raise fields.error("unknown_type", f"`type` must be one of {known}")


def _decode_synthesize(fields: _Fields) -> Synthesize:
    return Synthesize(
        id=fields.id(),
        text=_repair(fields.get("text", _text)),
        voice=fields.optional("voice", _name),
        speed=fields.get("speed", _positive_number, 1.0),
        lang=fields.optional("lang", _name),
        sample_rate=fields.get("sample_rate", _natural, DEFAULT_SAMPLE_RATE),
        seed=fields.get("seed", _integer, 0),
        deadline_ms=fields.optional("deadline_ms", _integer),
        skip_samples=fields.get("skip_samples", _natural, 0),
        plan=fields.optional("plan", _name),
        first=fields.get("first", _boolean, False),
        lexicon=fields.optional("lexicon", _lexicon),
        traceparent=fields.optional("traceparent", _name),
    )


def decode_server(frame: Frame, text: bool | None = None) -> ServerMessage | bytes:
    """Read a server frame: a control message, or the bytes of an audio frame.

    `text` is what the transport says of the frame. None means that it does not say: then a frame is
    control only if all of it parses as a JSON object with a known `type`, because audio
    may begin with any byte and may even be the two bytes of an empty object.

    Raises: FrameError as `decode_client`; `unknown_type` is for the reader to count and skip.
    """
    if text is False and isinstance(frame, bytes):
        return frame
    if text is None and isinstance(frame, bytes):
        return _decode_unmarked(frame)
    return _decode_control(_Fields(_parse_object(frame, MAX_SERVER_FRAME_BYTES)))


def _decode_unmarked(frame: bytes) -> ServerMessage | bytes:
    # Only an object can be control; most audio is told apart without parsing a byte of it.
    if not frame.lstrip(_JSON_SPACE).startswith(b"{"):
        return frame
    try:
        body = _parse_object(frame, MAX_SERVER_FRAME_BYTES)
    except FrameError:
        return frame
    kind = body.get("type")
    if not isinstance(kind, str) or kind not in _CONTROL:
        return frame
    return _decode_control(_Fields(body))


def _decode_control(fields: _Fields) -> ServerMessage:
    kind = fields.raw.get("type")
    if not isinstance(kind, str) or kind not in _CONTROL:
        raise fields.error("unknown_type", f"`type` must be one of {', '.join(_CONTROL)}")
    return _CONTROL[kind](fields)


def _decode_start(fields: _Fields) -> SynthesisStart:
    return SynthesisStart(
        id=fields.id(),
        sample_rate=fields.get("sample_rate", _natural, DEFAULT_SAMPLE_RATE),
        plan=fields.optional("plan", _name),
        voice=fields.optional("voice", _name),
    )


def _decode_complete(fields: _Fields) -> SynthesisComplete:
    published = fields.get("total_duration_s", _duration, 0.0)
    return SynthesisComplete(
        id=fields.id(),
        samples=fields.optional("samples", _natural),
        duration_s=fields.get("duration_s", _duration, published),
        words=fields.get("words", _words, ()),
        synthesis_ms=fields.get("synthesis_ms", _duration, 0.0),
        queue_ms=fields.get("queue_ms", _duration, 0.0),
    )


def _decode_error(fields: _Fields) -> Error:
    return Error(
        id=fields.id() or None,
        code=fields.get("code", _text, "error"),
        message=fields.get("message", _text, ""),
        retryable=fields.get("retryable", _boolean, False),
        retry_after_ms=fields.optional("retry_after_ms", _natural),
    )


_CONTROL: Final[Mapping[str, Callable[[_Fields], ServerMessage]]] = {
    "synthesis_start": _decode_start,
    "synthesis_complete": _decode_complete,
    "cancelled": lambda fields: Cancelled(fields.id(), fields.get("samples", _natural, 0)),
    "error": _decode_error,
    "pong": lambda fields: Pong(),
    "closing": lambda fields: Closing(fields.get("reason", _text, "")),
}

_JSON_SPACE: Final = b" \t\r\n"


def _parse_object(frame: Frame, limit: int) -> dict[str, Any]:
    size = len(frame) if isinstance(frame, bytes) else len(frame.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise FrameError("frame_too_large", f"the frame has {size} bytes, the limit is {limit}")
    try:
        text = frame.decode("utf-8") if isinstance(frame, bytes) else frame
    except UnicodeDecodeError as error:
        message = f"the frame is not UTF-8 (byte {error.start})"
        raise FrameError("bad_utf8", message) from None
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise FrameError("bad_json", f"{error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError):
        message = "a number is too long or not finite, or the nesting is too deep"
        raise FrameError("bad_json", message) from None
    if not isinstance(body, dict):
        raise FrameError("bad_message", "the frame must be a JSON object")
    return body


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


# Each reader below returns the value, or raises TypeError saying what is wanted.


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a string")
    return value


def _name(value: object) -> str:
    name = _repair(_text(value))
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise TypeError(f"at most {MAX_NAME_CHARS} printable characters")
    return name


def _lexicon(value: object) -> dict[str, str]:
    wanted = f"an object of at most {MAX_LEXICON_WORDS} words, each with what is said for it"
    if not isinstance(value, dict) or len(value) > MAX_LEXICON_WORDS:
        raise TypeError(wanted)
    try:
        return {_name(word): _name(said) for word, said in value.items()}
    except TypeError:
        raise TypeError(wanted) from None


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false")
    return value


def _integer(value: object) -> int:
    # Some JSON writers know only doubles: 24000.0 is the integer 24000. A bool never is.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 53:
        raise TypeError("an integer below 2^53")
    return value


def _natural(value: object) -> int:
    number = _integer(value)
    if number < 0:
        raise TypeError("a non-negative integer")
    return number


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number")
    if not math.isfinite(value) or abs(value) >= 1 << 53:
        raise TypeError("a finite number")
    return float(value)


def _positive_number(value: object) -> float:
    number = _number(value)
    if number <= 0:
        raise TypeError("a number above 0")
    return number


def _duration(value: object) -> float:
    number = _number(value)
    if number < 0:
        raise TypeError("a number of 0 or more")
    return number


def _words(value: object) -> Words:
    if not isinstance(value, list):
        raise TypeError("a list")
    return tuple(_word(item) for item in value)


def _word(value: object) -> tuple[int, int, float, float]:
    if not isinstance(value, list) or len(value) != 4:
        raise TypeError("a list of [start_char, end_char, start_s, end_s]")
    first, past, start, end = value
    return _natural(first), _natural(past), _duration(start), _duration(end)


class _Fields:
    """The fields of one frame, read with a check each; null is the same as absent."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    def id(self) -> str:
        """`id`, or `request_id` in its place, or "" where the sender named nothing."""
        return self.get("id", _name, self.get("request_id", _name, ""))

    def get(self, name: str, read: Callable[[object], T], default: T | None = None) -> T:
        """The field read by `read`; without a default it must be there."""
        value = self.raw.get(name)
        if value is None:
            if default is None:
                raise self.error("bad_field", f"`{name}` is missing")
            return default
        try:
            return read(value)
        except TypeError as error:
            raise self.error("bad_field", f"`{name}` must be {error}") from None

    def optional(self, name: str, read: Callable[[object], T]) -> T | None:
        return None if self.raw.get(name) is None else self.get(name, read)

    def error(self, code: str, message: str) -> FrameError:
        raw = self.raw.get("id", self.raw.get("request_id"))
        usable = isinstance(raw, str) and 0 < len(raw) <= MAX_NAME_CHARS and raw.isprintable()
        return FrameError(code, message, id=raw if usable else None)
