"""How much earlier a turn is heard when its first sentence is cut at a clause.

    python -m benchmarks.first_audio [--rounds 3] [--out build/first_audio]

Ten long first sentences with the real voice, each whole and cut: seconds to the first frame, the
CPU time until then (which other processes disturb less), and the pause that is heard at the cut
beside the one of the whole sentence there. Both are kept as WAV files, to be listened to.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import figures, machine
from firstword.encoding import wav_header
from firstword.errors import FirstwordError
from firstword.session_protocol import DEFAULT_SAMPLE_RATE, Synthesize, Words
from services.inference.__main__ import load_engine
from services.inference.audio import SILENCE_DBFS
from services.inference.settings import InferenceSettings
from services.inference.speaker import Finished, Speaker
from services.inference.synthesizer import Stop

SENTENCES = (
    "If you have a little time before the meeting, I can show you what we have planned so far.",
    "Your order left the warehouse early this morning, and the driver should be with you by four.",
    "The quickest way from here is the express train, which leaves every quarter of an hour.",
    "I looked through all of last week's messages because you asked for the one about the bill.",
    "Before we change anything in your account, please tell me the name of the street you live in.",
    "Hold the small button on the back for about ten seconds until the light starts to blink.",
    "There are two flights to Lisbon tomorrow morning, one at seven and one at half past nine.",
    "Most people find the first chapter rather slow, although all of it turns out to matter.",
    "You could come on Thursday at the same time, or on Friday morning, when there is more room.",
    "The recipe asks for two cups of flour and a little salt, while the butter should be soft.",
)
"""None of them is so long that it would be cut anyway."""

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Heard:
    """One synthesis: seconds and CPU seconds to the first frame, and its audio."""

    first_s: float
    cpu_s: float
    pcm: bytes
    words: Words

    @property
    def seconds(self) -> float:
        return len(self.pcm) / 2 / DEFAULT_SAMPLE_RATE


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table and keep the sounds; two minutes on two cores."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_audio", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the quicker one counts")
    parser.add_argument(
        "--out", type=Path, default=Path("build/first_audio"), help="for the sounds"
    )
    options = parser.parse_args(arguments)
    print(machine.describe())
    if (noise := machine.noise()) is not None:
        print(f"WARNING: {noise}")
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)

    def keep(name: str, pcm: bytes) -> None:
        (out / name).write_bytes(wav_header(DEFAULT_SAMPLE_RATE, len(pcm)) + pcm)

    try:
        found = asyncio.run(_measure(options.rounds, keep))
    except FirstwordError as error:
        print(f"not measured: {error.message}")
        return
    words = InferenceSettings().first_chunk_words
    print(f"\nKokoro-82M on the CPU, cut at the first clause of at least {words} words\n")
    print(_table(found))
    for name, ratios in {
        "First frame": [cut.first_s / whole.first_s for whole, cut in found],
        "CPU until it": [cut.cpu_s / whole.cpu_s for whole, cut in found],
    }.items():
        middle, most = figures.quantile(ratios, 0.5), max(ratios)
        print(f"{name}, cut / whole: median {middle:.2f}, most {most:.2f}")
    print(f"Sounds: {out}")


async def _measure(rounds: int, keep: Callable[[str, bytes], None]) -> list[tuple[Heard, Heard]]:
    """Each sentence whole and cut, the quickest of the rounds."""
    settings = InferenceSettings()
    speaker = Speaker(lambda: load_engine(settings), settings)
    found = []
    try:
        await speaker.start()
        for number, text in enumerate(SENTENCES, 1):
            tries = [(await _hear(speaker, text, first)) for first in (False, True) * rounds]
            whole = min(tries[::2], key=lambda heard: heard.first_s)
            cut = min(tries[1::2], key=lambda heard: heard.first_s)
            keep(f"{number:02}-whole.wav", whole.pcm)
            keep(f"{number:02}-cut.wav", cut.pcm)
            found.append((whole, cut))
    finally:
        speaker.close()
    return found


async def _hear(speaker: Speaker, text: str, first: bool) -> Heard:
    request = Synthesize("bench", text, deadline_ms=0, first=first)
    pcm, first_s, cpu_s = b"", 0.0, 0.0
    words: Words = ()
    begun, worked = time.perf_counter(), time.process_time()
    async for output in speaker.speak(request, Stop()):
        match output:
            case bytes():
                if not pcm:
                    first_s, cpu_s = time.perf_counter() - begun, time.process_time() - worked
                pcm += output
            case Finished():
                words = output.words
    return Heard(first_s, cpu_s, pcm, words)


def _table(found: Sequence[tuple[Heard, Heard]]) -> str:
    head = (
        "sentence",
        "first frame s",
        "cut s",
        "ratio",
        "of CPU",
        "audio s",
        "cut s",
        "pause ms",
        "cut ms",
    )
    lines = []
    for number, (whole, cut) in enumerate(found, 1):
        index = _cut_behind(whole, cut)
        times = whole.first_s, cut.first_s, cut.first_s / whole.first_s, cut.cpu_s / whole.cpu_s
        pauses = pause_s(whole, index), pause_s(cut, index)
        lines.append(
            (
                str(number),
                *(f"{value:.2f}" for value in (*times, whole.seconds, cut.seconds)),
                *(f"{1000 * pause:.0f}" for pause in pauses),
            )
        )
    return figures.table(head, lines)


def _cut_behind(whole: Heard, cut: Heard) -> int:
    """The word behind which it was cut: the times of the words differ from there on the most."""
    gaps = [
        (other[2] - one[3]) - (far[2] - near[3])
        for one, other, near, far in zip(
            cut.words, cut.words[1:], whole.words, whole.words[1:], strict=False
        )
    ]
    return max(range(len(gaps)), key=lambda index: abs(gaps[index]))


def pause_s(heard: Heard, index: int) -> float:
    """The longest silence around the end of this word, in seconds."""
    rate, window = DEFAULT_SAMPLE_RATE, DEFAULT_SAMPLE_RATE // 200
    start = max(0, round((heard.words[index][3] - 0.3) * rate))
    past = round((heard.words[index + 1][2] + 0.3) * rate)
    part = np.frombuffer(heard.pcm, "<i2")[start:past].astype(np.float64) / 32768
    power = np.square(part[: len(part) // window * window].reshape(-1, window)).mean(axis=1)
    longest = run = 0
    for quiet in power < 10 ** (SILENCE_DBFS / 10):
        run = run + 1 if quiet else 0
        longest = max(longest, run)
    return longest * window / rate


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
