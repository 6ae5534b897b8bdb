"""What a speech server's body says, in whatever pieces it comes."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tts_gateway.openai_audio import AudioError, BodyReader, TornError

SAMPLES = struct.pack("<8h", *range(-4, 4))


def form(*, code: int = 1, channels: int = 1, rate: int = 16_000, bits: int = 16) -> bytes:
    body = struct.pack("<HHIIHH", code, channels, rate, 2 * rate, 2, bits)
    return b"fmt " + struct.pack("<I", len(body)) + body


def wav(size: int, *, before: bytes = b"", head: bytes = form()) -> bytes:
    return b"RIFF\xff\xff\xff\xffWAVE" + before + head + b"data" + struct.pack("<I", size)


def read(reader: BodyReader, *pieces: bytes) -> bytes:
    return b"".join(map(reader.feed, pieces)) + reader.finish()


def cut(body: bytes, at: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(body)) for place in at), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


BODIES = [
    (SAMPLES, 24_000),
    (wav(len(SAMPLES)) + SAMPLES, 16_000),
    (wav(len(SAMPLES)) + SAMPLES + b"LIST\x02\0\0\0ab", 16_000),
    (wav(0xFFFFFFFF) + SAMPLES, 16_000),
    (wav(0) + SAMPLES, 16_000),
    (wav(len(SAMPLES), before=b"LIST\x03\0\0\0abc\0") + SAMPLES, 16_000),
    (wav(len(SAMPLES), head=form(code=0xFFFE)) + SAMPLES, 16_000),
    (wav(len(SAMPLES), before=b"data\x02\0\0\0ab") + SAMPLES, 16_000),  # before its form: skipped
]


@given(st.sampled_from(BODIES), st.lists(st.integers(0, 90), max_size=20))
def test_cuts_change_nothing(body: tuple[bytes, int], at: list[int]) -> None:
    reader = BodyReader("audio/wav")
    pieces = [reader.feed(piece) for piece in cut(body[0], at)]
    assert all(len(piece) % 2 == 0 for piece in pieces)
    assert b"".join(pieces) + reader.finish() == SAMPLES
    assert reader.rate == body[1]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_any_bytes_are_samples_or_told(body: bytes, at: list[int]) -> None:
    reader = BodyReader("audio/pcm")
    try:
        assert len(read(reader, *cut(body, at))) % 2 == 0
    except (AudioError, TornError):
        pass


@pytest.mark.parametrize(
    ("content_type", "rate"),
    [
        ("", 24_000),
        ("audio/pcm", 24_000),
        ("Audio/PCM; Rate=16000; channels=1", 16_000),
        ('audio/L16;rate="8000"', 8_000),
        ("audio/pcm;rate=fast", 24_000),
        ("audio/pcm;rate=0", 24_000),
        ("application/octet-stream", 24_000),
    ],
)
def test_the_content_type_may_tell_the_rate(content_type: str, rate: int) -> None:
    reader = BodyReader(content_type)
    assert reader.rate is None
    assert read(reader, SAMPLES) == SAMPLES
    assert reader.rate == rate


@pytest.mark.parametrize("body", [b"", b"\1\2"])
def test_short_bodies_are_whole(body: bytes) -> None:
    reader = BodyReader("audio/pcm", rate=22_050)
    assert read(reader, body) == body
    assert reader.rate == 22_050


@pytest.mark.parametrize(
    "body", [b"\1", SAMPLES + b"\1", b"RIFF", wav(100) + SAMPLES, wav(16)[:20], wav(17) + SAMPLES]
)
def test_a_body_that_ends_too_soon_is_torn(body: bytes) -> None:
    reader = BodyReader("audio/pcm")
    with pytest.raises(TornError):
        read(reader, body)


@pytest.mark.parametrize("kind", ["audio/mpeg", "application/json", "text/html; charset=utf-8"])
def test_another_format_is_named(kind: str) -> None:
    with pytest.raises(AudioError, match=kind.partition(";")[0]):
        BodyReader(kind)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (wav(16, head=form(channels=2)), "2 channels"),
        (wav(16, head=form(code=3, bits=32)), "32 bits"),
        (wav(16, head=form(rate=0)), "form 1"),
        (wav(16, before=b"LIST" + struct.pack("<I", 1 << 20)), "without samples"),
    ],
)
def test_a_wav_file_of_something_else_is_refused(body: bytes, told: str) -> None:
    with pytest.raises(AudioError, match=told):
        read(BodyReader("audio/wav"), body + SAMPLES)
