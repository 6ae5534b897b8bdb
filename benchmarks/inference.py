"""How fast the real voice is here: synthesis time by audio time (RTF), and the first frame.

    python -m benchmarks.inference

Seconds say little about another machine; the ratios, to real time and between sentences of
different lengths, say more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import figures, machine
from firstword.errors import FirstwordError
from firstword.session_protocol import BYTES_PER_SAMPLE, DEFAULT_SAMPLE_RATE, Synthesize
from services.inference.__main__ import load_engine
from services.inference.settings import InferenceSettings
from services.inference.speaker import Speaker
from services.inference.synthesizer import Stop

ROUNDS = 5
SENTENCES = {
    "short": "Yes, of course.",
    "medium": "The next train to the coast leaves at a quarter past nine.",
    "long": (
        "If you take the morning train and change at the second stop, you will be at the coast "
        "before noon, with enough time left for a walk along the water before we all meet."
    ),
}


@dataclass(frozen=True, slots=True)
class Spoken:
    """One synthesis, in seconds: request to first frame, to the last, and the audio it made."""

    first_s: float
    all_s: float
    audio_s: float


def main(_arguments: Sequence[str] = ()) -> None:
    """Print the table; about a minute on two cores."""
    print(machine.describe())
    if (noise := machine.noise()) is not None:
        print(f"WARNING: {noise}")
    try:
        results = asyncio.run(_measure())
    except FirstwordError as error:
        print(f"not measured: {error.message}")
        return
    print(f"\nKokoro-82M on the CPU, one synthesis at a time, the middle one of {ROUNDS}\n")
    head = ("sentence", "characters", "audio s", "first frame s", "all s", "RTF", "first / audio")
    print(figures.table(head, [_line(name, spoken) for name, spoken in results.items()]))


async def _measure() -> dict[str, list[Spoken]]:
    settings = InferenceSettings()
    speaker = Speaker(lambda: load_engine(settings), settings)
    try:
        await speaker.start()
        return {
            name: [await _speak(speaker, text) for _ in range(ROUNDS)]
            for name, text in SENTENCES.items()
        }
    finally:
        speaker.close()


async def _speak(speaker: Speaker, text: str) -> Spoken:
    size, first_s, begun = 0, 0.0, time.perf_counter()
    async for output in speaker.speak(Synthesize("bench", text), Stop()):
        if isinstance(output, bytes):
            first_s = first_s or time.perf_counter() - begun
            size += len(output)
    all_s = time.perf_counter() - begun
    return Spoken(first_s, all_s, size / BYTES_PER_SAMPLE / DEFAULT_SAMPLE_RATE)


def _line(name: str, spoken: Sequence[Spoken]) -> tuple[str, ...]:
    audio_s = spoken[0].audio_s
    first_s = figures.quantile([each.first_s for each in spoken], 0.5)
    all_s = figures.quantile([each.all_s for each in spoken], 0.5)
    return (
        name,
        str(len(SENTENCES[name])),
        f"{audio_s:.2f}",
        f"{first_s:.2f}",
        f"{all_s:.2f}",
        f"{all_s / audio_s:.2f}",
        f"{first_s / audio_s:.2f}",
    )


if __name__ == "__main__":
    main()
