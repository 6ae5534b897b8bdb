"""The body of a speech server's answer as s16le mono samples, bare or in a WAV file."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from firstword.session_protocol import BYTES_PER_SAMPLE, DEFAULT_SAMPLE_RATE

BARE: Final = frozenset(
    {"", "audio/pcm", "audio/l16", "audio/raw", "audio/x-raw", "application/octet-stream"}
)
WAV: Final = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"})

LONGEST_HEADER: Final = 64 << 10
"""Bytes within which a WAV file must come to its samples."""

ENDLESS: Final = 0x7FFFFF00
"""Sizes from here on, and 0, are what writers say that do not know the size yet."""


class AudioError(Exception):
    """The body is not what was asked for; the message says what it is. Not cured by a retry."""


class TornError(Exception):
    """The body ended before its audio did."""


class BodyReader:
    """Takes the body in any cuts and gives whole samples.

    `rate` is that of the audio in Hz, None until it is known.
    """

    def __init__(self, content_type: str, rate: int = DEFAULT_SAMPLE_RATE) -> None:
        """`rate` is what a body has that does not say. Raises AudioError for another format."""
        kind, parameters = _media_type(content_type)
        if kind not in BARE | WAV:
            raise AudioError(f"its answer is {kind}")
        self.rate: int | None = None
        self._assumed = _rate(parameters.get("rate"), rate)
        self._held = b""
        self._left: int | None = None
        """Bytes of samples still to come, None where only the end of the body tells."""

    def feed(self, data: bytes) -> bytes:
        """The whole samples that are there now. Raises AudioError."""
        data, self._held = self._held + data, b""
        if self.rate is None:
            data = self._begin(data)
        if self._left is not None:  # what follows the samples in the file is not audio
            data = data[: self._left]
        whole = len(data) - len(data) % BYTES_PER_SAMPLE
        if self.rate is None:
            whole = 0
        elif self._left is not None:
            self._left -= whole
        self._held += data[whole:]
        return data[:whole]

    def finish(self) -> bytes:
        """The body is over: samples that were held back. Raises TornError."""
        data = b""
        if self.rate is None and not self._held.startswith(b"RIFF"):
            self.rate = self._assumed  # a body of less than four bytes
            data = self.feed(b"")
        if self._held or self._left:
            raise TornError
        return data

    def _begin(self, data: bytes) -> bytes:
        """What is audio of the beginning; all is held back until its kind is plain."""
        if len(data) >= 4 and not data.startswith(b"RIFF"):
            self.rate = self._assumed
            return data
        header = _wav_header(data) if len(data) >= 4 else None
        if header is None:
            self._held = data
            return b""
        self.rate, begin, self._left = header
        return data[begin:]


def _media_type(content_type: str) -> tuple[str, Mapping[str, str]]:
    kind, *rest = content_type.lower().split(";")
    pairs = (parameter.partition("=") for parameter in rest)
    return kind.strip(), {name.strip(): value.strip(' "') for name, _, value in pairs}


def _rate(told: str | None, assumed: int) -> int:
    return int(told) if told and told.isascii() and told.isdigit() and int(told) else assumed


def _wav_header(data: bytes) -> tuple[int, int, int | None] | None:
    """Sample rate, where the samples begin, and how many bytes they are; None while unknown.

    Raises AudioError.
    """
    rate: int | None = None
    at = 12  # after RIFF, its size and WAVE
    while len(data) >= at + 8:
        name, size = struct.unpack_from("<4sI", data, at)
        body = at + 8
        if name == b"data" and rate is not None:
            return rate, body, size if 0 < size < ENDLESS else None
        if name == b"fmt ":
            if len(data) < body + 16:
                return None
            rate = _mono_s16_rate(data, body)
        at = body + size + size % 2
        if at > LONGEST_HEADER:
            raise AudioError("its answer is a WAV file without samples")
    return None


def _mono_s16_rate(data: bytes, at: int) -> int:
    form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, at)
    if form not in (1, 0xFFFE) or channels != 1 or bits != 16 or not rate:
        told = f"its answer is a WAV file of form {form} with {channels} channels of {bits} bits"
        raise AudioError(told)
    return int(rate)
