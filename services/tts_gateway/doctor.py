"""Checks a backend in the way a gateway uses it: `python -m services.tts_gateway.doctor`.

Prints one JSON object for each check (name, level, message, remedy), and ends with status 0 only if
none of them is `fatal`. `firstword doctor` runs it and prints the results for people.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from firstword.errors import FirstwordError, UpstreamError
from firstword.server_check import Finding
from services.tts_gateway import program
from services.tts_gateway.doctor_audio import judge
from services.tts_gateway.doctor_pings import pings_while_speaking
from services.tts_gateway.doctor_visit import Spoken, Visit
from services.tts_gateway.upstream import Upstream

SENTENCE = "The quick brown fox jumps over the lazy dog, and nobody in the village is surprised."
SECOND = "Seven small birds sat on the wall behind the house and waited for the rain to stop."
LONG = " ".join([SENTENCE, SECOND] * 3)
"""Long enough to be interrupted."""

BAD_FRAMES: tuple[str | bytes, ...] = ('{"type": "synthesize"', b"\xff\xfe\xfd", '{"type": "sing"}')
IDLE_S = 2.0
QUICK_S = 1.0
"""The longest time to the first byte of a second sentence."""
TOO_QUICK_S = 0.05
"""A synthesis that is over sooner than this cannot be interrupted."""

ONE_READER = "read the connection in a task that is always in receive(), and synthesise elsewhere"


class Doctor:
    """All checks of one backend."""

    def __init__(self, upstream: Upstream, url: str, voice: str = "") -> None:
        self._upstream = upstream
        self._url = url
        self._voice = voice
        self._visit: Visit | None = None
        self._first: Visit | None = None
        """Where the first sentence was spoken."""
        self._spoken = Spoken()
        self._ping_s = 0.0
        self._lost = 0
        """How often a connection ended although we did not close it."""

    async def look(self) -> AsyncIterator[Finding]:
        """The finding of each check, as soon as there is one."""
        try:
            opening = await self._open()
            for finding in opening:
                yield finding
            if self._visit is None:
                return
            for check in CHECKS:
                finding = await self._check(check)
                yield finding
                if finding.level == "fatal" and check.needed:
                    return
            if self._url.startswith(("ws:", "wss:")):
                yield await pings_while_speaking(self._url, LONG, self._voice)
        finally:
            if self._visit is not None:
                await self._visit.leave()

    async def _open(self) -> list[Finding]:
        """Whether the backend can be reached, and a session opened."""
        began = _now()
        try:
            link = await self._upstream.connect()
        except FirstwordError as error:
            remedy = "see that it runs, that the address is right and that nothing is in between"
            if error.code == "upstream_unreachable":
                return [Finding("upstream_reachable", "fatal", error.message, remedy)]
            reached = Finding("upstream_reachable", "ok", self._url)
            return [reached, Finding("session_opens", "fatal", error.message)]
        self._visit = Visit(link, self._voice)
        opened = Finding("session_opens", "ok", f"in {_ms(_now() - began)}")
        return [Finding("upstream_reachable", "ok", self._url), opened]

    async def _check(self, check: Check) -> Finding:
        """Run one check, on the present connection or, if that has ended, on another."""
        try:
            visit = await self._at_hand()
            return await check.look(self, visit)
        except FirstwordError as error:
            return Finding(check.name, "fatal", error.message, check.remedy)
        finally:
            if self._visit is not None and self._visit.over and check.name != "close":
                self._lost += 1
                await self._visit.leave()
                self._visit = None

    async def _at_hand(self) -> Visit:
        if self._visit is None:
            self._visit = Visit(await self._upstream.connect(), self._voice)
        return self._visit

    # -- the checks -------------------------------------------------------------------------------

    async def sentence(self, visit: Visit) -> Finding:
        self._first = visit
        self._spoken = await visit.say(SENTENCE)
        told = f"sent as text: {self._spoken.seconds:.1f} s of audio at {self._spoken.rate} Hz"
        return Finding("sentence", "ok", told)

    async def speech(self, _visit: Visit) -> Finding:
        spoken = self._spoken
        verdict = await asyncio.to_thread(judge, bytes(spoken.pcm), spoken.rate, SENTENCE)
        if verdict.problem:
            return Finding("audio_is_speech", "fatal", verdict.problem, verdict.remedy)
        told = f"{verdict.characters_per_s:g} characters a second, loudest {verdict.peak_db:g} dB"
        return Finding("audio_is_speech", "ok", told)

    async def second(self, visit: Visit) -> Finding:
        if visit is not self._first:
            raise UpstreamError("upstream_lost", "the connection ended after the first sentence")
        self._spoken = spoken = await visit.say(SECOND)
        if not spoken.seconds:
            remedy = "see that a session's second request is spoken, too"
            return Finding("second_sentence", "fatal", "it came without audio", remedy)
        return Finding("second_sentence", "ok", "on the same connection")

    async def time(self, _visit: Visit) -> Finding:
        spoken = self._spoken
        told = f"first byte after {_ms(spoken.first_byte_s)}, all after {_ms(spoken.total_s)}"
        share = spoken.total_s / spoken.seconds if spoken.seconds else 0.0
        if share > 1:
            remedy = "use a faster engine or machine: listeners wait between sentences"
            return Finding("quick_enough", "warning", f"{told}: slower than it is heard", remedy)
        if spoken.first_byte_s > QUICK_S:
            remedy = "send audio while it is made; see how long requests wait for their turn"
            return Finding("quick_enough", "warning", told, remedy)
        return Finding("quick_enough", "ok", f"{told} ({share:.2f} of its length)")

    async def binary(self, visit: Visit) -> Finding:
        if not (await visit.say(SECOND, binary=True)).pcm:
            remedy = "synthesise what comes as a binary frame as what comes as text"
            return Finding("binary_frames", "fatal", "it came without audio", remedy)
        return Finding("binary_frames", "ok", "a sentence sent as a binary frame is spoken")

    async def pings(self, visit: Visit) -> Finding:
        self._ping_s = await visit.ping()
        return Finding("pings", "ok", f"answered in {_ms(self._ping_s)}")

    async def read_while_speaking(self, visit: Visit) -> Finding:
        came = await visit.interrupt(LONG)
        if came.pong_s is None:
            if came.ended_s - self._ping_s < TOO_QUICK_S:
                told = "its synthesis is too quick to be spoken into"
                return Finding("read_while_speaking", "ok", told)
            told = (
                f"a ping was not answered before the synthesis was over, {_ms(came.ended_s)} later"
            )
            return Finding("read_while_speaking", "fatal", told, ONE_READER)
        if came.cancelled_s is None:
            told = f"a ping was answered in {_ms(came.pong_s)}, a cancel was not obeyed"
            remedy = (
                "stop the synthesis on `cancel` and answer `cancelled`: barge-ins wait otherwise"
            )
            return Finding("read_while_speaking", "warning", told, remedy)
        told = f"a ping was answered in {_ms(came.pong_s)}, a cancel in {_ms(came.cancelled_s)}"
        return Finding("read_while_speaking", "ok", told)

    async def bad_message(self, visit: Visit) -> Finding:
        codes = [await visit.refusal_of(frame) for frame in BAD_FRAMES]
        await visit.say(SECOND)
        told = f"answered with {', '.join(dict.fromkeys(codes))}; the session speaks on"
        return Finding("bad_message", "ok", told)

    async def stays_open(self, visit: Visit) -> Finding:
        await visit.quiet(IDLE_S)
        if self._lost:
            told = f"the connection ended {self._lost} times although nobody had said close"
            remedy = "let only `close`, or the peer going away, end a connection"
            return Finding("stays_open", "fatal", told, remedy)
        return Finding("stays_open", "ok", "through all of this")

    async def close(self, visit: Visit) -> Finding:
        if await visit.end():
            return Finding("close", "ok", "ends the connection")
        remedy = 'close the connection on {"type": "close"}, after what waits'
        return Finding("close", "fatal", "it does not end the connection", remedy)


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `remedy`: what to do if the backend breaks the protocol during it."""

    name: str
    look: Callable[[Doctor, Visit], Awaitable[Finding]]
    remedy: str
    needed: bool = False
    """Whether the later checks make no sense without it."""


CHECKS = (
    Check("sentence", Doctor.sentence, "see the log of the backend", needed=True),
    Check("audio_is_speech", Doctor.speech, ""),
    Check(
        "second_sentence",
        Doctor.second,
        "keep the connection open after a sentence: it is one session's, for all of its sentences",
    ),
    Check("quick_enough", Doctor.time, ""),
    Check(
        "binary_frames",
        Doctor.binary,
        "read text and binary frames alike: SageMaker delivers binary ones where a client names no "
        'DataType (Starlette: receive() and message.get("bytes"), not receive_text())',
    ),
    Check("pings", Doctor.pings, 'answer {"type": "ping"} with {"type": "pong"}'),
    Check("read_while_speaking", Doctor.read_while_speaking, ONE_READER),
    Check(
        "bad_message",
        Doctor.bad_message,
        "answer a frame that cannot be read with an `error` frame, and go on reading",
    ),
    Check("stays_open", Doctor.stays_open, "let only `close` end a connection"),
    Check("close", Doctor.close, 'close the connection on {"type": "close"}'),
)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _now() -> float:
    return asyncio.get_running_loop().time()


async def examine(upstream: Upstream, url: str, voice: str, tell: Callable[[Finding], None]) -> int:
    """Tell each finding; the exit status."""
    status = 0
    try:
        async for finding in Doctor(upstream, url, voice).look():
            status = status or int(finding.level == "fatal")
            tell(finding)
    finally:
        await upstream.close()
    return status


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """The program; settings as the gateway's."""
    parser = program.parser("doctor", "Look at a synthesis backend.")
    options = parser.parse_args(arguments)
    upstream, settings = program.backend(options, environ)

    def tell(finding: Finding) -> None:
        program.tell_json(asdict(finding))

    return asyncio.run(examine(upstream, settings.upstream, options.voice, tell))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], os.environ))
