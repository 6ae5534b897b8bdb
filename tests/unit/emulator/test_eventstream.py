"""The event-stream codec: any message comes back, however it is cut, and damage is told."""

from __future__ import annotations

import struct
from uuid import UUID
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.emulator.eventstream import (
    MAX_HEADERS_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_VALUE_BYTES,
    Decoder,
    Integer,
    Message,
    Timestamp,
    Value,
    decode,
    encode,
)
from firstword.errors import DecodeError


def integers(size: int) -> st.SearchStrategy[Integer]:
    bound = 2 ** (8 * size - 1)
    return st.builds(Integer, st.integers(-bound, bound - 1), st.just(size))


values: st.SearchStrategy[Value] = st.one_of(
    st.booleans(),
    *[integers(size) for size in (1, 2, 4, 8)],
    st.binary(max_size=300),
    st.text(max_size=100),
    st.builds(Timestamp, st.integers(-(2**63), 2**63 - 1)),
    st.uuids(),
)
names = st.text(min_size=1, max_size=60)
messages = st.builds(Message, st.dictionaries(names, values, max_size=6), st.binary(max_size=600))


def raw(headers: bytes, payload: bytes = b"", *, total: int | None = None) -> bytes:
    """A message whose CRCs are right, whatever its headers are."""
    size = len(headers) + len(payload) + 16 if total is None else total
    prelude = struct.pack("!II", size, len(headers))
    body = prelude + struct.pack("!I", crc32(prelude)) + headers + payload
    return body + struct.pack("!I", crc32(body))


@given(messages)
def test_any_message_comes_back(message: Message) -> None:
    assert decode(encode(message)) == message


@given(st.lists(messages, max_size=4), st.data())
def test_any_cut_of_the_bytes_gives_the_same_messages(
    sent: list[Message], data: st.DataObject
) -> None:
    stream = b"".join(map(encode, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    decoder, got = Decoder(), list[Message]()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += decoder.feed(stream[start:end])
    assert got == sent
    assert not decoder.pending


@given(st.binary(max_size=400))
def test_arbitrary_bytes_give_messages_or_a_decode_error(data: bytes) -> None:
    try:
        Decoder().feed(data)
    except DecodeError:
        pass


@given(st.binary(max_size=80), st.binary(max_size=20))
def test_arbitrary_headers_give_a_message_or_a_decode_error(headers: bytes, payload: bytes) -> None:
    try:
        message = decode(raw(headers, payload))
    except DecodeError:
        return
    assert message.payload == payload


@given(messages, st.data())
def test_a_changed_bit_is_told(message: Message, data: st.DataObject) -> None:
    good = encode(message)
    at = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DecodeError):
        decode(bytes(bad))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (raw(b"", total=15), "bad_length"),
        (raw(b"", total=16 + MAX_PAYLOAD_BYTES + 1), "bad_length"),
        (raw(bytes(MAX_HEADERS_BYTES + 1)), "too_large"),
        (raw(b"")[:-1] + b"x", "bad_crc"),
        (b"x" + raw(b"")[1:], "bad_crc"),
        (raw(b"\x01a\x0a"), "bad_header"),  # a type that does not exist
        (raw(b"\x00\x00"), "bad_header"),  # no name
        (raw(b"\x01a\x00\x01a\x00"), "bad_header"),  # twice the same
        (raw(b"\x05a"), "bad_header"),  # a name that ends too early
        (raw(b"\x01a"), "bad_header"),  # no type
        (raw(b"\x01a\x07\x00"), "bad_header"),  # no length
        (raw(b"\x01a\x07\x00\x02x"), "bad_header"),  # a value that ends too early
        (raw(b"\x01a\x07\x00\x01\xff"), "bad_header"),  # not UTF-8
        (raw(b"\x01a\x04\x00"), "bad_header"),  # half a number
    ],
)
def test_what_is_wrong_is_named(data: bytes, code: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(data)
    assert caught.value.code == code


@pytest.mark.parametrize("data", [b"", raw(b"")[:-1], raw(b"") + b"\0", raw(b"") * 2])
def test_decode_wants_exactly_one(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data)


def test_the_largest_message_passes() -> None:
    message = Message({"a": bytes(MAX_VALUE_BYTES)}, bytes(MAX_PAYLOAD_BYTES))
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        Message({"": True}),
        Message({"n" * 256: True}),
        Message({"a": "x" * (MAX_VALUE_BYTES + 1)}),
        Message({f"header-{i}": bytes(MAX_VALUE_BYTES) for i in range(5)}),
        Message({}, bytes(MAX_PAYLOAD_BYTES + 1)),
        Message({"a": Integer(128, 1)}),
        Message({"a": Integer(0, 3)}),
        Message({"a": Timestamp(-(2**63) - 1)}),
    ],
)
def test_what_has_no_room_is_not_written(message: Message) -> None:
    with pytest.raises(ValueError, match="bytes"):
        encode(message)


def test_a_header_that_must_be_text() -> None:
    message = Message({"a": "x", "b": Integer(1), "c": UUID(int=0)})
    assert (message.text("a"), message.text("missing")) == ("x", None)
    with pytest.raises(DecodeError):
        message.text("b")
