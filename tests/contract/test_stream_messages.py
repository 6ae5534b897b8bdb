"""Golden stream messages: what version 1 wrote must be read, and written, for ever.

The bytes stand in `golden/stream_messages_v1.txt`, a line each: family, type, the `m` field in hex.
Lines may be added there; none may change. A later version gets a file of its own beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
import pytest

from firstword import codec
from firstword import messages as m

FAMILIES: Mapping[str, Mapping[str, type[Any]]] = {
    "ingress": codec.INGRESS,
    "segments": codec.SEGMENTS,
    "audio": codec.AUDIO,
}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

MESSAGES: list[tuple[str, Any]] = [
    (
        "ingress",
        m.Open(
            session="demo",
            voice="af_heart",
            speed=1.25,
            lang="en-us",
            sample_rate=16_000,
            pace="none",
            meta={"segmenter": {"mode": "eager", "stall": 0.5}, "caller": [1, None, True]},
            traceparent=TRACE,
        ),
    ),
    ("ingress", m.Open(session="demo")),
    (
        "ingress",
        m.Text(
            session="demo",
            text="Grüß dich! 你好。",
            turn="t-1",
            seq=300,
            voice="bm_george",
            speed=0.5,
            lang="de",
            traceparent=TRACE,
            src="1700000000000-3",
        ),
    ),
    ("ingress", m.Text(session="demo", text="cut inside \udcf0\udc9f")),
    ("ingress", m.Flush(session="demo", turn="t-1", seq=1)),
    ("ingress", m.Flush(session="demo")),
    ("ingress", m.End(session="demo", turn="t-1", seq=2)),
    ("ingress", m.End(session="demo")),
    (
        "ingress",
        m.Cancel(session="demo", turn="t-1", played={"turn": "t-1", "n": 3, "samples": 70_000}),
    ),
    ("ingress", m.Cancel(session="demo")),
    ("ingress", m.Resume(session="demo", turn="t-1", start=12, samples=4_800)),
    ("ingress", m.Close(session="demo")),
    (
        "segments",
        m.SessionOpen(
            voice="af_heart", speed=1.0, lang="auto", sample_rate=24_000, pace="realtime"
        ),
    ),
    (
        "segments",
        m.Segment(
            turn="t-1",
            n=70_000,
            text="Hello **there**.",
            spoken="Hello there.",
            start=0,
            end=16,
            voice="af_heart",
            speed=1.0,
            lang="en-us",
            first=True,
            last=False,
            opened_at="1700000000000-0",
            traceparent=TRACE,
        ),
    ),
    (
        "segments",
        m.Tentative(turn="t-1", n=2, text="Hello.", voice="af_heart", speed=1.0, lang="en-us"),
    ),
    ("segments", m.Revoke(turn="t-1", n=2)),
    (
        "segments",
        m.TurnEnd(turn="t-1", segments=2, reason="abandoned", opened_at="1700000000000-0"),
    ),
    ("segments", m.SessionClose()),
    ("audio", m.TurnStarted(turn="t-1", voice="af_heart", sample_rate=24_000)),
    (
        "audio",
        m.SegmentStarted(
            turn="t-1",
            n=1,
            text="Hello **there**.",
            start=0,
            end=16,
            committed_at="1700000000004-0",
            ttfb_ms=61.5,
        ),
    ),
    ("audio", m.AudioChunk(turn="t-1", n=1, offset=0, data=b"")),
    ("audio", m.AudioChunk(turn="t-1", n=1, offset=4_294_967_296, data=b"\x00\x00\xff\xff{}")),
    ("audio", m.SegmentRestarted(turn="t-1", n=1)),
    (
        "audio",
        m.SegmentDone(
            turn="t-1", n=1, samples=24_000, words=[[0, 5, 0.03, 0.4], [6, 12, 0.4, 0.9]]
        ),
    ),
    (
        "audio",
        m.TurnDone(turn="t-1", segments=2, samples=48_000, ttfa_ms=67.25, reason="complete"),
    ),
    ("audio", m.TurnDone(turn="t-1", segments=0, samples=0, ttfa_ms=None, reason="complete")),
    (
        "audio",
        m.TurnCancelled(
            turn="t-1",
            sent={"segments": 1, "n": 2, "samples": 4_800},
            already_done=False,
            heard={"text": "Hello", "samples": 9_600},
        ),
    ),
    (
        "audio",
        m.ErrorEvent(
            code="unknown_voice",
            message="there is no voice af_hart",
            retryable=False,
            turn="t-1",
            n=4,
            samples=2_400,
        ),
    ),
    (
        "audio",
        m.ErrorEvent(
            code="gap",
            message="publish again from seq 1",
            retryable=True,
            turn="t-1",
            expected=1,
        ),
    ),
    ("audio", m.Gap(first="1700000000000-0")),
    ("audio", m.Closed(reason="closed")),
    # After a loss: published again, resumed inside a segment; and what a cancel stopped.
    ("ingress", m.Text(session="demo", text="Hello", turn="t-1", seq=0, again=7)),
    ("ingress", m.Flush(session="demo", turn="t-1", seq=1, again=7)),
    ("ingress", m.End(session="demo", turn="t-1", seq=2, again=7)),
    ("ingress", m.Resume(session="demo", turn="t-1", start=12, samples=4_800, end=30)),
    (
        "segments",
        m.Segment(
            turn="t-1",
            n=7,
            text="Hello.",
            spoken="Hello.",
            start=0,
            end=6,
            voice="af_heart",
            speed=1.0,
            lang="en-us",
            first=True,
            last=True,
            opened_at="1700000000000-0",
            skip_samples=4_800,
        ),
    ),
    (
        "audio",
        m.TurnCancelled(
            turn="t-1",
            sent={"segments": 0, "n": 0, "samples": 0},
            already_done=False,
            heard={"turn": "t-0", "text": "Hello.", "samples": 9_600},
            turns=["t-1", "t-2"],
        ),
    ),
    # What is said of a segment, where it is not what is written.
    (
        "audio",
        m.SegmentStarted(
            turn="t-1",
            n=1,
            text="Hello **there**.",
            start=0,
            end=16,
            committed_at="1700000000004-0",
            ttfb_ms=61.5,
            spoken="Hello there.",
        ),
    ),
    # What a hint and an end belong to, so that spans of theirs do.
    (
        "segments",
        m.Tentative(
            turn="t-1",
            n=2,
            text="Hello.",
            voice="af_heart",
            speed=1.0,
            lang="en-us",
            opened_at="1700000000000-0",
            traceparent=TRACE,
        ),
    ),
    (
        "segments",
        m.TurnEnd(
            turn="t-1",
            segments=2,
            reason="cancelled",
            opened_at="1700000000000-0",
            traceparent=TRACE,
        ),
    ),
]

LINES = (
    (Path(__file__).parent / "golden" / "stream_messages_v1.txt")
    .read_text(encoding="utf-8")
    .splitlines()
)
GOLDEN = [(family, kind, bytes.fromhex(data)) for family, kind, data in map(str.split, LINES)]
PAIRS = list(zip(GOLDEN, MESSAGES, strict=True))
NAMES = [f"{number}-{kind}" for number, (_family, kind, _data) in enumerate(GOLDEN)]


def test_every_type_of_version_1_stands_there() -> None:
    assert {(family, kind) for family, kind, _data in GOLDEN} == {
        (family, kind) for family, types in FAMILIES.items() for kind in types
    }


@pytest.mark.parametrize(("golden", "expected"), PAIRS, ids=NAMES)
def test_golden_bytes_are_read(golden: tuple[str, str, bytes], expected: tuple[str, Any]) -> None:
    family, kind, data = golden
    message = codec.unpack(data, FAMILIES[family])
    assert (family, message) == expected
    assert codec.TYPE_OF[type(message)] == kind
    if family == "ingress":
        assert codec.decode_ingress({b"m": data}) == [message]


@pytest.mark.parametrize(("golden", "expected"), PAIRS, ids=NAMES)
def test_the_same_bytes_are_written(
    golden: tuple[str, str, bytes], expected: tuple[str, Any]
) -> None:
    _family, message = expected
    assert codec.pack(message, "demo") == golden[2]


@pytest.mark.parametrize(("family", "kind", "data"), GOLDEN, ids=NAMES)
def test_a_later_version_may_add_fields(family: str, kind: str, data: bytes) -> None:
    body = msgpack.unpackb(data, unicode_errors="surrogateescape")
    later = {**body, "v": 2, "added": {"later": [1, 2]}}
    packed = msgpack.packb(later, unicode_errors="surrogateescape")
    assert codec.unpack(packed, FAMILIES[family]) == codec.unpack(data, FAMILIES[family])
    assert body["type"] == kind
