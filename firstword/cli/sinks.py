"""Where the audio of a session goes: a WAV file, raw samples on standard output, a player."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from firstword import messages as m
from firstword.errors import FirstwordError

SAMPLE_BYTES = 2


class WavFile:
    """A WAV file of a session's audio, complete after each segment; give it every event.

    A segment is written when it is over, so that one that comes again is in the file once.
    Raises FirstwordError when the file cannot be written, or a turn changes the sample rate.
    """

    def __init__(self, path: Path) -> None:
        self.samples = 0
        self._path = path
        self._rate: int | None = None
        self._held = bytearray()
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise self._failure(error) from error
        self._wave: wave.Wave_write | None = None

    def feed(self, message: m.Audio) -> None:
        """Take one event."""
        match message:
            case m.TurnStarted():
                self._set_rate(message.sample_rate)
            case m.AudioChunk():
                start = message.offset * SAMPLE_BYTES
                self._held[start : start + len(message.data)] = message.data
            case m.SegmentRestarted():
                self._held.clear()
            case m.SegmentDone() | m.ErrorEvent() | m.TurnDone() | m.TurnCancelled() | m.Closed():
                self._write_held()
            case _:
                pass

    def close(self) -> None:
        """Write what is held; afterwards the file is a WAV file whatever came. May be repeated."""
        if self._file.closed:
            return
        if self._wave is None:
            self._set_rate(24_000)
        self._write_held()
        with self._writing():
            if self._wave is not None:
                self._wave.close()
                self._wave = None
            self._file.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """A file that cannot be written is given up, and told once."""
        try:
            yield
        except OSError as error:
            for file in (self._wave, self._file):
                # Both try to write what they hold; a closed file below is a ValueError to wave.
                with contextlib.suppress(OSError, ValueError):
                    if file is not None:
                        file.close()
            self._wave = None
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> FirstwordError:
        return FirstwordError(
            "cannot_write", f"cannot write {self._path}: {error.strerror}; choose another --out"
        )

    def _set_rate(self, rate: int) -> None:
        if self._rate not in (None, rate):
            raise FirstwordError(
                "rate_changed",
                f"a turn came at {rate} Hz and {self._path} has {self._rate} Hz: "
                "listen to turns of one sample rate at a time (--turns)",
            )
        if self._wave is None:
            self._rate = rate
            self._wave = wave.open(self._file, "wb")
            self._wave.setnchannels(1)
            self._wave.setsampwidth(SAMPLE_BYTES)
            self._wave.setframerate(rate)

    def _write_held(self) -> None:
        if self._wave is not None and self._held:
            with self._writing():
                self._wave.writeframes(bytes(self._held))
                self._file.flush()
            self.samples += len(self._held) // SAMPLE_BYTES
        self._held.clear()


class LivePcm:
    """Samples in order as they come. What was passed on of a segment that comes again is not
    passed on a second time: it cannot be taken back from whoever hears it."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self.samples = 0
        self._write = write
        self._segment: tuple[str, int] | None = None
        self._passed_on = 0

    def feed(self, message: m.Audio) -> None:
        """Take one event."""
        if not isinstance(message, m.AudioChunk):
            return
        if self._segment != (message.turn, message.n):
            self._segment = (message.turn, message.n)
            self._passed_on = 0
        known = max(0, self._passed_on - message.offset) * SAMPLE_BYTES
        data = message.data[known:]
        if data:
            self._write(data)
            self._passed_on = message.offset + len(message.data) // SAMPLE_BYTES
            self.samples += len(data) // SAMPLE_BYTES


class RawOutput(LivePcm):
    """Raw s16le samples on a binary stream."""

    def __init__(self, stream: IO[bytes]) -> None:
        def write(data: bytes) -> None:
            stream.write(data)
            stream.flush()

        super().__init__(write)

    def close(self) -> None:
        """Nothing is held, and the stream is not ours."""


# -- playing --------------------------------------------------------------------------------------

_LIVE: Mapping[str, Sequence[str]] = {
    "paplay": ("--raw", "--format=s16le", "--channels=1", "--rate={rate}"),
    "aplay": ("-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", "{rate}"),
    "ffplay": (
        *("-loglevel", "error", "-nodisp", "-autoexit", "-f", "s16le", "-ar", "{rate}"),
        *("-i", "pipe:0"),
    ),
}
_OF_FILES: Mapping[str, Sequence[str]] = {
    "pw-play": ("{file}",),
    "afplay": ("{file}",),
}


def find_player() -> str | None:
    """The name of an audio player at hand; those that play while audio still comes go first."""
    return next((name for name in [*_LIVE, *_OF_FILES] if shutil.which(name)), None)


class Player:
    """Plays a session's audio while it comes, where the player can; give it every event.

    A player that fails (no sound card) says so in `problem`; nothing else is lost.
    """

    def __init__(self, name: str) -> None:
        self.problem: str | None = None
        self.live = name in _LIVE
        self._name = name
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._samples = LivePcm(self._queue.put_nowait)
        self._playing: asyncio.Task[None] | None = None

    def feed(self, message: m.Audio) -> None:
        """Take one event."""
        if not self.live:
            return
        if isinstance(message, m.TurnStarted) and self._playing is None:
            command = [part.format(rate=message.sample_rate) for part in _LIVE[self._name]]
            self._playing = asyncio.create_task(self._play(command))
        self._samples.feed(message)

    async def finish(self, file: Path) -> None:
        """Wait until all has been heard; a player of files begins only now, with `file`."""
        if self.live and self._playing is not None:
            self._queue.put_nowait(None)
            await self._playing
        elif not self.live:
            command = [part.format(file=file) for part in _OF_FILES[self._name]]
            self._queue.put_nowait(None)
            await self._play(command)

    async def stop(self) -> None:
        """Be silent now."""
        if self._playing is not None:
            self._playing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._playing

    async def _play(self, arguments: list[str]) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                self._name,
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            self.problem = f"{self._name}: {error.strerror}"
            return
        try:
            said = (await asyncio.gather(self._pump(process), process.stderr.read()))[1]  # type: ignore[union-attr]
            if await process.wait() != 0:
                lines = said.decode("utf-8", "replace").strip().splitlines()
                self.problem = f"{self._name}: {lines[-1] if lines else 'failed'}"
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise

    async def _pump(self, process: asyncio.subprocess.Process) -> None:
        stdin = process.stdin
        assert stdin is not None  # noqa: S101 - we asked for a pipe
        with contextlib.suppress(ConnectionError):  # it has ended; its status says why
            while (data := await self._queue.get()) is not None:
                stdin.write(data)
                await stdin.drain()
        with contextlib.suppress(ConnectionError):
            stdin.close()
            await stdin.wait_closed()
