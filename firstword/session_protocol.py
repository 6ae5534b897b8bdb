"""The frames between a gateway and an inference container, as bytes in and events out.

Nothing here knows a socket or a clock: the same code serves a WebSocket, a SageMaker stream and the
tests. Client frames are JSON objects; server frames are control (JSON objects) or audio (PCM,
s16le, mono). `docs/PROTOCOL.md`, "Session frames", is the specification.

This module is the door: the messages (`session_messages.py`), their codec (`session_codec.py`) and
the gateway's half of a connection. Three kinds of trouble are told apart, because each has
another remedy:

* `FrameError`: this frame cannot be read. The sender is told and the connection lives on.
* `RemoteProtocolError`: the container broke the order of frames. Drop the connection; the
  segment can be tried again on a new one.
* `LocalProtocolError`: we called in the wrong order. A bug on our side, never retried.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from firstword.session_codec import (
    MAX_FRAME_BYTES,
    MAX_NAME_CHARS,
    MAX_SERVER_FRAME_BYTES,
    Frame,
    decode_client,
    decode_server,
    encode_client,
    encode_server,
)
from firstword.session_messages import (
    BYTES_PER_SAMPLE,
    DEFAULT_SAMPLE_RATE,
    Audio,
    Cancel,
    Cancelled,
    ClientMessage,
    Close,
    Closing,
    Error,
    Event,
    FrameError,
    LocalProtocolError,
    Ping,
    Pong,
    RemoteProtocolError,
    ServerMessage,
    SynthesisComplete,
    SynthesisStart,
    Synthesize,
    Words,
)

__all__ = [
    "BYTES_PER_SAMPLE",
    "DEFAULT_SAMPLE_RATE",
    "MAX_FRAME_BYTES",
    "MAX_NAME_CHARS",
    "MAX_SERVER_FRAME_BYTES",
    "Audio",
    "Cancel",
    "Cancelled",
    "ClientConnection",
    "ClientMessage",
    "Close",
    "Closing",
    "Error",
    "Event",
    "Frame",
    "FrameError",
    "LocalProtocolError",
    "Ping",
    "Pong",
    "RemoteProtocolError",
    "ServerMessage",
    "SynthesisComplete",
    "SynthesisStart",
    "Synthesize",
    "Words",
    "decode_client",
    "decode_server",
    "encode_client",
    "encode_server",
]


@dataclass(slots=True, eq=False)
class _Pending:
    """One synthesis that the container has not ended yet."""

    request: Synthesize
    started: bool = False
    cancelled: bool = False
    origin: int = 0  # where in the segment this synthesis' audio begins, in samples
    samples: int = 0  # received so far


class ClientConnection:
    """The gateway's half of one connection: strictly one synthesis at a time.

    Every synthesis ends in exactly one `SynthesisComplete`, `Cancelled` or `Error` event with its
    id. After `cancel()` the next synthesis may be sent at once: frames of the cancelled one that
    were already under way are dropped. The container speaks in the order it was asked, so a
    control frame without an id belongs to the oldest synthesis that has not ended.
    """

    def __init__(self) -> None:
        self._pending: deque[_Pending] = deque()
        self._announced: _Pending | None = None
        self.skipped = 0
        """Control frames of a type we do not know: ignored and counted."""

    @property
    def busy(self) -> bool:
        """Whether a synthesis runs that was not cancelled."""
        return self._current() is not None

    def synthesize(self, request: Synthesize) -> str:
        """The frame that starts `request`. Raises LocalProtocolError while another one runs."""
        if self._current() is not None:
            raise LocalProtocolError("synthesis_running", "wait for the end of the synthesis")
        if not request.id or any(p.request.id == request.id for p in self._pending):
            raise LocalProtocolError("id_in_use", "give each synthesis an id of its own")
        self._pending.append(_Pending(request))
        return encode_client(request)

    def cancel(self) -> str | None:
        """The frame that stops the running synthesis, or None if there is none."""
        current = self._current()
        if current is None:
            return None
        current.cancelled = True
        return encode_client(Cancel(current.request.id))

    def receive(self, frame: Frame, text: bool | None = None) -> list[Event]:
        """The events of one server frame; `text` is what the transport says of it, if it does.

        Raises: FrameError for a frame that cannot be read, RemoteProtocolError for one out of
        order. Both mean that this container cannot be followed any further.
        """
        try:
            message = decode_server(frame, text)
        except FrameError as error:
            if error.code != "unknown_type":
                raise
            self.skipped += 1
            return []
        match message:
            case bytes():
                return self._audio(message)
            case SynthesisStart():
                return self._start(message)
            case SynthesisComplete():
                return self._complete(message)
            case Cancelled():
                return self._cancelled(message)
            case Error():
                return self._error(message)
            case _:
                return [message]

    def _audio(self, data: bytes) -> list[Event]:
        announced = self._announced
        if announced is None:
            raise RemoteProtocolError("audio_unannounced", "audio came without synthesis_start")
        if len(data) % BYTES_PER_SAMPLE:
            raise RemoteProtocolError("audio_torn", "an audio frame holds half a sample")
        if announced.cancelled or not data:
            return []
        offset = announced.origin + announced.samples
        announced.samples += len(data) // BYTES_PER_SAMPLE
        return [Audio(announced.request.id, offset, data)]

    def _start(self, message: SynthesisStart) -> list[Event]:
        pending = self._find(message.id)
        if pending is None or pending.started:
            raise RemoteProtocolError("start_unexpected", "synthesis_start for nothing we asked")
        overtaken = self._overtaken(pending)
        pending.started = True
        request = pending.request
        if request.plan is not None and request.plan == message.plan:
            pending.origin = request.skip_samples
        self._announced = pending
        started: list[Event] = [] if pending.cancelled else [replace(message, id=request.id)]
        return overtaken + started

    def _overtaken(self, started: _Pending) -> list[Event]:
        """Ends what was sent before `started`: in a sequential container it can speak no more."""
        events: list[Event] = []
        while (head := self._pending[0]) is not started:
            events.append(self._end(head, Cancelled(head.request.id, head.samples)))
        return events

    def _complete(self, message: SynthesisComplete) -> list[Event]:
        pending = self._find(message.id)
        if pending is None or not pending.started:
            raise RemoteProtocolError("complete_unexpected", "complete came for nothing started")
        request = pending.request
        if pending.cancelled:  # it was quicker than our cancel
            return [self._end(pending, Cancelled(request.id, pending.samples))]
        if message.samples is not None and message.samples != pending.samples:
            explained = f"{pending.samples} samples arrived, {message.samples} were sent"
            error = Error(request.id, "samples_mismatch", explained, retryable=True)
            return [self._end(pending, error)]
        return [
            self._end(pending, replace(message, id=request.id, samples=pending.samples)),
        ]

    def _cancelled(self, message: Cancelled) -> list[Event]:
        pending = self._find(message.id)
        if pending is None:
            return []
        return [self._end(pending, replace(message, id=pending.request.id))]

    def _error(self, message: Error) -> list[Event]:
        pending = self._find(message.id or "")
        if pending is None:
            # Of the whole connection if it names nothing; else of a synthesis that has ended.
            return [] if message.id else [message]
        if pending.cancelled:
            return [self._end(pending, Cancelled(pending.request.id, pending.samples))]
        return [self._end(pending, replace(message, id=pending.request.id))]

    def _current(self) -> _Pending | None:
        newest = self._pending[-1] if self._pending else None
        return None if newest is None or newest.cancelled else newest

    def _find(self, id: str) -> _Pending | None:
        if not id:
            return self._pending[0] if self._pending else None
        return next((p for p in self._pending if p.request.id == id), None)

    def _end(self, pending: _Pending, event: Event) -> Event:
        self._pending.remove(pending)
        if self._announced is pending:
            self._announced = None
        return event
