"""PCM in, a file's bytes out, while the speech is still being made: one `Encoder` per stream.

    encoder = Encoder("mp3", 24_000)
    out = encoder.feed(pcm) + encoder.feed(more) + encoder.close()

The codecs are those of PyAV (`pip install 'firstword[audio]'`); `pcm` and `wav` need nothing, and
other sample rates need soxr. An encoder works for as long as its input lasts: in a service use
`encoded`, which keeps that off the event loop.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final, Protocol

from firstword.audio import SAMPLE_BYTES
from firstword.errors import FirstwordError

UNKNOWN_SIZE: Final = 0xFFFFFFFF
"""What a WAV header says, by custom, when nobody knows yet how long the sound will be."""

_SOME_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)
_RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)


@dataclass(frozen=True, slots=True)
class Format:
    """How a format is made. `delay_s` and `padding_s`: silence that decoders may find at most
    before the sound and behind it, beyond what was put in."""

    content_type: str
    codec: str = ""
    container: str = ""
    options: dict[str, str] = field(default_factory=dict)
    bit_rate: int = 0
    rates: tuple[int, ...] = _RATES
    delay_s: float = 0.0
    padding_s: float = 0.0


FORMATS: Final[dict[str, Format]] = {
    "pcm": Format("audio/pcm"),
    "wav": Format("audio/wav"),
    "flac": Format("audio/flac", "flac", "flac"),
    "mp3": Format(
        "audio/mpeg",
        "libmp3lame",
        "mp3",
        # Neither can be known before the end: a table of contents, a tag.
        {"write_xing": "0", "id3v2_version": "0"},
        bit_rate=64_000,
        delay_s=0.2,  # 1105 samples and a frame of 576, the longest at 8 kHz
        padding_s=0.2,
    ),
    "aac": Format(
        "audio/mp4",
        "aac",
        "mp4",
        {"movflags": "frag_every_frame+empty_moov+default_base_moof"},
        bit_rate=64_000,
        delay_s=0.13,  # one frame of 1024 samples
        padding_s=0.13,
    ),
    "adts": Format("audio/aac", "aac", "adts", bit_rate=64_000, delay_s=0.13, padding_s=0.13),
    "opus": Format(
        "audio/ogg",
        "libopus",
        "ogg",
        # Else the first page leaves after two seconds, and the last ones all at the end.
        {"page_duration": "20000", "flush_packets": "1"},
        bit_rate=32_000,
        rates=_SOME_RATES,
        padding_s=0.02,
    ),
}
"""`aac` is fragmented MP4, `adts` the bare frames that a file `.aac` has."""


class EncodingError(FirstwordError):
    """There is no such format, or what makes it is not installed."""


class _Sink(Protocol):
    def feed(self, pcm: bytes) -> bytes: ...
    def close(self) -> bytes: ...


class Encoder:
    """One stream of s16le mono at `sample_rate_in` as `format`; nothing is lost at its end.

    `sample_rate` is what comes out: `sample_rate_out` (that of the input if left out), or the next
    higher rate that the format has. Input may be cut anywhere, even inside a sample. Raises
    EncodingError `unsupported_format` or `missing_package`.
    """

    def __init__(
        self, format: str, sample_rate_in: int = 24_000, sample_rate_out: int | None = None
    ) -> None:
        self.sample_rate = output_rate(format, sample_rate_out or sample_rate_in)
        kind = FORMATS[format]
        self.content_type = kind.content_type
        self._odd = b""
        self._closed = False
        self._resampler = _resampler(sample_rate_in, self.sample_rate)
        self._sink: _Sink = _Codec(kind, self.sample_rate) if kind.codec else _Raw()
        self._header = wav_header(self.sample_rate, None) if format == "wav" else b""
        self.light = self._resampler is None and not kind.codec
        """Whether it has next to nothing to do: the samples stay as they are."""

    def feed(self, pcm: bytes) -> bytes:
        """What can be written now; nothing while the codec gathers a frame."""
        if self._closed:
            raise EncodingError("encoder_closed", "one encoder makes one stream: make another one")
        header, self._header = self._header, b""
        pcm = self._odd + pcm
        whole = len(pcm) - len(pcm) % SAMPLE_BYTES
        pcm, self._odd = pcm[:whole], pcm[whole:]
        return header + self._sink.feed(self._resampled(pcm, last=False))

    def close(self) -> bytes:
        """What is left; half a sample at the end is none."""
        rest = self.feed(b"")
        self._closed = True
        return rest + self._sink.feed(self._resampled(b"", last=True)) + self._sink.close()

    def _resampled(self, pcm: bytes, *, last: bool) -> bytes:
        if self._resampler is None:
            return pcm
        import numpy as np

        samples = np.frombuffer(pcm, "<i2").astype(np.float32)
        out = np.rint(self._resampler.resample_chunk(samples, last=last))
        return bytes(np.clip(out, -32768, 32767).astype("<i2").tobytes())


def output_rate(format: str, wanted: int) -> int:
    """`wanted`, or the next higher rate that the format has, else its highest.

    Raises EncodingError `unsupported_format`.
    """
    kind = FORMATS.get(format)
    if kind is None:
        raise EncodingError("unsupported_format", f"the formats are {', '.join(FORMATS)}")
    if not kind.codec:
        return wanted
    return next((rate for rate in kind.rates if rate >= wanted), kind.rates[-1])


async def encoded(encoder: Encoder, pieces: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """The stream that `pieces` of PCM make, in order; what is work is done in threads.

    Empty results are left out. It ends as `pieces` do: an error of theirs is raised here, and what
    was held back is not written then.
    """
    async for piece in pieces:
        if encoder.light:
            out = encoder.feed(piece)
        else:
            out = await asyncio.to_thread(encoder.feed, piece)
        if out:
            yield out
    if out := await asyncio.to_thread(encoder.close):
        yield out


def encode(pcm: bytes, encoder: Encoder) -> bytes:
    """A whole sound at once."""
    return encoder.feed(pcm) + encoder.close()


def wav_header(sample_rate: int, data_bytes: int | None) -> bytes:
    """44 bytes before s16le mono; None for a stream, whose length nobody knows yet."""
    data = UNKNOWN_SIZE if data_bytes is None else data_bytes
    riff = UNKNOWN_SIZE if data_bytes is None else data_bytes + 36
    byte_rate = SAMPLE_BYTES * sample_rate
    head = struct.pack("<4sI4s", b"RIFF", riff, b"WAVE")
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, sample_rate, byte_rate, SAMPLE_BYTES, 16)
    return head + form + struct.pack("<4sI", b"data", data)


class _Raw:
    """Samples as they are."""

    def feed(self, pcm: bytes) -> bytes:
        return pcm

    def close(self) -> bytes:
        return b""


class _Written:
    """Where a container is written to. It has no `seek`: what has left cannot be mended."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


class _Codec:
    """A codec of PyAV in its container. The first bytes, the header, come with the first sound."""

    def __init__(self, kind: Format, rate: int) -> None:
        _need("av", f"to make {kind.container}")
        _need("numpy", f"to make {kind.container}")
        import av
        from av.audio.stream import AudioStream

        self._av = av
        self._rate = rate
        self._samples = 0
        self._out = _Written()
        self._container: Any = av.open(
            self._out, "w", format=kind.container, options=dict(kind.options)
        )
        stream = self._container.add_stream(kind.codec, rate=rate, layout="mono")
        assert isinstance(stream, AudioStream)  # noqa: S101 - for the type checker
        if kind.bit_rate:
            stream.bit_rate = kind.bit_rate
        self._stream = stream

    def feed(self, pcm: bytes) -> bytes:
        if pcm:
            self._mux(self._frame(pcm))
        return self._out.take()

    def close(self) -> bytes:
        """The last frames, which only come when the codec and then the container are closed."""
        self._mux(None)
        self._container.close()
        return self._out.take()

    def _mux(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def _frame(self, pcm: bytes) -> Any:
        import numpy as np

        samples = np.frombuffer(pcm, "<i2").reshape(1, -1)
        frame = self._av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
        frame.sample_rate = self._rate
        frame.pts = self._samples
        self._samples += samples.shape[1]
        return frame


def _resampler(rate_in: int, rate_out: int) -> Any:
    if rate_in == rate_out:
        return None
    _need("soxr", f"to turn {rate_in} Hz into {rate_out} Hz")
    import soxr

    # Floats: for whole numbers it adds noise, which depends on how the input is cut.
    return soxr.ResampleStream(rate_in, rate_out, 1, dtype="float32")


def _need(package: str, why: str) -> None:
    if find_spec(package) is None:
        raise EncodingError(
            "missing_package",
            f"{why} this needs {package}: pip install 'firstword[audio]'; "
            "pcm and wav at the rate that the sound has need nothing",
        )
