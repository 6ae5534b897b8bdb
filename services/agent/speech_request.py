"""`POST /v1/audio/speech` as data: requests and responses in OpenAI's format, a turn's audio."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from firstword import messages as m
from firstword.audio import SAMPLE_BYTES
from firstword.errors import FirstwordError
from services.agent.core import Limits, RequestError, json_object, number, speech, word

MODEL: Final = "kokoro-82m"
SAMPLE_RATE: Final = 24_000

FORMATS: Final = {
    "mp3": "mp3",
    "opus": "opus",
    "aac": "adts",
    "flac": "flac",
    "wav": "wav",
    "pcm": "pcm",
}
"""OpenAI's names of formats, and ours: its `aac` is a file of bare frames."""

VOICES: Final = {
    "alloy": "af_alloy",
    "ash": "am_michael",
    "ballad": "bm_george",
    "cedar": "am_fenrir",
    "coral": "af_bella",
    "echo": "am_echo",
    "fable": "bm_fable",
    "marin": "af_heart",
    "nova": "af_nova",
    "onyx": "am_onyx",
    "sage": "af_sarah",
    "shimmer": "af_sky",
    "verse": "am_puck",
}
"""OpenAI's names of voices, and our voices for them."""

STREAM_FORMATS: Final = ("audio", "sse")


@dataclass(frozen=True, slots=True)
class Speech:
    """A text to be spoken into a file. `voice` None is the service's own."""

    text: str
    voice: str | None
    format: str
    speed: float | None
    lang: str | None
    events: bool


def parse_speech(body: bytes, limits: Limits, installed: Collection[str], default: str) -> Speech:
    """The body of a request; raises RequestError. `installed`: the voices known to be installed,
    including `default`.

    `model` and `instructions` are ignored: there is one model, and it takes no instructions.
    """
    given = json_object(body)
    form = given.get("response_format") or "mp3"
    if not isinstance(form, str) or form not in FORMATS:
        raise RequestError("unsupported_format", f"response_format is one of {', '.join(FORMATS)}")
    stream = given.get("stream_format") or "audio"
    if stream not in STREAM_FORMATS:
        raise RequestError("bad_field", "stream_format is audio or sse")
    return Speech(
        text=speech(given, "input", limits.max_text_chars),
        voice=_voice(given, installed, default),
        format=FORMATS[form],
        speed=number(given, "speed", *m.SPEEDS),
        lang=word(given, "lang"),
        events=stream == "sse",
    )


def _voice(given: Mapping[str, Any], installed: Collection[str], default: str) -> str | None:
    """The voice to speak with: ours by its own name, or our voice for one of OpenAI's; the default
    if the latter is not installed."""
    asked = given.get("voice")
    if isinstance(asked, dict):  # OpenAI's own shape for voices of one's own: {"id": …}
        asked = asked.get("id")
    name = word({"voice": asked}, "voice")
    meant = VOICES.get(name) if name else None
    if meant is None:
        return name
    return meant if not installed or meant in installed else default


class SpokenError(FirstwordError):
    """The speech broke off, or never began."""


class Spoken:
    """The audio of one turn as it comes, each sample once: what was sent cannot be taken back."""

    def __init__(self, turn: str) -> None:
        self.over = False
        self.samples = 0
        self._turn = turn
        self._places: dict[int, int] = {}  # where in the text a segment's number stands now
        self._sent: dict[int, int] = {}  # bytes of the segment at each place

    def feed(self, message: m.Audio) -> bytes:
        """What this event adds to the audio. Raises SpokenError if something is missing."""
        match message:
            case m.SegmentStarted() if message.turn == self._turn:
                self._places[message.n] = message.start
            case m.AudioChunk() if message.turn == self._turn:
                return self._chunk(message)
            case m.TurnDone() if message.turn == self._turn:
                if message.reason != "complete":
                    raise SpokenError(message.reason, "the speech was ended before its end")
                self.over = True
                if not self.samples:
                    told = "input holds no letter or digit: there is nothing to be heard"
                    raise SpokenError("missing_text", told)
            case m.TurnCancelled() if self._turn in message.stopped:
                raise SpokenError("cancelled", "the speech was cancelled")
            case m.Gap():
                raise SpokenError("gap", "the audio was not fetched for too long: ask again")
            case m.Closed():
                raise SpokenError("closed", "the session was closed before all was spoken")
            case m.ErrorEvent() if message.code != m.STATE_LOST.code:
                raise SpokenError(message.code, message.message, retryable=message.retryable)
            case _:
                pass
        return b""

    def _chunk(self, chunk: m.AudioChunk) -> bytes:
        """What is new in a chunk: a restarted segment continues where it had been."""
        place = self._places.get(chunk.n, -1)
        sent = self._sent.get(place, 0)
        start = chunk.offset * SAMPLE_BYTES
        new = bytes(max(0, start - sent)) + chunk.data[max(0, sent - start) :]
        self._sent[place] = sent + len(new)
        self.samples += len(new) // SAMPLE_BYTES
        return new


# -- answers, in OpenAI's shapes ------------------------------------------------------------------


def delta(data: bytes) -> dict[str, Any]:
    """A part of the file, as an event."""
    return {"type": "speech.audio.delta", "audio": base64.b64encode(data).decode()}


def done(characters: int, samples: int) -> dict[str, Any]:
    """The end of the file. OpenAI counts tokens; here it is characters in and samples out."""
    usage = {"input_tokens": characters, "output_tokens": samples}
    return {"type": "speech.audio.done", "usage": {**usage, "total_tokens": characters + samples}}


def refusal(error: FirstwordError, status: int) -> dict[str, Any]:
    """An error in OpenAI's format."""
    kind = "invalid_request_error" if status < 500 and status != 429 else "server_error"
    told = {"message": error.message, "type": kind, "code": error.code, "param": None}
    return {"error": told}


def models() -> dict[str, Any]:
    """The answer to `GET /v1/models`."""
    return {"object": "list", "data": [model()]}


def model() -> dict[str, Any]:
    """The only model."""
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": "firstword"}
