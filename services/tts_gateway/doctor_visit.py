"""One link to a backend, examined frame by frame: what `doctor` asks, what comes back, and when."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from firstword.errors import FirstwordError, UpstreamError
from firstword.session_protocol import (
    BYTES_PER_SAMPLE,
    Cancel,
    Cancelled,
    ClientMessage,
    Close,
    Error,
    FrameError,
    Ping,
    Pong,
    ServerMessage,
    SynthesisComplete,
    SynthesisStart,
    Synthesize,
    decode_server,
    encode_client,
)
from services.tts_gateway.upstream import Link

FIRST_BYTE_S = 30.0
BETWEEN_S = 15.0
ANSWER_S = 5.0
"""For answers that cost a container no work."""


@dataclass(slots=True)
class Spoken:
    """A complete synthesis."""

    rate: int = 0
    pcm: bytearray = field(default_factory=bytearray)
    first_byte_s: float = 0.0
    total_s: float = 0.0

    @property
    def seconds(self) -> float:
        """Of audio."""
        return len(self.pcm) / BYTES_PER_SAMPLE / self.rate if self.rate else 0.0


@dataclass(frozen=True, slots=True)
class Interrupted:
    """How a synthesis went during which we sent a ping and a cancel."""

    pong_s: float | None
    """From ping to pong; None if no pong came before the synthesis ended."""
    cancelled_s: float | None = None
    """From cancel to `cancelled`; None if it was spoken to its end nevertheless."""
    ended_s: float = 0.0
    """From request to end, if no pong came before it."""


class Visit:
    """Reads all the time. Every method raises FirstwordError if the far end breaks the protocol."""

    def __init__(self, link: Link, voice: str) -> None:
        self._link = link
        self._voice = voice
        self._came: asyncio.Queue[ServerMessage | bytes | FirstwordError] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read())
        self._requests = 0
        self.over = False
        """Whether the link has ended."""

    async def leave(self) -> None:
        """Close the link; never raises."""
        await self._link.close()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def say(
        self, text: str, *, binary: bool = False, first: bool = False, ahead_s: float | None = None
    ) -> Spoken:
        """Have a text spoken, and check that its frames are complete and in order.

        `first`: it begins a turn; `ahead_s`: how much of its turn is still to be played before it.
        """
        began, spoken = _now(), Spoken()
        id = await self._ask(text, binary=binary, first=first, ahead_s=ahead_s)
        while True:
            match message := await self._next(BETWEEN_S if spoken.rate else FIRST_BYTE_S):
                case SynthesisStart():
                    spoken.rate = message.sample_rate
                case bytes():
                    if not spoken.rate:
                        raise _broken("audio came before synthesis_start")
                    if len(message) % BYTES_PER_SAMPLE:
                        raise _broken("an audio frame holds half a sample")
                    spoken.first_byte_s = spoken.first_byte_s or _now() - began
                    spoken.pcm += message
                case SynthesisComplete():
                    spoken.total_s = _now() - began
                    _check_end(message, id, spoken)
                    return spoken
                case Error():
                    raise UpstreamError(message.code, message.message, retryable=message.retryable)
                case _:
                    pass

    async def ping(self) -> float:
        """Seconds until the far end answers a ping."""
        began = _now()
        await self.send(Ping())
        while not isinstance(await self._next(ANSWER_S), Pong):
            pass
        return _now() - began

    async def interrupt(self, text: str) -> Interrupted:
        """Ping while a text is spoken; once that is answered, cancel it."""
        id = await self._ask(text)
        began, pong_s = _now(), None
        await self.send(Ping())
        while not isinstance(message := await self._next(FIRST_BYTE_S), Pong):
            if isinstance(message, SynthesisComplete | Error):
                ended_s = _now() - began
                await self._late_pong()
                return Interrupted(None, ended_s=ended_s)
        pong_s, began = _now() - began, _now()
        await self.send(Cancel(id))
        while not isinstance(message := await self._next(BETWEEN_S), SynthesisComplete | Error):
            if isinstance(message, Cancelled):
                return Interrupted(pong_s, _now() - began)
        return Interrupted(pong_s)

    async def _late_pong(self) -> None:
        """Await a pong, so that it is not taken for the answer to another ping."""
        with contextlib.suppress(FirstwordError):
            while not isinstance(await self._next(ANSWER_S), Pong):
                pass

    async def refusal_of(self, frame: str | bytes) -> str:
        """The code of the error that answers a frame which cannot be read."""
        await self._link.send(frame)
        while not isinstance(message := await self._next(ANSWER_S), Error):
            pass
        return message.code

    async def end(self) -> bool:
        """Send `close`; returns whether the far end then ends the connection."""
        await self.send(Close())
        try:
            while True:
                await self._next(ANSWER_S)
        except FirstwordError:
            return self.over

    async def quiet(self, seconds: float) -> None:
        """Do nothing. Raises what ends the link meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self._next(seconds + 1)
        except TimeoutError:
            return

    async def send(self, message: ClientMessage, *, binary: bool = False) -> None:
        frame = encode_client(message)
        await self._link.send(frame.encode() if binary else frame)

    async def _ask(
        self, text: str, *, binary: bool = False, first: bool = False, ahead_s: float | None = None
    ) -> str:
        self._requests += 1
        request = Synthesize(
            f"doctor.{self._requests}",
            text,
            voice=self._voice or None,
            deadline_ms=None if ahead_s is None else round(ahead_s * 1000),
            first=first,
        )
        await self.send(request, binary=binary)
        return request.id

    async def _next(self, patience_s: float) -> ServerMessage | bytes:
        try:
            async with asyncio.timeout(patience_s):
                came = await self._came.get()
        except TimeoutError:
            told = f"nothing came for {patience_s:g} s"
            raise UpstreamError("silent", told, retryable=True) from None
        if isinstance(came, FirstwordError):
            self._came.put_nowait(came)  # it stays so
            raise came
        return came

    async def _read(self) -> None:
        while True:
            try:
                frame, text = await self._link.receive()
            except FirstwordError as error:
                self.over = True
                self._came.put_nowait(error)
                return
            try:
                self._came.put_nowait(decode_server(frame, text))
            except FrameError as error:
                if error.code != "unknown_type":  # that is to be skipped
                    told = f"one of its control frames cannot be read ({error.message})"
                    self._came.put_nowait(_broken(told))
                    return


def _check_end(end: SynthesisComplete, id: str, spoken: Spoken) -> None:
    samples = len(spoken.pcm) // BYTES_PER_SAMPLE
    if end.id and end.id != id:
        raise _broken("synthesis_complete names another synthesis")
    if end.samples is not None and end.samples != samples:
        raise _broken(f"{samples} samples came, and it says that it sent {end.samples}")


def _broken(what: str) -> UpstreamError:
    return UpstreamError("protocol", what)


def _now() -> float:
    return asyncio.get_running_loop().time()
