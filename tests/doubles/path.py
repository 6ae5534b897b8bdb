"""Plays everything between the ingress and a session's audio, with a voice that can be read back.

A real class for tests of what stands before and behind the path (client, agent, command line): it
cuts at full stops, says each character as `SAMPLES_PER_CHARACTER` samples of the character's code
and answers cancels. It keeps one promise of the path that such tests lean on: events in order.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import itertools
from types import TracebackType
from typing import Self
from unittest.mock import patch

from firstword import codec, keys
from firstword import messages as m
from firstword.ids import START
from firstword.streams import Streams

SAMPLE_RATE = 24_000
SAMPLES_PER_CHARACTER = 240
CHUNK_CHARACTERS = 8


def voice(text: str) -> bytes:
    """How the double says `text`: s16le mono."""
    samples = array.array("h")
    for character in text:
        samples.extend([ord(character) % 32_768] * SAMPLES_PER_CHARACTER)
    return samples.tobytes()


def heard(pcm: bytes) -> str:
    """The text that was said: `voice` the other way."""
    samples = array.array("h", pcm)
    return "".join(map(chr, samples[::SAMPLES_PER_CHARACTER]))


class PathDouble:
    """Follows the door, or all partitions when the deployment has recorded their number.

    Clear `speaking` to hold back all audio, for a test that acts in the middle of a turn.
    """

    def __init__(self, url: str, *, partitions: int | None = None) -> None:
        self.received: list[m.Ingress] = []
        self.speaking = asyncio.Event()
        self.speaking.set()
        # On a busy machine a reply may be late; a double that gives up fails a test of others.
        with patch.multiple("firstword.streams", COMMAND_TIMEOUT_S=60.0, READ_TIMEOUT_S=60.0):
            self._streams = Streams(url)
        self._partitions = partitions
        self._sessions: dict[str, _Session] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        sources = [keys.DOOR]
        if self._partitions is not None:
            await self._streams.agree_on_partitions(self._partitions)
            sources += [keys.ingress(p) for p in range(self._partitions)]
        self._tasks = [asyncio.create_task(self._follow(source)) for source in sources]
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for session in self._sessions.values():
            await session.stop()
        await self._streams.close()

    def of(self, session: str) -> list[m.Ingress]:
        """What came for a session, repeats included."""
        return [message for message in self.received if message.session == session]

    async def _follow(self, stream: str) -> None:
        cursor = START
        while True:
            found = await self._streams.wait({stream: cursor})
            for entry in found.get(stream, []):
                cursor = entry.id
                for message in codec.decode_ingress(entry.fields):
                    self.received.append(message)
                    await self._session(message.session).take(message)

    def _session(self, name: str) -> _Session:
        if name not in self._sessions:
            self._sessions[name] = _Session(name, self._streams, self.speaking)
        return self._sessions[name]


class _Session:
    """One session: its turns, one after the other, each at most once."""

    def __init__(self, name: str, streams: Streams, speaking: asyncio.Event) -> None:
        self._name = name
        self._streams = streams
        self._speaking = speaking
        self._numbers = itertools.count()
        self._voice = "af_heart"
        self._texts: dict[str, str] = {}
        self._taken: set[tuple[str, int | None]] = set()
        self._over: set[str] = set()
        self._jobs: dict[str, asyncio.Task[None]] = {}

    async def take(self, message: m.Ingress) -> None:
        match message:
            case m.Open():
                self._voice = message.voice or self._voice
            case m.Text() | m.Flush() | m.End():
                self._take_piece(message)
            case m.Cancel():
                await self._cancel(message.turn)
            case m.Close():
                await asyncio.gather(*self._jobs.values(), return_exceptions=True)
                await self.publish(m.Closed(reason="closed"))
            case _:
                pass  # it loses nothing, so it need not know where its listeners are

    async def stop(self) -> None:
        for job in self._jobs.values():
            job.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await job

    async def publish(self, message: m.Audio) -> str:
        return await self._streams.append(
            keys.audio(self._name), {"m": codec.pack(message, self._name)}
        )

    def _take_piece(self, message: m.Text | m.Flush | m.End) -> None:
        turn = message.turn or "unnamed"
        if turn in self._over or (turn, message.seq) in self._taken:
            return
        self._taken.add((turn, message.seq))
        if isinstance(message, m.Text):
            self._texts[turn] = self._texts.get(turn, "") + message.text
        elif isinstance(message, m.End):
            before = list(self._jobs.values())
            self._over.add(turn)
            text = self._texts.pop(turn, "")
            self._jobs[turn] = asyncio.create_task(self._speak(turn, text, before))

    async def _cancel(self, turn: str | None) -> None:
        open_turns = [*self._texts, *(t for t, job in self._jobs.items() if not job.done())]
        name = turn if turn is not None else (open_turns[-1] if open_turns else "")
        job = self._jobs.get(name)
        done = name in self._over and (job is None or job.done())
        if job is not None:
            job.cancel()
        self._texts.pop(name, None)
        self._over.add(name)
        sent = {"segments": 0, "n": 0, "samples": 0}
        await self.publish(m.TurnCancelled(turn=name, sent=sent, already_done=done))

    async def _speak(self, turn: str, text: str, before: list[asyncio.Task[None]]) -> None:
        await asyncio.wait(before) if before else None
        sentences = [s for s in text.replace(".", ".\0").split("\0") if s]
        state = keys.speech_state(self._name)
        start = samples = 0
        for sentence in sentences:
            n = next(self._numbers)
            await self._speaking.wait()
            if start == 0:
                opened = await self.publish(
                    m.TurnStarted(turn=turn, voice=self._voice, sample_rate=SAMPLE_RATE)
                )
                await self._streams.commands.hset(state, "turn_at", opened)
            end = start + len(sentence)
            await self.publish(
                m.SegmentStarted(turn=turn, n=n, text=sentence, start=start, end=end)
            )
            await self._say(turn, n, sentence)
            length = len(sentence) * SAMPLES_PER_CHARACTER
            await self.publish(m.SegmentDone(turn=turn, n=n, samples=length))
            start, samples = end, samples + length
        await self._speaking.wait()
        await self._streams.commands.hdel(state, "turn_at")
        await self.publish(
            m.TurnDone(
                turn=turn,
                segments=len(sentences),
                samples=samples,
                ttfa_ms=1.0 if sentences else None,
                reason="complete",
            )
        )

    async def _say(self, turn: str, n: int, sentence: str) -> None:
        for at in range(0, len(sentence), CHUNK_CHARACTERS):
            if at:
                await self._speaking.wait()
            data = voice(sentence[at : at + CHUNK_CHARACTERS])
            offset = at * SAMPLES_PER_CHARACTER
            await self.publish(m.AudioChunk(turn=turn, n=n, offset=offset, data=data))
