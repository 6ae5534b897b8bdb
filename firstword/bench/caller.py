"""One caller of a container: a connection on which a sentence is asked for after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import aiohttp

from firstword.errors import FirstwordError
from firstword.session_address import whole
from firstword.session_protocol import (
    BYTES_PER_SAMPLE,
    DEFAULT_SAMPLE_RATE,
    Audio,
    ClientConnection,
    Closing,
    Error,
    SynthesisComplete,
    Synthesize,
)

SILENCE_S: Final = 120.0
"""A container that says nothing for so long has failed."""


_CLOSED: Final = "the container closed the connection in the middle; its log may say why"


class BenchError(FirstwordError):
    """The container could not be measured; the message says what it did."""


@dataclass(slots=True)
class Heard:
    """One sentence: seconds from the request to first and last audio, and the samples."""

    first_s: float = 0.0
    all_s: float = 0.0
    refused: int = 0
    frames: list[bytes] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    """When each frame was taken, on `time.monotonic`."""

    @property
    def pcm(self) -> bytes:
        return b"".join(self.frames)

    @property
    def audio_s(self) -> float:
        return sum(map(len, self.frames)) / BYTES_PER_SAMPLE / DEFAULT_SAMPLE_RATE


@asynccontextmanager
async def callers(url: str, number: int) -> AsyncIterator[list[Caller]]:
    """So many connections. Raises BenchError when the container cannot be reached."""
    address = whole(url)
    async with aiohttp.ClientSession() as http:
        try:
            sockets = [
                await http.ws_connect(address, compress=0, max_msg_size=0) for _ in range(number)
            ]
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise BenchError(
                "unreachable",
                f"no container answers at {address} ({type(error).__name__}): give --url "
                f"ws://HOST:PORT, and see that http://HOST:PORT/ping is 200",
            ) from error
        those = [Caller(socket) for socket in sockets]
        try:
            yield those
        finally:
            await asyncio.gather(*(caller.close() for caller in those))


class Caller:
    """Asks, listens to the end, and comes back later when it is told to."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._frames = ClientConnection()
        self._numbers = count(1)
        self._inbox: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        # All the time, also while it waits for its turn: else the container's pings are not
        # answered, and it takes the caller for gone.
        self._reader = asyncio.create_task(self._read())

    async def close(self) -> None:
        """End the connection."""
        self._reader.cancel()
        await asyncio.wait({self._reader})
        await self._socket.close()

    async def _read(self) -> None:
        async for message in self._socket:
            self._inbox.put_nowait(message.data)
        self._inbox.put_nowait(None)

    async def say(
        self,
        text: str,
        voice: str | None,
        *,
        first: bool = False,
        deadline_ms: int | None = None,
    ) -> Heard:
        """Have `text` spoken. Raises BenchError when that fails for good."""
        heard, asked = Heard(), time.monotonic()
        while True:
            request = Synthesize(
                str(next(self._numbers)), text, voice, first=first, deadline_ms=deadline_ms
            )
            wait_s = await self._ask(request, heard, asked)
            if wait_s is None:
                heard.all_s = time.monotonic() - asked
                return heard
            heard.refused += 1
            await asyncio.sleep(wait_s)

    async def _ask(self, request: Synthesize, heard: Heard, asked: float) -> float | None:
        """None once it was spoken; the seconds to wait where it was refused for now."""
        try:
            await self._socket.send_str(self._frames.synthesize(request))
        except ConnectionError as error:
            raise BenchError("closed", _CLOSED) from error
        while True:
            frame = await self._frame()
            for event in self._frames.receive(frame, isinstance(frame, str)):
                match event:
                    case Audio(_, _, data):
                        heard.arrived.append(time.monotonic())
                        heard.first_s = heard.first_s or heard.arrived[-1] - asked
                        heard.frames.append(data)
                    case SynthesisComplete():
                        return None
                    case Error(code="busy") if not heard.frames:
                        return (event.retry_after_ms or 100) / 1000
                    case Error():
                        raise BenchError(event.code, f"the container refused: {event.message}")
                    case Closing():
                        raise BenchError("closing", "the container is going: try again")

    async def _frame(self) -> str | bytes:
        try:
            async with asyncio.timeout(SILENCE_S):
                frame = await self._inbox.get()
        except TimeoutError:
            told = f"the container said nothing for {SILENCE_S:g} s"
            raise BenchError("silent", told) from None
        if frame is None:
            raise BenchError("closed", _CLOSED)
        return frame
