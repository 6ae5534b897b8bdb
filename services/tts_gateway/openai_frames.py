"""Session frames as requests to an OpenAI-compatible speech server, and its answers as frames.

Pure: takes frames, responses and lost connections, and says what to do. A server of this kind knows
requests but no sessions: each synthesis is one `POST …/audio/speech`, cancelled by closing the
response. It gives no plan, so an interrupted segment starts again from 0, and no word times.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from firstword.errors import SettingsError, UpstreamError
from firstword.session_protocol import (
    BYTES_PER_SAMPLE,
    DEFAULT_SAMPLE_RATE,
    Cancel,
    Cancelled,
    Error,
    Frame,
    FrameError,
    Ping,
    Pong,
    ServerMessage,
    SynthesisComplete,
    SynthesisStart,
    Synthesize,
    decode_client,
    encode_server,
)
from services.tts_gateway.openai_audio import AudioError, BodyReader, TornError

SCHEMES: Final = {"openai+http": "http", "openai+https": "https"}
DEFAULT_MODEL: Final = "kokoro"
DEFAULT_VOICE: Final = "af_heart"

LONGEST_REASON: Final = 200
LONGEST_WAIT_S: Final = 86_400
"""More is nonsense in a `Retry-After`, too."""

API_KEY_VARIABLE: Final = "FIRSTWORD_OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class Target:
    """One speech server, as the upstream URL names it."""

    base: str
    """`http://host:port/v1`, without a slash at the end."""
    model: str = DEFAULT_MODEL
    voice: str = DEFAULT_VOICE
    """For sessions that name none."""
    rate: int = DEFAULT_SAMPLE_RATE
    """Of bare samples, in Hz, where the server does not say."""


def read_target(url: str) -> Target:
    """`openai+http://host:port/v1[?model=…&voice=…&rate=…]`. Raises SettingsError."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port  # a port out of range raises here
    except ValueError as error:
        raise _wrong(url, str(error)) from None
    if parts.scheme not in SCHEMES or not host:
        raise _wrong(url, "must be openai+http://host:port/v1 or openai+https://…")
    if parts.username is not None:
        raise _wrong(parts.scheme + "://…", f"the key belongs into {API_KEY_VARIABLE}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = options.keys() - {"model", "voice", "rate"}
    if unknown:
        raise _wrong(url, f"knows model, voice and rate, not {', '.join(sorted(unknown))}")
    rate = options.get("rate", str(DEFAULT_SAMPLE_RATE))
    if not (rate.isascii() and rate.isdigit() and 8_000 <= int(rate) <= 48_000):
        raise _wrong(url, "rate must be 8000 to 48000")
    base = urlunsplit((SCHEMES[parts.scheme], parts.netloc, parts.path.rstrip("/"), "", ""))
    model, voice = options.get("model") or DEFAULT_MODEL, options.get("voice") or DEFAULT_VOICE
    return Target(base, model, voice, int(rate))


def _wrong(url: str, what: str) -> SettingsError:
    return SettingsError([f"FIRSTWORD_UPSTREAM={url!r}: {what}"])


@dataclass(frozen=True, slots=True)
class Give:
    """A frame to be received by the gateway; `text`: whether a transport would call it text."""

    frame: Frame
    text: bool


@dataclass(frozen=True, slots=True)
class Post:
    """Request this speech. `answered`, `refused` or `broke` follows."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Abort:
    """Close the response that is being read, and report nothing more of it."""


@dataclass(frozen=True, slots=True)
class End:
    """The link is over."""

    error: UpstreamError


Action = Give | Post | Abort | End


class Exchange:
    """The decisions of one link: strictly one request at a time; the rest waits in order."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._waiting: deque[Synthesize] = deque()
        self._running: Synthesize | None = None
        self._reader: BodyReader | None = None
        self._started = False
        self._samples = 0
        self._closing = False

    # -- from the gateway -------------------------------------------------------------------------

    def client(self, frame: Frame) -> list[Action]:
        """A frame from the gateway."""
        try:
            message = decode_client(frame)
        except FrameError as error:
            return [_control(Error(error.id, error.code, error.message))]
        match message:
            case Synthesize():
                self._waiting.append(message)
                return self._next()
            case Cancel(id):
                return self._cancel(id)
            case Ping():
                return [_control(Pong())]
            case _:
                self._closing = True
                return self._next()

    def _cancel(self, id: str) -> list[Action]:
        dropped = [request for request in self._waiting if id in ("", request.id)]
        self._waiting = deque(request for request in self._waiting if request not in dropped)
        answers: list[Action] = [_control(Cancelled(request.id)) for request in dropped]
        running = self._running
        if running is None or id not in ("", running.id):
            return answers
        return [*answers, Abort(), *self._end(Cancelled(running.id, self._samples))]

    def _next(self) -> list[Action]:
        if self._running is not None:
            return []
        if self._waiting:
            self._running = self._waiting.popleft()
            self._reader, self._started, self._samples = None, False, 0
            return [Post(self._body(self._running))]
        if not self._closing:
            return []
        return [End(UpstreamError("upstream_lost", "the link was closed", retryable=True))]

    def _body(self, request: Synthesize) -> dict[str, Any]:
        return {
            "model": self._target.model,
            "input": request.text,
            "voice": request.voice or self._target.voice,
            "response_format": "pcm",
            "speed": request.speed,
            "stream": True,
        }

    # -- from the server --------------------------------------------------------------------------

    def answered(self, content_type: str) -> list[Action]:
        """It answers with a body: 200 and this type."""
        try:
            self._reader = BodyReader(content_type, self._target.rate)
        except AudioError as error:
            return self._unusable(error)
        return []

    def came(self, data: bytes) -> list[Action]:
        """A piece of the body."""
        try:
            samples = self._body_reader().feed(data)
        except AudioError as error:
            return self._unusable(error)
        return self._audio(samples)

    def ended(self) -> list[Action]:
        """The body is over, in order."""
        reader, request = self._body_reader(), self._current()
        try:
            samples = reader.finish()
        except TornError:
            told = "the speech server's answer ended in the middle of its audio"
            return self._end(Error(request.id, "audio_torn", told, retryable=True))
        actions = self._audio(samples)
        rate = reader.rate or self._target.rate
        complete = SynthesisComplete(request.id, self._samples, self._samples / rate)
        return [*actions, *self._end(complete)]

    def refused(self, status: int, retry_after: str, body: bytes) -> list[Action]:
        """It answers with another status than 200."""
        error = refusal(self._current().id, status, _reason(body), self._target)
        return self._end(replace(error, retry_after_ms=_wait_ms(retry_after)))

    def broke(self, error: UpstreamError) -> list[Action]:
        """The wire broke, or there was none: what was asked is lost, and the link with it."""
        return [End(error)]

    def _current(self) -> Synthesize:
        if self._running is None:
            raise RuntimeError("an answer was reported, but nothing was asked")
        return self._running

    def _body_reader(self) -> BodyReader:
        if self._reader is None:
            raise RuntimeError("a body was reported without its answer")
        return self._reader

    def _unusable(self, error: AudioError) -> list[Action]:
        return [Abort(), *self._end(_unsupported(self._current(), error))]

    def _audio(self, samples: bytes) -> list[Action]:
        actions: list[Action] = []
        rate = self._body_reader().rate
        if rate is not None and not self._started:
            self._started = True
            actions.append(_control(SynthesisStart(self._current().id, rate)))
        if samples:
            self._samples += len(samples) // BYTES_PER_SAMPLE
            actions.append(Give(samples, text=False))
        return actions

    def _end(self, last_word: ServerMessage) -> list[Action]:
        self._running = None
        return [_control(last_word), *self._next()]


def refusal(id: str, status: int, reason: str, target: Target) -> Error:
    """What a status means, and what to do. Once it serves again, `busy` costs a session a pause."""
    said = f" ({status}: {reason})" if reason else f" ({status})"
    match status:
        case 401 | 403:
            told = f"the speech server does not let us in{said}: set {API_KEY_VARIABLE}"
            return Error(id, "not_permitted", told)
        case 404 | 405:
            told = (
                f"the speech server has no {target.base}/audio/speech, model {target.model!r} or "
                f"voice{said}: check path, model= and voice"
            )
            return Error(id, "not_found", told)
        case 408 | 425 | 429 | 503 | 529:
            told = f"the speech server has no room now{said}: give it more, or ask less of it"
            return Error(id, "busy", told, retryable=True)
        case 502 | 504:
            told = f"nothing answers behind the proxy of the speech server{said}: is it up?"
            return Error(id, "upstream_unreachable", told, retryable=True)
        case _ if status >= 500:
            told = f"the speech server failed{said}: see its log"
            return Error(id, "upstream_failed", told, retryable=True)
        case _ if status >= 400:
            told = f"the speech server refuses the request{said}: check voice, speed and model="
            return Error(id, "bad_request", told)
        case _:
            told = f"the speech server answers with {status} and no audio: give its final address"
            return Error(id, "bad_answer", told)


def _unsupported(request: Synthesize, error: AudioError) -> Error:
    told = f"the speech server was asked for pcm and {error}: use one that can send s16le mono"
    return Error(request.id, "unsupported_audio", told)


def _control(message: ServerMessage) -> Give:
    return Give(encode_server(message), text=True)


def _wait_ms(retry_after: str) -> int | None:
    """How long to stay away. A date, or nonsense, counts as nothing."""
    if not (retry_after.isascii() and retry_after.isdigit()):
        return None
    return min(int(retry_after[:9]), LONGEST_WAIT_S) * 1000


def _reason(body: bytes) -> str:
    """What a server says of its refusal, where it is in one of the usual places."""
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    for _ in range(4):
        if isinstance(said, list) and said:
            said = said[0]
        if isinstance(said, dict):
            said = next((said[k] for k in ("error", "detail", "message", "msg") if said.get(k)), "")
    if not isinstance(said, str):
        return ""
    return "".join(c if c.isprintable() else " " for c in said[:LONGEST_REASON])
