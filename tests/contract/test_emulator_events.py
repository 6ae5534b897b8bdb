"""Golden bytes of the event stream and its signatures, as AWS's own libraries make them.

`golden/emulator_events_v1.txt` holds three of AWS's published test vectors first and, after them,
what smithy-aws-event-stream 0.3.0 and aws-sdk-signers 0.4.0 wrote for a made-up key. Lines may be
added; none may change. Where these libraries are installed they are asked again, with anything.
"""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.emulator.bridge import Frame, Opcode, ToContainer
from firstword.emulator.eventstream import (
    Integer,
    Message,
    Timestamp,
    Value,
    decode,
    encode,
)
from firstword.emulator.signatures import KeyPair, Request, verify_request

if sys.version_info >= (3, 12):  # AWS's libraries want it
    from botocore.eventstream import EventStreamBuffer
    from smithy_aws_event_stream.events import Event

GOLDEN = dict(
    line.split()
    for line in Path(__file__)
    .with_name("golden")
    .joinpath("emulator_events_v1.txt")
    .read_text()
    .splitlines()
)
MESSAGES = {
    "empty": Message(),
    "payload": Message({}, b"{'foo':'bar'}"),
    "integer": Message({"event-type": Integer(40_972)}, b"{'foo':'bar'}"),
    "every_type": Message(
        {
            "true": True,
            "false": False,
            "byte": Integer(-7, 1),
            "short": Integer(-300, 2),
            "integer": Integer(70_000),
            "long": Integer(-5_000_000_000, 8),
            "bytes": b"\0\xff",
            "string": "Grüße",
            "timestamp": Timestamp(1_795_953_600_123),
            "uuid": UUID("01020304-0506-0708-090a-0b0c0d0e0f10"),
        },
        b"pcm",
    ),
}
KEY = KeyPair("EXAMPLEKEY", "example/secret+key", "example-token")
NOW = datetime(2026, 11, 29, 12, 0, 1, tzinfo=UTC)
REQUEST = Request(
    "POST",
    "/endpoints/demo/invocations-bidirectional-stream",
    "",
    [
        ("content-type", "application/vnd.amazon.eventstream"),
        ("host", "localhost:8443"),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-EVENTS"),
        ("x-amz-date", "20261129T120000Z"),
        ("x-amz-security-token", "example-token"),
        ("x-amzn-sagemaker-model-query-string", "a=b&c=%20"),
        ("accept", "*/*"),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=EXAMPLEKEY/20261129/us-east-1/sagemaker/aws4_request, "
            "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token;"
            "x-amzn-sagemaker-model-query-string, "
            "Signature=5faaefecc6a45191d9ac5ba01089cbd8226f5c25ae8c6c33a78199fdaf69378f",
        ),
    ],
)


@pytest.mark.parametrize("name", MESSAGES)
def test_golden_messages(name: str) -> None:
    data = bytes.fromhex(GOLDEN[name])
    assert decode(data) == MESSAGES[name]
    assert encode(MESSAGES[name]) == data


def test_a_golden_request_and_its_chain_of_events() -> None:
    chain = verify_request(REQUEST, {KEY.access_key_id: KEY}, "us-east-1", NOW)
    bridge = ToContainer()
    frames = []
    for name in ("signed_text", "signed_binary"):
        inner = chain.verify(decode(bytes.fromhex(GOLDEN[name])), NOW)
        assert inner is not None
        frames.append(bridge.frame(decode(inner)))
    assert frames == [
        Frame(Opcode.TEXT, b'{"type":"ping"}'),
        Frame(Opcode.BINARY, b"\x01\x02"),
    ]
    assert chain.verify(decode(bytes.fromhex(GOLDEN["signed_end"])), NOW) is None


# -- asked again ----------------------------------------------------------------------------------

needs_sdk = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="AWS's Python libraries for event streams need Python 3.12"
)
names = st.text(min_size=1, max_size=20)
text = st.text(max_size=40)
SMALL_YEARS = (0, 4_000_000_000_000)  # milliseconds; what a datetime can hold anywhere


@needs_sdk
@given(
    st.dictionaries(
        names,
        st.one_of(
            st.booleans(),
            st.builds(Integer, st.integers(-(2**31), 2**31 - 1), st.just(4)),
            st.binary(max_size=40),
            text,
            st.uuids(),
            st.builds(Timestamp, st.integers(*SMALL_YEARS)),
        ),
        max_size=5,
    ),
    st.binary(max_size=200),
)
def test_the_official_client_reads_what_we_write(headers: dict[str, Value], payload: bytes) -> None:
    event = Event.decode(io.BytesIO(encode(Message(headers, payload))))
    assert event is not None
    assert event.message.payload == payload
    for name, value in headers.items():
        theirs = event.message.headers[name]
        if isinstance(value, Integer):
            assert theirs == value.value
        elif isinstance(value, Timestamp):
            assert isinstance(theirs, datetime)
            since = theirs - datetime(1970, 1, 1, tzinfo=UTC)
            assert round(since.total_seconds() * 1000) == value.ms
        else:
            assert theirs == value
    if not any(isinstance(value, Timestamp) for value in headers.values()):  # theirs lose 1 ms
        assert decode(event.message.encode()) == Message(headers, payload)


@needs_sdk
@given(st.dictionaries(names, st.one_of(text, st.binary(max_size=40)), max_size=5))
def test_botocore_reads_what_we_write(headers: dict[str, Value]) -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(encode(Message(headers, b"pcm")))
    (event,) = buffer
    assert (event.headers, event.payload) == (headers, b"pcm")
