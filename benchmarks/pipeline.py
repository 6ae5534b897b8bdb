"""What Firstword itself costs between text and audio: time, CPU and memory.

    python -m benchmarks.pipeline [--sessions 1,50,200] [--seconds 36] [--cycle 12]

A server, segmenter, gateway and inference service run as processes of their own, with a tone in
place of the voice, so that nearly all that is measured is ours. docs/BENCHMARKS.md says how to
read the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import uvloop

from benchmarks import figures, machine, stack
from benchmarks.answers import ANSWERS, Answer, answer
from benchmarks.figures import Row, Usage
from benchmarks.load import TOKENS_PER_S, Load, Talk, Tally
from benchmarks.stack import Running
from firstword import keys
from firstword.client import Firstword
from services.segmenter.settings import SegmenterSettings

SESSIONS = (1, 50, 200)
SECONDS = 36.0
CYCLE_S = 12.0
"""An answer takes about five seconds to be heard; then it is the caller's turn."""
BACK_TO_BACK_S = 0.1
"""One session alone would give three answers in all the time, so it waits for nobody."""
IDLE_S = 3.0
GOALS = {1: "p50 <= 4, p99 <= 15", 200: "p99 <= 50"}
TOGETHER = 3
"""Of this many answers and one more, so many have the end of their sentence in one piece with the
token after it."""
MEMORY_FROM = 50
"""Sessions from which on the memory of one can be told."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One load, run. CPU is per process."""

    load: Load
    tally: Tally
    synthesis_ms: float
    used: Mapping[str, float]
    idle: Mapping[str, float]
    others: float
    """Share of all cores that went to processes that are not ours."""
    memory: Mapping[str, float]
    """Bytes that an open session adds, by process."""
    kept: Mapping[str, float]
    """Bytes in the server for a session that has spoken, by key."""


def main(arguments: Sequence[str] = ()) -> None:
    """Run the loads and print the tables; less than three minutes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--sessions", default=",".join(map(str, SESSIONS)))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="per load")
    parser.add_argument(
        "--cycle", type=float, default=CYCLE_S, help="seconds from answer to answer of a session"
    )
    options = parser.parse_args(arguments)
    if not machine.counts_processes():
        parser.error("CPU and memory of processes are read from /proc: this needs Linux")
    print(machine.describe())
    if (noise := machine.noise()) is not None:
        print(f"WARNING: {noise}")
    for sessions in map(int, options.sessions.split(",")):
        alone = sessions == 1
        load = Load(
            sessions,
            options.seconds,
            cycle_s=BACK_TO_BACK_S if alone else options.cycle,
            opening=alone,
        )
        print(report(uvloop.run(measure(load))), flush=True)


async def measure(load: Load) -> Measured:
    """Start everything, run one load, stop everything."""
    answers = _answers(load)
    async with stack.running() as path, Firstword(path.url) as firstword:
        warm_up = Talk(firstword, Load(1, 1.0, BACK_TO_BACK_S), answers)
        await warm_up.open()
        await warm_up.run()

        before = await _memory(path, firstword)
        talk = Talk(firstword, load, answers)
        await talk.open()
        await _connected(path, load.sessions + 1)
        after = await _memory(path, firstword)
        enough = load.sessions >= MEMORY_FROM
        idle = await _idle(path)

        made, worked_s = await _syntheses(path)
        usage, busy_s = path.usage(), machine.busy_s()
        tally = await talk.run()
        busy_s = machine.busy_s() - busy_s
        used = _used(usage, path.usage())
        made_after, worked_after_s = await _syntheses(path)
        kept = await _kept(firstword, talk.names)
        await talk.close()
        await warm_up.close()
    return Measured(
        load=load,
        tally=tally,
        synthesis_ms=(worked_after_s - worked_s) / (made_after - made) * 1000,
        used=used,
        idle=idle,
        others=max(0.0, busy_s - sum(used.values())) / tally.seconds / machine.cores(),
        memory=figures.growth(before, after, load.sessions) if enough else {},
        kept=kept,
    )


def _answers(load: Load) -> list[Answer]:
    settings = SegmenterSettings().defaults().options
    return [
        answer(text, settings, together=number % (TOGETHER + 1) > 0, opening=load.opening)
        for number, text in enumerate(ANSWERS)
    ]


# -- measuring ------------------------------------------------------------------------------------


async def _connected(path: Running, sessions: int) -> None:
    """Wait until the gateway has a connection for every session."""
    async with asyncio.timeout(20):
        while True:
            if await path.metric("tts_gateway", "firstword_upstream_connections") >= sessions:
                return
            await asyncio.sleep(0.1)


async def _idle(path: Running) -> dict[str, float]:
    """Shares of a core that the processes take while nobody talks."""
    before = path.usage()
    await asyncio.sleep(IDLE_S)
    return {name: used / IDLE_S for name, used in _used(before, path.usage()).items()}


def _used(before: Mapping[str, Usage], after: Mapping[str, Usage]) -> dict[str, float]:
    return {name: after[name].cpu_s - usage.cpu_s for name, usage in before.items()}


async def _syntheses(path: Running) -> tuple[float, float]:
    """How many syntheses the engine has made, and the seconds it worked on them."""
    name = "firstword_synthesis_seconds"
    count = await path.metric("inference", f"{name}_count")
    return count, await path.metric("inference", f"{name}_sum")


async def _memory(path: Running, firstword: Firstword) -> dict[str, int]:
    """Bytes by process; of the server, all but what its clients' connections take: most of those
    are our listeners'."""
    resident = {name: usage.resident_bytes for name, usage in path.usage().items()}
    info = await firstword.streams.commands.info("memory")
    return {**resident, "server": info["used_memory"] - info["mem_clients_normal"]}


async def _kept(firstword: Firstword, sessions: Sequence[str]) -> dict[str, float]:
    """What the server keeps of a session, its audio apart: bytes by key, on average."""
    kinds = {"text": keys.text_state, "speech": keys.speech_state, "segments": keys.segments}
    ask = firstword.streams.commands.memory_usage
    total = {
        kind: sum([await ask(key(name), samples=0) or 0 for name in sessions])
        for kind, key in kinds.items()
    }
    return {kind: size / len(sessions) for kind, size in total.items()}


# -- telling --------------------------------------------------------------------------------------


def report(measured: Measured) -> str:
    """The figures of one load, for people."""
    tally, load = measured.tally, measured.load
    parts = [
        f"\n## {load.sessions} {'session' if load.sessions == 1 else 'sessions'}\n",
        _load_line(load, tally),
        f"The engine worked {measured.synthesis_ms:.2f} ms on a sentence on average.",
    ]
    if measured.others > machine.QUIET_SHARE:
        parts.append(
            f"WARNING: other processes took {measured.others:.0%} of all cores meanwhile: "
            "times are too long"
        )
    together = [sentence for sentence in tally.sentences if sentence.together]
    apart = [sentence for sentence in tally.sentences if not sentence.together]
    goal = GOALS.get(load.sessions, "")
    parts.append("\n" + _times(figures.hops(together, measured.synthesis_ms, goal)))
    publishing = figures.row("a token given to the client -> accepted", tally.publishing)
    parts.append("\n" + _times([*figures.head_start(apart), publishing]))
    parts.append("\n" + _costs(measured))
    if measured.memory:
        parts.append("\n" + _memory_lines(measured))
    return "\n".join(parts)


def _load_line(load: Load, tally: Tally) -> str:
    answers, seconds = len(tally.sentences), tally.seconds
    often = "as soon as the one before is written" if load.opening else f"every {load.cycle_s:g} s"
    return (
        f"Load: {load.sessions} open, each with a listener and an answer {often}; an answer is "
        f"{tally.tokens / answers:.0f} tokens, {1000 / TOKENS_PER_S:.0f} ms apart, and "
        f"{tally.audio_s / answers:.1f} s of audio.\n"
        f"{answers} answers in {seconds:.0f} s; being written at a time: "
        f"{tally.writing_s / seconds:.1f} on average, {tally.most_writing} at most. A second: "
        f"{tally.tokens / seconds:.0f} tokens, {tally.segments / seconds:.1f} sentences, "
        f"{tally.chunks / seconds:.0f} chunks, {tally.audio_s / seconds:.0f} s of audio."
    )


def _times(rows: Sequence[Row]) -> str:
    head = ("milliseconds", "n", "mean", "p50", "p99", "most", "goal")
    lines = [
        (r.name, str(r.count), *(f"{ms:.1f}" for ms in (r.mean, r.p50, r.p99, r.most)), r.goal)
        for r in rows
    ]
    return figures.table(head, lines)


def _costs(measured: Measured) -> str:
    tally = measured.tally
    both = tally.tokens + tally.chunks
    units = {
        "segmenter": ("token", tally.tokens),
        "tts_gateway": ("chunk", tally.chunks),
        "inference": ("chunk", tally.chunks),
        "server": ("token or chunk", both),
        "benchmark": ("token or chunk", both),
    }
    rows = []
    for name, (unit, count) in units.items():
        cost = figures.cost(measured.used[name], tally.seconds, measured.idle[name], count)
        label = {"inference": "inference (tone)", "benchmark": "this benchmark"}.get(name, name)
        per = f"{cost.unit_us:.0f} us a {unit}"
        rows.append((label, f"{cost.busy:.1%}", f"{cost.idle:.1%}", per))
    return figures.table(("CPU, of one core", "load", "idle", "added by load"), rows)


def _memory_lines(measured: Measured) -> str:
    names = {"server": "the server", "tts_gateway": "the gateway", "segmenter": "the segmenter"}
    opened = ", ".join(
        f"{measured.memory[name] / 1024:.1f} kB in {label}" for name, label in names.items()
    )
    kept = ", ".join(f"{kind} {size / 1024:.1f} kB" for kind, size in measured.kept.items())
    return (
        f"An open session that is silent: {opened}.\n"
        f"In the server, after its answers and beside their audio: {kept}."
    )


if __name__ == "__main__":
    main(sys.argv[1:])
