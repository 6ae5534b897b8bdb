"""Server-sent events: bytes in, events out, however the transport cut them.

`SseDecoder` reads any such stream, `Invocation` what an agent answers to `POST /invocations`:

    answer = await read_invocation(response.content.iter_any())
    wav = wav_bytes(answer.pcm, answer.sample_rate)
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from firstword import messages as m
from firstword.audio import SAMPLE_BYTES
from firstword.errors import DecodeError

MAX_EVENT_BYTES = 16 * 1024 * 1024
MAX_SAMPLES_AHEAD = 24_000 * 600
"""How much silence an offset may ask for: audio that was missed is minutes at most."""
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event. `id` is the last that was told, by this event or one before: where to resume."""

    data: str
    event: str = "message"
    id: str = ""


class SseDecoder:
    """Reads events from a stream of bytes, as the HTML standard says.

    An event counts once the empty line after it is there, so one that broke off is never told.
    `retry_ms` is what the server asked for. It holds `max_bytes` at most: more raise DecodeError.
    """

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self.retry_ms: int | None = None
        self.last_id = ""
        self._max_bytes = max_bytes
        self._held = bytearray()  # a line that is not complete
        self._after_cr = False
        self._first = True
        self._data: list[bytes] = []
        self._size = 0
        self._event = ""

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that `data` completes. After a DecodeError the stream is lost."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        at, begin = len(self._held), 0
        self._held += data
        events = []
        while (end := _LINE_END.search(self._held, at)) is not None:
            line = bytes(self._held[begin : end.start()])
            self._after_cr = end.end() == len(self._held) and self._held.endswith(b"\r")
            at = begin = end.end()
            events += self._take(line)
        del self._held[:begin]
        if self._size + len(self._held) > self._max_bytes:
            raise DecodeError("too_large", f"an event has more than {self._max_bytes} bytes")
        return events

    def _take(self, line: bytes) -> list[ServerSentEvent]:
        if self._first:
            self._first, line = False, line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._size += len(value) + 1
            case b"event":
                self._event = _text(value)
            case b"id" if b"\0" not in value:
                self.last_id = _text(value)
            case b"retry" if value.isdigit():
                self.retry_ms = int(value[:9])
            case _:  # a comment, or what a later standard may say
                pass
        return []

    def _dispatch(self) -> list[ServerSentEvent]:
        lines, event = self._data, self._event
        self._data, self._event, self._size = [], "", 0
        if not lines:
            return []
        return [ServerSentEvent(_text(b"\n".join(lines)), event or "message", self.last_id)]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


# -- what an agent answers ------------------------------------------------------------------------


@dataclass(slots=True)
class Invocation:
    """The answer to one `POST /invocations`, as it comes.

    `text` is what was written, `pcm` what was spoken of it. `reason` says how it ended: `complete`,
    `cancelled`, …; None: it is not over, or the stream broke off. See docs/AGENT.md.
    """

    session: str = ""
    turn: str = ""
    mode: str = ""
    text: str = ""
    voice: str = ""
    sample_rate: int | None = None
    reason: str | None = None
    ttfa_ms: float | None = None
    errors: list[m.ErrorEvent] = field(default_factory=list)
    _segments: dict[int, bytearray] = field(default_factory=dict)

    @property
    def pcm(self) -> bytes:
        """What has come so far: s16le mono at `sample_rate`, the segments one after the other."""
        return b"".join(self._segments.values())

    @property
    def samples(self) -> int:
        """Length of `pcm` in samples."""
        return sum(map(len, self._segments.values())) // SAMPLE_BYTES

    def feed(self, event: ServerSentEvent) -> bool:
        """Take one event; True once the turn is over. Kinds that are not known are passed over.

        Raises DecodeError for what cannot be read.
        """
        body = _json_object(event.data)
        try:
            self._take(body)
        except (KeyError, TypeError, ValueError) as error:
            kind = str(body.get("type"))[:32]
            raise DecodeError("bad_event", f"an event {kind} has not the fields it must") from error
        return self.reason is not None

    def _take(self, body: Mapping[str, Any]) -> None:
        match body.get("type"):
            case "agent_start":
                self.session, self.turn = str(body["session"]), str(body["turn"])
                self.mode = str(body["mode"])
            case "text_delta":
                self.text += str(body["text"])
            case "audio_stream_start":
                self.sample_rate, self.voice = int(body["sample_rate"]), str(body["voice"])
            case "audio_chunk":
                self._put(int(body["n"]), int(body["offset"]), str(body["data"]))
            case "segment_restarted":
                self._segments.get(int(body["n"]), bytearray()).clear()
            case "audio_stream_end":
                ttfa_ms = body.get("ttfa_ms")
                self.ttfa_ms = None if ttfa_ms is None else float(ttfa_ms)
            case "error":
                self.errors.append(_error(body))
            case "agent_end":
                self.reason = str(body["reason"])
            case None if "error" in body:  # what AgentCore's runtime says when an agent fails
                message = str(body.get("message", body["error"]))
                self.errors.append(
                    m.ErrorEvent(code="agent_failed", message=message, retryable=True)
                )
            case _:
                pass

    def _put(self, n: int, offset: int, data: str) -> None:
        pcm = base64.b64decode("".join(data.split()), validate=True)
        held = self._segments.setdefault(n, bytearray())
        start = offset * SAMPLE_BYTES
        if not 0 <= start <= len(held) + MAX_SAMPLES_AHEAD * SAMPLE_BYTES:
            raise ValueError(f"offset {offset}")
        if start > len(held):  # what was missed is silence, which keeps the timing right
            held.extend(bytes(start - len(held)))
        held[start : start + len(pcm)] = pcm


async def read_invocation(body: AsyncIterable[bytes]) -> Invocation:
    """The whole answer, from the body's bytes as they come. Raises DecodeError."""
    decoder, answer = SseDecoder(), Invocation()
    async for data in body:
        for event in decoder.feed(data):
            if answer.feed(event):
                return answer
    return answer


def _error(body: Mapping[str, Any]) -> m.ErrorEvent:
    n = body.get("n")
    return m.ErrorEvent(
        code=str(body["code"]),
        message=str(body["message"]),
        retryable=bool(body.get("retryable")),
        turn=body.get("turn"),
        n=None if n is None else int(n),
        samples=int(body.get("samples", 0)),
    )


def _json_object(text: str) -> dict[str, Any]:
    try:
        # Not strict: where data came in several lines, a string may hold the line ends between.
        body = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise DecodeError("bad_event", "an event's data is no JSON") from error
    if not isinstance(body, dict):
        raise DecodeError("bad_event", "an event's data is no JSON object")
    return body
