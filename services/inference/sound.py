"""One synthesis encoded in the requested format, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from firstword.encoding import FORMATS, Encoder, encoded, output_rate, wav_header
from firstword.session_protocol import BYTES_PER_SAMPLE, SynthesisComplete
from services.inference.speaker import Finished, Output


@dataclass(frozen=True, slots=True)
class Wanted:
    """A format of `FORMATS`; with `stream` sent while it is made, else as a whole."""

    format: str
    stream: bool


async def new_encoder(wanted: Wanted, sample_rate: int) -> Encoder:
    """An encoder; its `sample_rate` is the given one, or the next higher that the format has.

    Raises EncodingError.
    """
    rate = output_rate(wanted.format, sample_rate)
    if wanted.format == "pcm" or (wanted.format == "wav" and not wanted.stream):
        return Encoder("pcm", rate)  # the header of a whole WAV needs its length: it comes last
    return await asyncio.to_thread(Encoder, wanted.format, rate)  # it imports what it needs


class Sound:
    """The encoded audio of one synthesis."""

    def __init__(
        self,
        wanted: Wanted,
        encoder: Encoder,
        id: str,
        plan: str,
        outputs: AsyncGenerator[Output, None],
    ) -> None:
        self.id = id
        self.plan = plan
        self._wanted = wanted
        self._encoder = encoder
        self._outputs = outputs
        self._samples = 0
        self._finished = Finished(0.0, (), 0.0, 0.0)

    @property
    def whole(self) -> bool:
        """Whether all of it is one part."""
        return not self._wanted.stream

    @property
    def sample_rate(self) -> int:
        return self._encoder.sample_rate

    @property
    def content_type(self) -> str:
        kind = FORMATS[self._wanted.format].content_type
        if self._wanted.format == "pcm":
            return f"{kind};rate={self.sample_rate};channels=1"
        return kind

    @property
    def complete(self) -> SynthesisComplete:
        """How it ended, once all parts have been taken."""
        told = self._finished
        return SynthesisComplete(
            self.id,
            self._samples,
            told.duration_s,
            told.words,
            told.synthesis_ms,
            told.queue_ms,
        )

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """The body, at least one part; a single one if it is wanted whole.

        Raises what the synthesis raises.
        """
        async with aclosing(encoded(self._encoder, self._pcm())) as parts:
            if self._wanted.stream:
                yield await anext(parts, b"")
                async for part in parts:
                    yield part
                return
            body = b"".join([part async for part in parts])
        if self._wanted.format == "wav":
            body = wav_header(self.sample_rate, len(body)) + body
        yield body

    async def _pcm(self) -> AsyncGenerator[bytes, None]:
        async for output in self._outputs:
            match output:
                case bytes():
                    self._samples += len(output) // BYTES_PER_SAMPLE
                    yield output
                case Finished():
                    self._finished = output
