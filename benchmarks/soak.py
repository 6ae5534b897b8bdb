"""Whether the inference service's memory stays flat over many sentences of the real voice.

    python -m benchmarks.soak [--sentences 2000]

Sentences of all lengths, several sessions at a time, in one process, on the engine that
FIRSTWORD_INFERENCE_ENGINE and its like choose. A very long one is spoken first, since the engine
keeps the room that its largest run needed. Fails if the last quarter needs more memory than the
second.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks import figures, machine
from firstword.errors import FirstwordError
from firstword.session_protocol import Synthesize
from firstword.settings import load
from services.inference.__main__ import load_engine
from services.inference.settings import InferenceSettings
from services.inference.speaker import Speaker
from services.inference.synthesizer import Stop

SENTENCES = 2000
SESSIONS = 4
"""At least; more where more workers are."""
SEED = 7
STEPS = 20
ALLOWED = 0.03
"""By so much of itself memory may be larger at the end: pages are not returned at once."""

WORDS = (
    "river lamp morning quiet seven garden window paper yellow train answer little harbour number "
    "kitchen often travel silver October market between doctor story evening bread northern"
).split()
LONGEST = " ".join(WORDS[:26]) + "."


def main(arguments: Sequence[str] = ()) -> None:
    """Print memory by number of sentences; over an hour on two cores. Exits with 1 on growth."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    count: int = parser.parse_args(arguments).sentences
    if not machine.counts_processes():
        parser.error("memory is read from /proc: this needs Linux")
    print(machine.describe())
    try:
        megabytes = asyncio.run(_measure(count))
    except FirstwordError as error:
        print(f"not measured: {error.message}")
        return
    grown = growth(megabytes)
    print(f"last quarter beside the second: {grown:+.1%} (at most {ALLOWED:.0%})")
    if grown > ALLOWED:
        raise SystemExit(1)


def growth(megabytes: Sequence[float]) -> float:
    """By which share the median of the last quarter is above that of the second."""
    quarter = max(1, len(megabytes) // 4)
    second = figures.quantile(megabytes[quarter : 2 * quarter], 0.5)
    return figures.quantile(megabytes[-quarter:], 0.5) / second - 1


def sentences(count: int, seed: int = SEED) -> Iterator[str]:
    """Sentences of 1 to 18 words that mean nothing; the same every time."""
    draw = random.Random(seed)
    for number in range(count):
        words = [draw.choice(WORDS) for _ in range(1 + draw.randrange(18))]
        yield f"{' '.join(words).capitalize()}, {number}."


async def _measure(count: int) -> list[float]:
    settings = replace(load(InferenceSettings, os.environ), max_wait_s=600.0)
    speaker = Speaker(lambda: load_engine(settings), settings)
    texts = sentences(count)
    megabytes: list[float] = []
    step = max(1, count // STEPS)
    done = itertools.count(1)
    begun = time.monotonic()

    async def session() -> None:
        for text in texts:
            await _speak(speaker, text)
            if (number := next(done)) % step == 0:
                megabytes.append(machine.usage(os.getpid()).resident_bytes / 2**20)
                passed = time.monotonic() - begun
                print(f"{number:6} sentences  {passed:6.0f} s  {megabytes[-1]:6.0f} MB", flush=True)

    try:
        await speaker.start()
        await _speak(speaker, LONGEST)
        await asyncio.gather(*(session() for _ in range(max(SESSIONS, 2 * settings.workers))))
    finally:
        speaker.close()
    return megabytes


async def _speak(speaker: Speaker, text: str) -> None:
    async for _ in speaker.speak(Synthesize("soak", text, deadline_ms=0), Stop()):
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
