"""`firstword say` and `firstword demo`: a text at a language model's pace, heard and explained."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from firstword import runfile
from firstword.cli import loop, report, stack
from firstword.cli.console import Console
from firstword.cli.performance import Performance, Script, Sink, perform
from firstword.cli.sinks import Player, RawOutput, WavFile, find_player
from firstword.client import Firstword
from firstword.supervisor import ServiceFailed, Tell

DEMO_TEXT = (
    "This sentence is spoken while the next one is still being written. "
    "A language model takes its time, and nobody likes to wait for the end of a paragraph. "
    "So every sentence leaves as soon as it is certain."
)


def run_say(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Speak TEXT. Status 1 when not all of it was spoken."""
    script = Script(
        text=sys.stdin.read() if options.text == "-" else options.text,
        tokens_per_second=options.tokens_per_second,
        voice=options.voice,
        speed=options.speed,
        lang=options.lang,
        silence_s=options.timeout,
    )
    modes = ["batch", "stream"] if options.compare else [options.mode]

    def tell(service: str, what: str) -> None:
        console.status(f"{service}: {what}")

    return _run(script, modes, options, console, environ, tell)


def run_demo(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Fetch what is missing, start everything, speak a paragraph in both modes, and explain."""
    console.note("Firstword: speech that starts while the text is still being written.")
    script = Script(
        text=DEMO_TEXT, tokens_per_second=options.tokens_per_second, voice=options.voice
    )

    def tell(service: str, what: str) -> None:
        console.note(f"  {service:<12} {what}")

    return _run(script, ["stream", "batch"], options, console, environ, tell)


def _run(
    script: Script,
    modes: Sequence[str],
    options: argparse.Namespace,
    console: Console,
    environ: Mapping[str, str],
    tell: Tell,
) -> int:
    if runfile.resolve_url(environ) is None:
        stack.fetch_assets(console, environ)

    async def command() -> int:
        async with _deployment(environ, tell) as url, Firstword(url) as firstword:
            await stack.require_services(firstword)
            return await _show(firstword, script, modes, options, console)

    return loop.run(command())


@contextlib.asynccontextmanager
async def _deployment(environ: Mapping[str, str], tell: Tell) -> AsyncIterator[str]:
    """The URL of the Firstword that runs, else of one of our own for the length of the block.

    Its logs go with it, unless a service failed: then they are kept, and the error names them.
    """
    if url := runfile.resolve_url(environ):
        yield url
        return
    log_dir = Path(tempfile.mkdtemp(prefix="firstword-logs-"))
    try:
        async with stack.running(environ, log_dir=log_dir, tell=tell) as url:
            yield url
    except ServiceFailed:
        raise
    except BaseException:
        shutil.rmtree(log_dir, ignore_errors=True)
        raise
    shutil.rmtree(log_dir, ignore_errors=True)


async def _show(
    firstword: Firstword,
    script: Script,
    modes: Sequence[str],
    options: argparse.Namespace,
    console: Console,
) -> int:
    """Speak in each mode; what is written and played is the streamed one where there are two."""
    tell = console.note if options.out == "-" else console.say
    performances: list[Performance] = []
    for mode in modes:
        now = dataclasses.replace(script, mode=mode)
        console.status(f"speaking ({mode}) ...")
        if mode == "batch" and len(modes) > 1:
            performance = await perform(firstword, now, [])
        else:
            performance = await _audible(firstword, now, options, console)
        performances.append(performance)
        if not options.json:
            tell(report.one(performance, width=console.width, ascii_only=console.ascii_only) + "\n")
    if options.json:
        console.say(report.as_json(performances, options.out))
    elif len(performances) > 1:
        tell(report.comparison(performances))
    if options.out != "-":
        console.note(f"The audio is in {options.out}.")
    spoken = all(p.reason == "complete" and not p.errors and p.waterfall.rows for p in performances)
    return 0 if spoken else 1


async def _audible(
    firstword: Firstword, script: Script, options: argparse.Namespace, console: Console
) -> Performance:
    file = RawOutput(console.binary) if options.out == "-" else WavFile(Path(options.out))
    player = _player(options, console)
    sinks: list[Sink] = [file] if player is None else [file, player]
    try:
        performance = await perform(firstword, script, sinks)
    except BaseException:
        if player is not None:
            await player.stop()
        raise
    finally:
        file.close()
    if player is not None:
        await player.finish(Path(options.out))
        if player.problem is not None:
            console.note(f"Could not play it ({player.problem}).")
    return performance


def _player(options: argparse.Namespace, console: Console) -> Player | None:
    """The player to use: by default only where a person is there to listen."""
    wanted = console.interactive if options.play is None else options.play
    if not wanted or options.out == "-":
        return None
    name = find_player()
    if name is None and options.play:
        console.note("No audio player found (paplay, aplay, ffplay, pw-play, afplay): not played.")
    return None if name is None else Player(name)
