"""Finds how many sessions a backend carries: `python -m services.tts_gateway.capacity`.

Sessions speak turn after turn, each on a connection of its own, as behind a gateway: a turn is two
sentences, the second is requested when the first is made, and the next turn begins when a
listener would have heard both. Prints one JSON object for each step, and one at the end;
`firstword capacity` runs it and prints them for people.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firstword.capacity import LEAST_TURNS, LONGEST_START_S, Ladder, Step
from firstword.cli import loop
from firstword.errors import FirstwordError
from services.tts_gateway import program
from services.tts_gateway.doctor_visit import Visit
from services.tts_gateway.upstream import Upstream

TURN = ("Your table is booked for eight.", "It is by the window, with a view of the old harbour.")
GAP_S = 0.1
"""A shorter silence sounds like an ordinary pause."""
RETRY_S = 1.0
CONNECT_AT_ONCE = 16

Tell = Callable[[dict[str, Any]], None]


class Bench:
    """Tries numbers of sessions on one backend."""

    def __init__(self, upstream: Upstream, voice: str, step_s: float) -> None:
        self._upstream = upstream
        self._voice = voice
        self._step_s = step_s

    async def first_word(self, patience_s: float) -> float:
        """Seconds until the backend, which may still be starting, has spoken a first sentence."""
        began = _now()
        while True:
            try:
                await self._turn(Step(1), None)
                return _now() - began
            except FirstwordError as error:
                if not error.retryable or _now() - began > patience_s:
                    raise
            await asyncio.sleep(RETRY_S)

    async def try_out(self, sessions: int) -> Step:
        """One step: connections first, then turns for `step_s` and until there are LEAST_TURNS."""
        step, visits = Step(sessions), await self._open(sessions)
        try:
            began = _now()
            tasks = [
                self._speak(step, visit, began, self._step_s * n / (2 * sessions))
                for n, visit in enumerate(visits)
            ]
            await asyncio.gather(*tasks)
        finally:
            await asyncio.gather(*(visit.leave() for visit in visits if visit is not None))
        return step

    async def _open(self, sessions: int) -> list[Visit | None]:
        """A connection for each session; None for sessions that get none."""
        at_once = asyncio.Semaphore(CONNECT_AT_ONCE)

        async def one() -> Visit | None:
            async with at_once:
                try:
                    return Visit(await self._upstream.connect(), self._voice)
                except FirstwordError:
                    return None  # tried again, and counted, by its first turn

        return list(await asyncio.gather(*(one() for _ in range(sessions))))

    async def _speak(self, step: Step, visit: Visit | None, began: float, later_s: float) -> None:
        """One session, which begins `later_s` into the step: people do not all begin at once."""
        await asyncio.sleep(later_s)
        while _now() < began + self._step_s or step.turns < LEAST_TURNS:
            try:
                await self._turn(step, visit)
            except FirstwordError as error:
                step.failed += 1
                step.why = error.code
                if visit is not None and visit.over:
                    visit = None
                await asyncio.sleep(RETRY_S)

    async def _turn(self, step: Step, visit: Visit | None) -> None:
        """Two sentences at the pace of a listener; on a new connection if there is none."""
        own = None
        if visit is None:
            visit = own = Visit(await self._upstream.connect(), self._voice)
        try:
            first = await visit.say(TURN[0], first=True)
            ended = _now()
            heard_until = ended - first.total_s + first.first_byte_s + first.seconds
            second = await visit.say(TURN[1], ahead_s=max(0.0, heard_until - ended))
            starts = max(heard_until, ended + second.first_byte_s)
            step.silent += starts > heard_until + GAP_S
            step.first_audio_s.append(first.first_byte_s)
            await asyncio.sleep(max(0.0, starts + second.seconds - _now()))
        finally:
            if own is not None:
                await own.leave()


async def measure(bench: Bench, ladder: Ladder, tell: Tell) -> None:
    """Climb the ladder; tell each step, and the result at the end."""
    while (sessions := ladder.next()) is not None:
        step = await bench.try_out(sessions)
        problem = ladder.took(step)
        shown = {"sessions": sessions, "turns": step.turns, "problem": problem}
        tell({"step": {**shown, "p95_s": round(step.p95_s, 4) if step.first_audio_s else None}})
    tell({"q_max": ladder.carried, "bounded": ladder.bounded})


async def measure_start(bench: Bench, command: str, tell: Tell) -> asyncio.subprocess.Process:
    """Start the backend with `command`, and tell how long it took to speak."""
    quiet = asyncio.subprocess.DEVNULL
    words = _words(command)
    try:
        started = await asyncio.create_subprocess_exec(
            *words, stdin=quiet, stdout=quiet, stderr=quiet
        )
    except OSError as error:
        why = os.strerror(error.errno or 0)
        told = f"--start: {words[0]!r} cannot be started ({why}): give a program and its arguments"
        raise FirstwordError("no_capacity", told) from error
    speaking = asyncio.create_task(bench.first_word(LONGEST_START_S))
    ending = asyncio.create_task(started.wait())
    try:
        await asyncio.wait((speaking, ending), return_when=asyncio.FIRST_COMPLETED)
        if not speaking.done():
            told = f"{command!r} ended with status {started.returncode} before it spoke"
            raise FirstwordError("no_capacity", told)
        tell({"total_s": round(speaking.result(), 2)})
    except BaseException:
        await stop(started)
        raise
    finally:
        speaking.cancel()
        ending.cancel()
    return started


def _words(command: str) -> list[str]:
    """Program and arguments, as a shell takes them apart. Raises FirstwordError."""
    try:
        words = shlex.split(command)
    except ValueError as error:  # a quote that is not closed
        told = f"--start {command!r} cannot be read ({error}): quote it as for a shell"
        raise FirstwordError("no_capacity", told) from error
    if not words:
        raise FirstwordError("no_capacity", "--start names no program")
    return words


async def stop(process: asyncio.subprocess.Process | None) -> None:
    """End what `measure_start` started."""
    if process is not None and process.returncode is None:
        process.terminate()
        await process.wait()


async def run(options: argparse.Namespace, upstream: Upstream, tell: Tell) -> int:
    """The exit status: 1 if nothing could be measured."""
    process = None
    try:
        ladder = Ladder(options.slo, options.most)
        bench = Bench(upstream, options.voice, options.step)
        if options.start:
            process = await measure_start(bench, options.start, tell)
        else:
            await bench.first_word(0)  # warm, and a reason in words if it cannot be reached
        await measure(bench, ladder, tell)
    except FirstwordError as error:
        tell({"error": error.message})
        return 1
    finally:
        await upstream.close()
        await stop(process)
    return 0


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """The program; settings as the gateway's."""
    parser = program.parser("capacity", "Find what a backend carries.")
    parser.add_argument("--slo", type=float, default=0.5, help="seconds to first audio, p95")
    parser.add_argument("--most", type=int, default=64, help="most sessions to try")
    parser.add_argument("--step", type=float, default=20.0, help="seconds of a step")
    parser.add_argument("--start", default="", help="command that starts the backend")
    options = parser.parse_args(arguments)
    upstream, _settings = program.backend(options, environ)
    return loop.run(run(options, upstream, program.tell_json))  # SIGTERM ends what was started, too


def _now() -> float:
    return asyncio.get_running_loop().time()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], os.environ))
