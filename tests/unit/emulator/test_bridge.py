"""The bridge: a part is a frame and a frame a part, whatever is in them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.emulator.bridge import (
    Frame,
    Opcode,
    PartRefused,
    ToClient,
    ToContainer,
    model_stream_error,
    stream_failure,
)
from firstword.emulator.eventstream import Message
from firstword.errors import DecodeError
from tests.doubles.emulator_signer import part

TEXT, BINARY, CONTINUATION = Opcode.TEXT, Opcode.BINARY, Opcode.CONTINUATION

Sent = tuple[str | None, str | None, Frame]


@pytest.mark.parametrize(
    "sent",
    [
        [("UTF8", "COMPLETE", Frame(TEXT, b"0"))],
        [("BINARY", None, Frame(BINARY, b"0"))],
        [(None, None, Frame(BINARY, b"0")), ("UTF8", None, Frame(TEXT, b"1"))],
        [
            ("UTF8", "PARTIAL", Frame(TEXT, b"0", False)),
            ("UTF8", "PARTIAL", Frame(CONTINUATION, b"1", False)),
            (None, "COMPLETE", Frame(CONTINUATION, b"2")),
            (None, None, Frame(BINARY, b"3")),
        ],
        [
            (None, "PARTIAL", Frame(BINARY, b"0", False)),
            ("BINARY", None, Frame(CONTINUATION, b"1")),
        ],
    ],
)
def test_parts_become_frames(sent: list[Sent]) -> None:
    bridge = ToContainer()
    for number, (data_type, completion, frame) in enumerate(sent):
        assert bridge.frame(part(str(number).encode(), data_type, completion)) == frame


def test_padding_is_dropped_and_bytes_are_not_looked_into() -> None:
    assert ToContainer().frame(part(b"\xff\xfe", "UTF8", P="aaaa")) == Frame(TEXT, b"\xff\xfe")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (part(b"", "utf8"), "DataType must be"),
        (part(b"", None, "DONE"), "CompletionState must be"),
        (Message({":message-type": "event", ":event-type": "Other"}), "must be a PayloadPart"),
        (Message({":message-type": "exception"}), "must be a PayloadPart"),
        (Message(), "must be a PayloadPart"),
    ],
)
def test_what_is_no_part_is_refused(bad: Message, why: str) -> None:
    with pytest.raises(PartRefused, match=why):
        ToContainer().frame(bad)


def test_a_message_does_not_change_its_type_halfway() -> None:
    bridge = ToContainer()
    bridge.frame(part(b"", "UTF8", "PARTIAL"))
    with pytest.raises(PartRefused, match="inside a message that began as UTF8"):
        bridge.frame(part(b"", "BINARY"))


frames = st.lists(
    st.tuples(st.sampled_from([TEXT, BINARY]), st.lists(st.binary(max_size=20), min_size=1)),
    max_size=5,
)


@given(frames)
def test_frames_survive_the_way_to_the_client_and_back(
    sent: list[tuple[Opcode, list[bytes]]],
) -> None:
    """The container of an echo would get exactly what it sent: no frame more, none less."""
    to_client, to_container = ToClient(), ToContainer()
    for opcode, pieces in sent:
        for index, data in enumerate(pieces):
            kind = CONTINUATION if index else opcode
            frame = Frame(kind, data, index == len(pieces) - 1)
            there = to_client.part(frame)
            assert there.text("DataType") == ("UTF8" if opcode is TEXT else "BINARY")
            assert there.text("CompletionState") == ("COMPLETE" if frame.fin else "PARTIAL")
            assert there.payload == data
            assert to_container.frame(there) == frame


def test_what_the_client_learns_at_the_end() -> None:
    error = model_stream_error("1011", "overload")
    assert error.headers[":message-type"] == "exception"
    assert error.headers[":exception-type"] == "ModelStreamError"
    assert json.loads(error.payload) == {"ErrorCode": "1011", "Message": "overload"}
    failure = stream_failure(PartRefused("ValidationException", "no"))
    assert failure.headers == {
        ":message-type": "error",
        ":error-code": "ValidationException",
        ":error-message": "no",
    }
    unreadable = stream_failure(DecodeError("bad_crc", "damaged"))
    assert unreadable.headers[":error-code"] == "SerializationException"
