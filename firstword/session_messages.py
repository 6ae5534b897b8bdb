"""The messages between a gateway and an inference container; see `session_protocol.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from firstword.errors import DecodeError, FirstwordError, UpstreamError

DEFAULT_SAMPLE_RATE: Final = 24_000
"""What Kokoro speaks natively, in Hz, and what a message without `sample_rate` means."""

BYTES_PER_SAMPLE: Final = 2

Words: TypeAlias = tuple[tuple[int, int, float, float], ...]
"""Per word: first and past-the-end character in the text, start and end in seconds."""

# --------------------------------------------------------------------------- errors


class FrameError(DecodeError):
    """A frame that cannot be read; `id` is the synthesis it belongs to, if that is known."""

    def __init__(self, code: str, message: str, *, id: str | None = None) -> None:
        super().__init__(code, message)
        self.id = id


class RemoteProtocolError(UpstreamError):
    """The container sent frames in an order that the protocol does not allow."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, f"{message}; drop the connection and try again", retryable=True)


class LocalProtocolError(FirstwordError):
    """We called the connection in an order that the protocol does not allow: a bug of ours."""


# --------------------------------------------------------------------------- client -> container


@dataclass(frozen=True, slots=True)
class Synthesize:
    """Speak `text`. What is left out takes the container's default.

    `skip_samples` asks for the audio from that sample on, and counts only if `plan` equals the plan
    of this synthesis (same engine, weights, cuts: bit-equal audio); otherwise audio starts at 0.
    `deadline_ms`: audio the listener still has ahead; less is more urgent. `first`: nothing of its
    turn was heard yet, so its beginning may be cut short to be heard early. `deadline_ms` decides
    only when it is spoken, never how. `lexicon`: words, and how they are said (docs/INFERENCE.md).
    `traceparent`: what the container's spans belong to; there while the gateway makes spans.
    """

    id: str
    text: str
    voice: str | None = None
    speed: float = 1.0
    lang: str | None = None
    sample_rate: int = DEFAULT_SAMPLE_RATE
    seed: int = 0
    deadline_ms: int | None = None
    skip_samples: int = 0
    plan: str | None = None
    first: bool = False
    lexicon: Mapping[str, str] | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop the synthesis `id`, running or queued, or all of this connection if `id` is "".

    One that has ended already is left alone: its end was the answer.
    """

    id: str


@dataclass(frozen=True, slots=True)
class Ping:
    """Ask for a `Pong`."""


@dataclass(frozen=True, slots=True)
class Close:
    """End the connection after what is queued."""


ClientMessage: TypeAlias = Synthesize | Cancel | Ping | Close

# --------------------------------------------------------------------------- container -> client


@dataclass(frozen=True, slots=True)
class SynthesisStart:
    """Audio frames that follow belong to `id`. `voice`: who speaks, where none was named."""

    id: str
    sample_rate: int = DEFAULT_SAMPLE_RATE
    plan: str | None = None
    voice: str | None = None


@dataclass(frozen=True, slots=True)
class SynthesisComplete:
    """All audio of `id` is out. `samples`: how many were sent; None if the container cannot say."""

    id: str
    samples: int | None
    duration_s: float = 0.0
    words: Words = ()
    synthesis_ms: float = 0.0
    queue_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Cancelled:
    """`id` was stopped after `samples` samples; no more audio of it follows."""

    id: str
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Error:
    """`id`, or the frame just sent if None, was refused or failed. The session lives on.

    `retry_after_ms`: sooner than that it is of no use to try again here.
    """

    id: str | None
    code: str
    message: str
    retryable: bool = False
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Pong:
    """Answer to `Ping`."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The container ends the connection soon; reconnect to go on."""

    reason: str = ""


ServerMessage: TypeAlias = SynthesisStart | SynthesisComplete | Cancelled | Error | Pong | Closing


@dataclass(frozen=True, slots=True)
class Audio:
    """PCM of `id`; `offset` in samples from the start of the segment's audio."""

    id: str
    offset: int
    data: bytes


Event: TypeAlias = ServerMessage | Audio
