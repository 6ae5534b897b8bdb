"""Payload parts of a SageMaker stream <-> frames of the container's WebSocket, one for one.

UTF8 is a text frame, BINARY or nothing a binary one; a PARTIAL part is a frame that is not the last
of its message (FIN=0). Nothing is joined, split, re-encoded or looked into.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum

from firstword.emulator.eventstream import Message
from firstword.errors import DecodeError, FirstwordError


class Opcode(IntEnum):
    """The data frames of RFC 6455."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2


@dataclass(frozen=True)
class Frame:
    """One data frame of a WebSocket."""

    opcode: Opcode
    data: bytes
    fin: bool = True


class PartRefused(FirstwordError):
    """A client's event that is no payload part, or contradicts the parts before it."""


_OPCODES = {"UTF8": Opcode.TEXT, "BINARY": Opcode.BINARY}
_TYPES = {opcode: name for name, opcode in _OPCODES.items()}


class ToContainer:
    """The client's parts, in their order."""

    def __init__(self) -> None:
        self._open: Opcode | None = None  # of the message whose last part is still to come

    def frame(self, part: Message) -> Frame:
        """The frame for the next part. Raises PartRefused or DecodeError."""
        kind, name = part.text(":message-type"), part.text(":event-type")
        if (kind, name) != ("event", "PayloadPart"):
            raise _refused(f"an event must be a PayloadPart, not {kind} {name}")
        opcode = self._opcode(part.text("DataType"))
        completion = part.text("CompletionState") or "COMPLETE"
        if completion not in ("PARTIAL", "COMPLETE"):
            raise _refused(f"CompletionState must be PARTIAL or COMPLETE, not {completion!r}")
        fin = completion == "COMPLETE"
        frame = Frame(Opcode.CONTINUATION if self._open else opcode, part.payload, fin)
        self._open = None if fin else opcode
        return frame

    def _opcode(self, name: str | None) -> Opcode:
        if name is None:
            return self._open or Opcode.BINARY
        opcode = _OPCODES.get(name)
        if opcode is None:
            raise _refused(f"DataType must be UTF8 or BINARY, not {name!r}")
        if self._open and opcode is not self._open:
            raise _refused(f"DataType {name} inside a message that began as {_TYPES[self._open]}")
        return opcode


class ToClient:
    """The container's frames, in their order."""

    def __init__(self) -> None:
        self._type = _TYPES[Opcode.BINARY]

    def part(self, frame: Frame) -> Message:
        """The part for the next frame; later frames of a message have the type of its first."""
        if frame.opcode is not Opcode.CONTINUATION:
            self._type = _TYPES[frame.opcode]
        return Message(
            {
                ":message-type": "event",
                ":event-type": "PayloadPart",
                ":content-type": "application/octet-stream",
                "DataType": self._type,
                "CompletionState": "COMPLETE" if frame.fin else "PARTIAL",
            },
            frame.data,
        )


def model_stream_error(code: str, message: str) -> Message:
    """What the client learns when the container has ended the stream, or was lost."""
    return Message(
        {
            ":message-type": "exception",
            ":exception-type": "ModelStreamError",
            ":content-type": "application/json",
        },
        json.dumps({"ErrorCode": code, "Message": message}).encode(),
    )


def stream_failure(error: FirstwordError) -> Message:
    """What the client learns when its own events cannot be taken."""
    code = "SerializationException" if isinstance(error, DecodeError) else error.code
    return Message({":message-type": "error", ":error-code": code, ":error-message": error.message})


def _refused(why: str) -> PartRefused:
    return PartRefused("ValidationException", why)
