"""The decisions for one connection: the order of requests, and the answer to each frame.

No socket, no clock, no engine: frames and outcomes in, actions out. The shell (`service.py`)
performs the actions in order and reports how the synthesis that it started goes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, TypeAlias

from firstword.messages import SPEEDS
from firstword.session_protocol import (
    BYTES_PER_SAMPLE,
    Cancel,
    Cancelled,
    Closing,
    Error,
    Frame,
    FrameError,
    Ping,
    Pong,
    SynthesisComplete,
    SynthesisStart,
    Synthesize,
    Words,
    decode_client,
    encode_server,
)

MIN_SPEED, MAX_SPEED = SPEEDS
MIN_SAMPLE_RATE: Final = 8_000
MAX_SAMPLE_RATE: Final = 48_000

FIRST_RETRY_MS: Final = 500
"""How long a request is assumed to take on a connection where none has ended yet."""

NORMAL_CLOSURE: Final = 1000
SERVICE_RESTART: Final = 1012


@dataclass(frozen=True, slots=True)
class Limits:
    """What one connection may ask for."""

    max_text_chars: int
    max_queued: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send a frame: text if str, audio if bytes. `error`: its code, to be counted."""

    frame: Frame
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Begin this synthesis. No other synthesis of this connection runs."""

    request: Synthesize


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the running synthesis; then report `Session.stopped`, or how else it ended."""


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection once all sent frames are out."""

    code: int


Action: TypeAlias = Send | Start | Stop | Disconnect


def refusal(request: Synthesize, max_text_chars: int) -> Error | None:
    """Why a request cannot be spoken, as far as that is known without the engine."""
    if not request.text.strip():
        return _error(request, "empty_text", "`text` has nothing but white space")
    if len(request.text) > max_text_chars:
        return _error(
            request,
            "text_too_long",
            f"`text` has {len(request.text)} characters, the limit is {max_text_chars}; "
            "send it sentence by sentence",
        )
    if not MIN_SPEED <= request.speed <= MAX_SPEED:
        return _error(request, "bad_field", f"`speed` must be {MIN_SPEED} to {MAX_SPEED}")
    if not MIN_SAMPLE_RATE <= request.sample_rate <= MAX_SAMPLE_RATE:
        between = f"{MIN_SAMPLE_RATE} to {MAX_SAMPLE_RATE}"
        return _error(request, "bad_field", f"`sample_rate` must be {between}")
    return None


def _error(
    request: Synthesize,
    code: str,
    message: str,
    *,
    retryable: bool = False,
    retry_after_ms: int | None = None,
) -> Error:
    return Error(request.id or None, code, message, retryable, retry_after_ms)


class Session:
    """One connection: strictly one synthesis at a time; the rest waits in order of arrival."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running: Synthesize | None = None
        self._stopping = False
        self._samples = 0
        self._waiting: deque[Synthesize] = deque()
        self._usual_ms = FIRST_RETRY_MS
        self._leaving: Disconnect | None = None
        self._over = False

    # ------------------------------------------------------------------ from the peer

    def receive(self, frame: Frame) -> list[Action]:
        """Answer a frame from the client, whatever its bytes are."""
        try:
            message = decode_client(frame)
        except FrameError as error:
            return [_send_error(Error(error.id, error.code, error.message))]
        match message:
            case Synthesize():
                return self._synthesize(message)
            case Cancel():
                return self._cancel(message.id)
            case Ping():
                return [Send(encode_server(Pong()))]
            case _:
                return self._leave(NORMAL_CLOSURE)

    def disconnected(self) -> list[Action]:
        """The peer is gone: nothing can be sent any more."""
        self._over = True
        self._waiting.clear()
        return self._stop()

    def drain(self) -> list[Action]:
        """The container must go: finish what runs, refuse what waits."""
        refused = [
            _send_error(_error(request, "draining", "connect again elsewhere", retryable=True))
            for request in self._waiting
        ]
        self._waiting.clear()
        return [*refused, *self._leave(SERVICE_RESTART)]

    def _synthesize(self, request: Synthesize) -> list[Action]:
        refused = refusal(request, self._limits.max_text_chars) or self._admission(request)
        if refused is not None:
            return [_send_error(refused)]
        self._waiting.append(request)
        return self._next()

    def _admission(self, request: Synthesize) -> Error | None:
        if self._leaving is not None:
            return _error(request, "draining", "this connection is closing", retryable=True)
        known = [self._running, *self._waiting]
        if request.id and any(other is not None and other.id == request.id for other in known):
            return _error(request, "id_in_use", "give each synthesis an id of its own")
        if self._running is not None and len(self._waiting) >= self._limits.max_queued:
            message = "too many requests wait on this connection; send them one at a time"
            # There is room for one more when the running one is over.
            after_ms = self._usual_ms
            return _error(request, "busy", message, retryable=True, retry_after_ms=after_ms)
        return None

    def _cancel(self, id: str) -> list[Action]:
        dropped = [request for request in self._waiting if id in ("", request.id)]
        self._waiting = deque(request for request in self._waiting if request not in dropped)
        answers: list[Action] = [
            Send(encode_server(Cancelled(request.id, 0))) for request in dropped
        ]
        if self._running is not None and id in ("", self._running.id):
            return [*answers, *self._stop()]
        return answers

    def _stop(self) -> list[Action]:
        if self._running is None or self._stopping:
            return []
        self._stopping = True
        return [Stop()]

    def _leave(self, code: int) -> list[Action]:
        self._leaving = self._leaving or Disconnect(code)
        return self._next()

    # ------------------------------------------------------------------ from the synthesis

    def started(self, plan: str, voice: str | None = None) -> list[Action]:
        """The plan is known; audio follows. `voice`: the chosen one, if the request names none."""
        request = self._current()
        if self._stopping:
            return []
        start = SynthesisStart(request.id, request.sample_rate, plan, voice)
        return [Send(encode_server(start))]

    def audio(self, data: bytes) -> list[Action]:
        """A frame of whole samples."""
        if self._stopping:
            return []
        self._samples += len(data) // BYTES_PER_SAMPLE
        return [Send(data)]

    def completed(
        self, *, duration_s: float, words: Words, synthesis_ms: float, queue_ms: float
    ) -> list[Action]:
        """All audio was delivered."""
        self._usual_ms = max(1, round(queue_ms + synthesis_ms))
        if self._stopping:
            return self.stopped()
        message = SynthesisComplete(
            self._current().id, self._samples, duration_s, words, synthesis_ms, queue_ms
        )
        return self._end(Send(encode_server(message)))

    def failed(
        self, code: str, message: str, *, retryable: bool, retry_after_ms: int | None = None
    ) -> list[Action]:
        """The synthesis was refused or broke off."""
        if self._stopping:
            return self.stopped()
        error = Error(self._current().id or None, code, message, retryable, retry_after_ms)
        return self._end(_send_error(error))

    def stopped(self) -> list[Action]:
        """The synthesis has stopped after a `Stop`."""
        return self._end(Send(encode_server(Cancelled(self._current().id, self._samples))))

    def _current(self) -> Synthesize:
        if self._running is None:
            raise RuntimeError("an outcome was reported, but no synthesis runs")
        return self._running

    def _end(self, last_word: Send) -> list[Action]:
        self._running, self._stopping, self._samples = None, False, 0
        return [] if self._over else [last_word, *self._next()]

    def _next(self) -> list[Action]:
        """Start what waits, or leave if that was asked for and nothing waits."""
        if self._running is not None:
            return []
        if self._waiting:
            self._running = self._waiting.popleft()
            return [Start(self._running)]
        if self._leaving is None or self._over:
            return []
        self._over = True
        if self._leaving.code == SERVICE_RESTART:
            return [Send(encode_server(Closing("drain"))), self._leaving]
        return [self._leaving]


def _send_error(error: Error) -> Send:
    return Send(encode_server(error), error.code)
