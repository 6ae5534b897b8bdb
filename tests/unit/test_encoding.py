"""Formats: whatever the cuts, what a decoder finds is what was put in, to the last sample."""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import av
import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from firstword import encoding
from firstword.encoding import FORMATS, Encoder, EncodingError, encode, encoded

RATE = 24_000
PITCH_HZ = 440
LEVEL = 0.5
CODECS = [name for name, kind in FORMATS.items() if kind.codec]
LOSSLESS = ["pcm", "wav", "flac"]

ADDED = {"mp3": (1105, 576), "aac": (1024, 1024), "adts": (1024, 1024)}
"""At 24 kHz: samples of silence that a decoder finds before the sound, and how many make a frame.
The others give exactly what was put in."""
ELSEWHERE = ["wav", "flac", "mp3", "opus"]
"""What libsndfile reads, which shares no code with what encodes here."""


def tone(seconds: float, pitch: float = PITCH_HZ, rate: int = RATE) -> bytes:
    phase = np.arange(round(seconds * rate)) * (2 * np.pi * pitch / rate)
    return (LEVEL * np.sin(phase) * 32767).astype("<i2").tobytes()


def decoded(format: str, data: bytes, rate: int = RATE) -> np.ndarray[Any, Any]:
    """Samples from -1 to 1 at `rate`, as another program would find them."""
    if format == "pcm":
        return np.frombuffer(data, "<i2") / 32768
    # Bare frames are guessed from several; the shortest sounds have two, so here they are named.
    kind = "aac" if format == "adts" else None
    with av.open(io.BytesIO(data), mode="r", format=kind) as container:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
        frames = [out for frame in container.decode(audio=0) for out in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]).astype(np.float64)


def bounds(sound: np.ndarray[Any, Any], rate: int = RATE) -> tuple[float, float]:
    """Where the tone begins and ends, in seconds, by its level in windows of 5 ms."""
    window = rate // 200
    count = len(sound) // window
    level = np.sqrt(np.square(sound[: count * window].reshape(count, window)).mean(axis=1))
    loud = np.flatnonzero(level > LEVEL / 3)
    return loud[0] * window / rate, (loud[-1] + 1) * window / rate


class _Stream(soundfile.SoundFile):  # type: ignore[misc]  # it comes without types
    """libsndfile cannot seek in a FLAC that does not say how long it is; reading needs none."""

    def seekable(self) -> bool:
        return False


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(at % (len(data) + 1) for at in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def streamed(encoder: Encoder, pieces: list[bytes]) -> bytes:
    return b"".join([*map(encoder.feed, pieces), encoder.close()])


# -- what comes out -------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [8_000, 22_050, 24_000, 48_000])
@pytest.mark.parametrize("format", FORMATS)
def test_it_lasts_as_long_as_the_sound_and_its_end_is_heard(format: str, rate: int) -> None:
    seconds = 1.234
    encoder = Encoder(format, RATE, rate)
    data = encode(tone(seconds), encoder)
    kind = FORMATS[format]
    sound = decoded(format, data, encoder.sample_rate)
    extra = len(sound) / encoder.sample_rate - seconds
    assert -1e-4 < extra < kind.delay_s + kind.padding_s + 1e-4
    start, end = bounds(sound, encoder.sample_rate)
    assert start <= kind.delay_s + 0.005
    assert end - start > seconds - 0.02, "the last 50 ms are there"


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(FORMATS)),
    st.integers(480, 20_000),
    st.lists(st.integers(0, 10**6), max_size=8),
)
def test_a_decoder_finds_every_sample_and_the_codecs_own_delay(
    format: str, samples: int, cuts: list[int]
) -> None:
    data = streamed(Encoder(format), cut(tone(samples / RATE), cuts))
    found = len(decoded(format, data))
    delay, frame = ADDED.get(format, (0, 1))
    assert samples + delay <= found < samples + delay + 2 * frame
    assert format in ADDED or found == samples
    if format in ELSEWHERE:
        with _Stream(io.BytesIO(data)) as file:
            sound = file.read(frames=2 * found, dtype="float64")
            assert (len(sound), file.samplerate) == (found, RATE)
        assert bounds(sound) == pytest.approx(bounds(decoded(format, data)), abs=0.0051)


@pytest.mark.parametrize("format", LOSSLESS)
def test_what_promises_every_sample_keeps_every_sample(format: str) -> None:
    pcm = tone(0.7)
    sound = decoded(format, encode(pcm, Encoder(format)))
    assert (np.rint(sound * 32768).astype("<i2").tobytes()) == pcm


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(sorted(FORMATS)), st.lists(st.integers(0, 10**6), max_size=12), st.booleans()
)
def test_cuts_do_not_matter(format: str, cuts: list[int], resampled: bool) -> None:
    """Even inside a sample. (An Ogg stream has a number of its own: the bytes may differ there.)"""
    pcm, rate = tone(0.5), 16_000 if resampled else RATE
    whole = encode(pcm, Encoder(format, RATE, rate))
    parts = streamed(Encoder(format, RATE, rate), cut(pcm, cuts))
    ours, theirs = decoded(format, parts, rate), decoded(format, whole, rate)
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("format", FORMATS)
def test_there_are_no_clicks_where_pieces_meet(format: str) -> None:
    """A codec that began anew with each piece would be heard: a step larger than a tone makes."""
    pcm = tone(1.0)
    data = streamed(Encoder(format), [pcm[at : at + 4801] for at in range(0, len(pcm), 4801)])
    sound = decoded(format, data)
    start, end = (round(at * RATE) for at in bounds(sound))
    inside = sound[start + 500 : end - 500]
    steepest = LEVEL * 2 * np.pi * PITCH_HZ / RATE
    assert np.abs(np.diff(inside)).max() < 1.3 * steepest


@pytest.mark.parametrize("format", FORMATS)
def test_the_first_bytes_come_long_before_the_end(format: str) -> None:
    encoder = Encoder(format)
    pieces = cut(tone(3.0), list(range(0, 144_000, 4800)))
    sizes = [len(encoder.feed(piece)) for piece in pieces]
    assert sum(sizes[:5]) > 0, "half a second"
    assert len(encoder.close()) < sum(sizes) / 4


@pytest.mark.parametrize("format", FORMATS)
def test_no_sound_is_a_stream_too(format: str) -> None:
    assert streamed(Encoder(format), [b"", b"\x01"]) is not None


def test_a093_a_wav_has_one_header_of_unknown_size() -> None:
    pcm = tone(0.3)
    data = streamed(Encoder("wav"), cut(pcm, [100, 4_001, 9_999]))
    assert data == encoding.wav_header(RATE, None) + pcm
    assert data.count(b"RIFF") == data.count(b"WAVE") == data.count(b"data") == 1


def test_a_wav_of_known_size_is_what_the_standard_library_reads() -> None:
    pcm = tone(0.1)
    with wave.open(io.BytesIO(encoding.wav_header(RATE, len(pcm)) + pcm)) as file:
        assert (file.getframerate(), file.getnframes()) == (RATE, len(pcm) // 2)
        assert file.readframes(len(pcm)) == pcm


def test_a_rate_that_a_codec_lacks_becomes_the_next_higher() -> None:
    assert Encoder("opus", 22_050).sample_rate == 24_000
    assert Encoder("opus", 24_000, 44_100).sample_rate == 48_000
    assert Encoder("mp3", 22_050).sample_rate == 22_050
    assert Encoder("mp3", 96_000).sample_rate == 48_000


# -- beside others --------------------------------------------------------------------------------


def test_32_streams_at_once_do_not_mix() -> None:
    def one(number: int) -> tuple[float, float]:
        format, pitch = CODECS[number % len(CODECS)], 200.0 + 50 * number
        pcm = tone(0.5, pitch)
        sound = decoded(format, streamed(Encoder(format), cut(pcm, [number * 331, 9_000, 17_001])))
        spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
        return pitch, float(spectrum.argmax() * RATE / len(sound))

    with ThreadPoolExecutor(32) as pool:
        for pitch, found in pool.map(one, range(32)):
            assert found == pytest.approx(pitch, abs=5)


async def test_in_a_service_others_get_their_turn_and_the_order_is_kept() -> None:
    turns: list[str] = []

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield tone(2.0)

    async def others() -> None:
        while True:
            turns.append("other")
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    out = []
    async for data in encoded(Encoder("mp3"), pieces()):
        out.append(data)
        turns.append("encoded")
    beside.cancel()
    sound = decoded("mp3", b"".join(out))
    assert len(sound) >= 8 * RATE
    places = [at for at, who in enumerate(turns) if who == "encoded"]
    assert all("other" in turns[a:b] for a, b in pairwise(places))


async def test_what_breaks_off_is_not_ended() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield tone(0.5)
        raise ConnectionError("gone")

    stream = encoded(Encoder("flac"), pieces())
    written = await anext(stream)
    with pytest.raises(ConnectionError):
        await anext(stream)
    whole = encode(tone(0.5), Encoder("flac"))
    assert whole.startswith(written) and len(written) < len(whole)


# -- what cannot be -------------------------------------------------------------------------------


def test_an_unknown_format_is_told() -> None:
    with pytest.raises(EncodingError, match="the formats are pcm, wav, flac, mp3") as raised:
        Encoder("tape")
    assert raised.value.code == "unsupported_format"


@pytest.mark.parametrize("format", CODECS)
def test_a_codec_that_is_not_installed_says_what_to_install(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "find_spec", lambda _name: None)
    with pytest.raises(EncodingError, match=r"pip install 'firstword\[audio\]'") as raised:
        Encoder(format)
    assert raised.value.code == "missing_package"
    with pytest.raises(EncodingError, match="24000 Hz into 8000 Hz"):
        Encoder("wav", 24_000, 8_000)
    assert encode(b"\0\0", Encoder("pcm")) == b"\0\0"
    assert encode(b"\0\0", Encoder("wav")).startswith(b"RIFF")


def test_one_encoder_makes_one_stream() -> None:
    encoder = Encoder("pcm")
    encoder.close()
    with pytest.raises(EncodingError, match="make another one"):
        encoder.feed(b"")
