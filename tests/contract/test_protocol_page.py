"""Every example in docs/PROTOCOL.md is a message: it decodes, and encodes to the same."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from firstword import codec
from firstword import session_protocol as frames

PAGE = (Path(__file__).parents[2] / "docs" / "PROTOCOL.md").read_text()


def section(start: str, end: str) -> list[dict[str, Any]]:
    """The JSON objects in the code blocks between two headings."""
    text = PAGE[PAGE.index(start) : PAGE.index(end, PAGE.index(start)) if end else len(PAGE)]
    return [
        body for block in re.findall(r"```json\n(.*?)```", text, re.S) for body in objects(block)
    ]


def objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        body, end = decoder.raw_decode(text, at)
        yield body
        at = end + len(text[end:]) - len(text[end:].lstrip())


def ids(body: dict[str, Any]) -> str:
    return str(body["type"])


def packed(body: dict[str, Any]) -> dict[str, Any]:
    """As on the stream: base64 is a JSON reader's view of binary."""
    data = body.get("data")
    return body if data is None else {**body, "data": base64.b64decode(data["base64"])}


INGRESS = section("### In:", "### Between:")
SEGMENTS = section("### Between:", "### Out:")
AUDIO = section("### Out:", "## Session frames")
CLIENT = [
    b
    for b in section("## Session frames", "")
    if b["type"] in {"synthesize", "cancel", "ping", "close"}
]
SERVER = [b for b in section("## Session frames", "") if b not in CLIENT]


def test_the_page_shows_every_type() -> None:
    assert {b["type"] for b in INGRESS} == set(codec.INGRESS)
    assert {b["type"] for b in SEGMENTS} == set(codec.SEGMENTS)
    assert {b["type"] for b in AUDIO} == set(codec.AUDIO)
    assert len(CLIENT) == 4
    assert len(SERVER) == 6


@pytest.mark.parametrize("body", INGRESS, ids=ids)
def test_ingress(body: dict[str, Any]) -> None:
    [message] = codec.decode_ingress({b"m": msgpack.packb(body)})
    assert msgpack.unpackb(codec.pack(message, "demo")) == body


@pytest.mark.parametrize("body", SEGMENTS, ids=ids)
def test_segments(body: dict[str, Any]) -> None:
    message = codec.unpack(msgpack.packb(body), codec.SEGMENTS)
    assert msgpack.unpackb(codec.pack(message, "demo")) == body


@pytest.mark.parametrize("body", AUDIO, ids=ids)
def test_audio(body: dict[str, Any]) -> None:
    entry = packed(body)
    message = codec.unpack(msgpack.packb(entry), codec.AUDIO)
    again = msgpack.unpackb(codec.pack(message, "demo"))
    assert {name: again[name] for name in entry} == entry


def test_the_shell_line_speaks() -> None:
    words = re.search(r"XADD fw:text \* (.*)", PAGE)
    assert words is not None
    flat = re.findall(r'"([^"]*)"|(\S+)', words[1])
    values = [quoted or bare for quoted, bare in flat]
    fields = {k.encode(): v.encode() for k, v in zip(values[::2], values[1::2], strict=True)}
    assert [type(message).__name__ for message in codec.decode_ingress(fields)] == ["Text", "End"]


@pytest.mark.parametrize("body", CLIENT, ids=ids)
def test_client_frames(body: dict[str, Any]) -> None:
    message = frames.decode_client(json.dumps(body))
    again = json.loads(frames.encode_client(message))
    assert {name: again.get(name) for name in body} == body


@pytest.mark.parametrize("body", SERVER, ids=ids)
def test_server_frames(body: dict[str, Any]) -> None:
    message = frames.decode_server(json.dumps(body), True)
    assert not isinstance(message, bytes)
    again = json.loads(frames.encode_server(message))
    assert {name: again.get(name) for name in body} == body
