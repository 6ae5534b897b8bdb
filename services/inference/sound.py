"""One synthesis in the format that was asked for, off the event loop."""

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
    """A format of `FORMATS`, as it is made or, without `stream`, whole."""

    format: str
    stream: bool


async def new_encoder(wanted: Wanted, sample_rate: int) -> Encoder:
    """For samples at the rate that it tells: the one given, or the next that the format has.

    Raises EncodingError.
    """
    rate = output_rate(wanted.format, sample_rate)
    if wanted.format == "pcm" or (wanted.format == "wav" and not wanted.stream):
        return Encoder("pcm", rate)  # the header of a whole WAV knows its length: it comes later
    return await asyncio.to_thread(Encoder, wanted.format, rate)  # imports what it needs


class Sound:
    """What one synthesis gives."""

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
        """Whether there is one part, which is all."""
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
        """How it ended, once all parts were taken."""
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
        """The body, at least one part; a single one where it is wanted whole.

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
