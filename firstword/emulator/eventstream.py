"""application/vnd.amazon.eventstream: bytes <-> messages.

A message is a prelude (total length, headers' length, CRC of these two), headers, a payload and a
CRC of all that came before; all numbers are big endian. A header is a name, a type and a value.
What cannot be read raises DecodeError, and nothing else does.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID
from zlib import crc32

from firstword.errors import DecodeError

MAX_HEADERS_BYTES = 128 * 1024
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
MAX_VALUE_BYTES = 32 * 1024 - 1
MAX_NAME_BYTES = 255

_PRELUDE = struct.Struct("!II")
_CRC = struct.Struct("!I")
_PRELUDE_BYTES = 12
_OVERHEAD_BYTES = 16  # prelude and the CRC at the end

_TRUE, _FALSE, _BYTES, _TEXT, _TIMESTAMP, _UUID = 0, 1, 6, 7, 8, 9
_INTEGER_KINDS = {1: 2, 2: 3, 4: 4, 8: 5}  # by their size in bytes
_INTEGER_SIZES = {kind: size for size, kind in _INTEGER_KINDS.items()}


class Integer(NamedTuple):
    """A whole number of 1, 2, 4 or 8 bytes."""

    value: int
    size: int = 4


class Timestamp(NamedTuple):
    """Milliseconds since 1970, UTC."""

    ms: int


Value = bool | Integer | bytes | str | Timestamp | UUID


@dataclass(frozen=True)
class Message:
    """One message; no name stands twice in its headers."""

    headers: Mapping[str, Value] = field(default_factory=dict)
    payload: bytes = b""

    def text(self, name: str) -> str | None:
        """A header that must be text; None if it is not there. Raises DecodeError."""
        value = self.headers.get(name)
        if value is not None and not isinstance(value, str):
            raise DecodeError("bad_header", f"the header {name} is not text")
        return value


# -- writing --------------------------------------------------------------------------------------


def encode(message: Message) -> bytes:
    """Raises ValueError where the format has no room: names, values, headers or payload."""
    headers = encode_headers(message.headers)
    if len(headers) > MAX_HEADERS_BYTES:
        raise ValueError(f"headers of {len(headers)} bytes, more than {MAX_HEADERS_BYTES}")
    if len(message.payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"a payload of {len(message.payload)} bytes, over {MAX_PAYLOAD_BYTES}")
    prelude = _PRELUDE.pack(len(headers) + len(message.payload) + _OVERHEAD_BYTES, len(headers))
    body = b"".join([prelude, _CRC.pack(crc32(prelude)), headers, message.payload])
    return body + _CRC.pack(crc32(body))


def encode_headers(headers: Mapping[str, Value]) -> bytes:
    """The headers' own bytes; signatures are made over these."""
    parts = []
    for name, value in headers.items():
        raw = name.encode()
        if not 0 < len(raw) <= MAX_NAME_BYTES:
            raise ValueError(f"a header's name of {len(raw)} bytes, not 1 to {MAX_NAME_BYTES}")
        parts += [bytes([len(raw)]), raw, _encode_value(value)]
    return b"".join(parts)


def _encode_value(value: Value) -> bytes:
    if isinstance(value, bool):
        return bytes([_TRUE if value else _FALSE])
    if isinstance(value, Integer):
        return _encode_number(_INTEGER_KINDS.get(value.size), value.value, value.size)
    if isinstance(value, Timestamp):
        return _encode_number(_TIMESTAMP, value.ms, 8)
    if isinstance(value, UUID):
        return bytes([_UUID]) + value.bytes
    kind, raw = (_TEXT, value.encode()) if isinstance(value, str) else (_BYTES, value)
    if len(raw) > MAX_VALUE_BYTES:
        raise ValueError(f"a header's value of {len(raw)} bytes, more than {MAX_VALUE_BYTES}")
    return bytes([kind]) + struct.pack("!H", len(raw)) + raw


def _encode_number(kind: int | None, number: int, size: int) -> bytes:
    if kind is None or not -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
        raise ValueError(f"{number} is no number of {size} bytes; there are 1, 2, 4 and 8")
    return bytes([kind]) + number.to_bytes(size, "big", signed=True)


# -- reading --------------------------------------------------------------------------------------


def decode(data: bytes) -> Message:
    """Exactly one message. Raises DecodeError."""
    decoder = Decoder()
    messages = decoder.feed(data)
    if len(messages) != 1 or decoder.pending:
        raise DecodeError("bad_event", "not exactly one whole event")
    return messages[0]


class Decoder:
    """Reads messages from a stream of bytes, however it is cut. It holds one message at most."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._wanted = _PRELUDE_BYTES

    @property
    def pending(self) -> bool:
        """Whether a message has begun that is not whole yet."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[Message]:
        """The messages that `data` completes. After a DecodeError the stream is lost."""
        self._held += data
        messages = []
        while len(self._held) >= self._wanted:
            if self._wanted == _PRELUDE_BYTES:
                self._wanted = _total_bytes(bytes(self._held[:_PRELUDE_BYTES]))
                continue
            messages.append(_read(bytes(self._held[: self._wanted])))
            del self._held[: self._wanted]
            self._wanted = _PRELUDE_BYTES
        return messages


def _total_bytes(prelude: bytes) -> int:
    total, headers = _PRELUDE.unpack_from(prelude)
    if crc32(prelude[:8]) != _CRC.unpack_from(prelude, 8)[0]:
        raise DecodeError("bad_crc", "an event's prelude is damaged: its CRC does not match")
    if headers > MAX_HEADERS_BYTES:
        raise DecodeError("too_large", f"an event has headers of {headers} bytes")
    payload = total - headers - _OVERHEAD_BYTES
    if not 0 <= payload <= MAX_PAYLOAD_BYTES:
        raise DecodeError("bad_length", f"an event has a payload of {payload} bytes")
    return int(total)


def _read(data: bytes) -> Message:
    if crc32(data[:-4]) != _CRC.unpack_from(data, len(data) - 4)[0]:
        raise DecodeError("bad_crc", "an event is damaged: its CRC does not match")
    split = _PRELUDE_BYTES + _PRELUDE.unpack_from(data)[1]
    try:
        headers = _read_headers(data[_PRELUDE_BYTES:split])
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError("bad_header", f"an event's headers cannot be read: {error}") from error
    return Message(headers, data[split:-4])


def _read_headers(data: bytes) -> dict[str, Value]:
    headers: dict[str, Value] = {}
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        name = _slice(data, at + 1, end).decode()
        if not name or name in headers:
            raise DecodeError("bad_header", "an event has a header without name, or one twice")
        headers[name], at = _read_value(data, end)
    return headers


def _read_value(data: bytes, at: int) -> tuple[Value, int]:
    """The value whose type stands at `at`, and where the next header begins."""
    kind, at = data[at], at + 1
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind in (_BYTES, _TEXT):
        (size,) = struct.unpack_from("!H", data, at)
        raw = _slice(data, at + 2, at + 2 + size)
        return raw.decode() if kind == _TEXT else raw, at + 2 + size
    if kind == _UUID:
        return UUID(bytes=_slice(data, at, at + 16)), at + 16
    size = 8 if kind == _TIMESTAMP else _INTEGER_SIZES.get(kind, 0)
    if not size:
        raise DecodeError("bad_header", f"an event has a header of the unknown type {kind}")
    number = int.from_bytes(_slice(data, at, at + size), "big", signed=True)
    return Timestamp(number) if kind == _TIMESTAMP else Integer(number, size), at + size


def _slice(data: bytes, start: int, end: int) -> bytes:
    if end > len(data):
        raise IndexError("a header ends too early")
    return data[start:end]
