"""`firstword bench tts`: how early, to how many callers and how large a container speaks."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from firstword.bench.passages import CLIPS
from firstword.bench.results import Results
from firstword.cli import loop, preflight, stack
from firstword.cli.console import Console
from firstword.errors import FirstwordError

EXPERIMENTS = ("first-audio", "ladder", "codecs")
FULL: Mapping[str, Any] = {
    "trials": 5,
    "callers": [1, 5, 10, 20, 50],
    "turns": 2,
    "clips": len(CLIPS),
}
QUICK: Mapping[str, Any] = {"trials": 2, "callers": [1, 4], "turns": 1, "clips": 4}

Number = Callable[[str], int]


def add_commands(sub: argparse.ArgumentParser, number: Number) -> None:
    """`tts` and its options. `number` reads and checks a whole number of at least 1."""
    kinds = sub.add_subparsers(metavar="WHAT", required=True)
    about = "measure first audio, behaviour under load and formats of an inference container"
    tts = kinds.add_parser("tts", help=about, description=f"{about.capitalize()}.")
    tts.set_defaults(run=run)
    tts.add_argument(
        "--url", help="ws://host:port of the container (default: one is started here, and stopped)"
    )
    tts.add_argument("--only", choices=EXPERIMENTS, help="one of the three experiments")
    tts.add_argument(
        "--quick", action="store_true", help="small sizes: about two minutes on two cores"
    )
    tts.add_argument("--trials", type=number, metavar="N", help="of first audio (default: 5)")
    tts.add_argument(
        "--callers",
        type=lambda text: [number(each) for each in text.split(",")],
        metavar="N,N",
        help="steps of the ladder (default: 1,5,10,20,50)",
    )
    tts.add_argument(
        "--turns", type=number, metavar="N", help="of each caller on a step (default: 2)"
    )
    tts.add_argument("--clips", type=number, metavar="N", help="for the formats (default: 24)")
    tts.add_argument("--voice", help="a voice that the container has (default: its own)")
    tts.add_argument(
        "--out",
        type=Path,
        default=Path("bench-tts"),
        metavar="FOLDER",
        help="where tts.json and tts.png go (default: %(default)s)",
    )
    tts.add_argument("--json", action="store_true", help="JSON on standard output, no tables")


def run(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Measure, tell, and write both files."""
    for package in ("aiohttp", "av", "numpy"):
        if find_spec(package) is None:
            told = f"measuring needs {package}: pip install 'firstword[bench]'"
            raise FirstwordError("missing_package", told)
    sizes = {
        name: getattr(options, name) or default
        for name, default in (QUICK if options.quick else FULL).items()
    }
    sizes["clips"] = min(sizes["clips"], len(CLIPS))
    options.out.mkdir(parents=True, exist_ok=True)  # before an hour's work, not after
    if options.url is None:
        preflight.check(environ, console)
        stack.fetch_assets(console, environ)

    async def command() -> int:
        results: Results | None = None
        try:
            async with _container(options.url, environ, console) as url:
                async for so_far in measure(url, options, sizes, console):
                    results = so_far
        finally:
            if results is not None:  # also what was measured before something failed
                _write(results, options, console)
        return 0

    return loop.run(command())


async def measure(
    url: str, options: argparse.Namespace, sizes: Mapping[str, Any], console: Console
) -> AsyncIterator[Results]:
    """What was asked for, one after the other, of the container at `url`: all so far, each time."""
    from firstword.bench import experiments

    voice, tell = options.voice, console.status
    wanted = [options.only] if options.only else EXPERIMENTS
    results = Results(
        {
            "url": options.url or "a container started here",
            "voice": voice,
            "client": f"{os.cpu_count()} cores, {platform.system()}, "
            f"Python {platform.python_version()}",
            **sizes,
        }
    )
    if "first-audio" in wanted:
        first_audio = await experiments.first_audio(url, voice, sizes["trials"], tell)
        yield (results := replace(results, first_audio=first_audio))
    if "ladder" in wanted:
        async for rung in experiments.ladder(url, voice, sizes["callers"], sizes["turns"], tell):
            yield (results := replace(results, ladder=[*results.ladder, rung]))
    if "codecs" in wanted:
        made = await experiments.codecs(url, voice, sizes["clips"], tell)
        yield replace(results, codecs=made, clips=sizes["clips"])


@asynccontextmanager
async def _container(
    url: str | None, environ: Mapping[str, str], console: Console
) -> AsyncIterator[str]:
    """The one that is named, else one of our own for the length of the block."""
    if url is not None:
        yield url
        return

    def tell(service: str, what: str) -> None:
        console.status(f"{service}: {what}")

    async with stack.inference(environ, tell=tell) as own:
        yield own


def _write(results: Results, options: argparse.Namespace, console: Console) -> None:
    from firstword.bench import picture

    data = json.dumps(results.data(), indent=1, ensure_ascii=False)
    file = options.out / "tts.json"
    file.write_text(data + "\n", encoding="utf-8")
    console.say(data if options.json else results.text())
    if picture.can_draw():
        drawn = options.out / "tts.png"
        picture.draw(results, drawn)
        console.note(f"The figures are in {file}, the picture in {drawn}.")
    else:
        console.note(f"The figures are in {file}; {picture.MISSING}.")
