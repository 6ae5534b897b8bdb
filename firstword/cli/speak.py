"""`firstword say` and `firstword demo`: a text at a language model's pace, heard and explained."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from firstword import runfile
from firstword.bench.passages import PASSAGE, STORY, WARM_UP
from firstword.cli import loop, preflight, report, stack
from firstword.cli.console import Console
from firstword.cli.performance import Performance, Script, perform, record
from firstword.cli.sinks import Player, RawOutput, WavFile, find_player
from firstword.client import Firstword
from firstword.errors import FirstwordError
from firstword.server_errors import without_password
from firstword.supervisor import Tell

DEMO_TEXT = (
    "This sentence is spoken while the next one is still being written. "
    "A language model takes its time, and nobody likes to wait for the end of a paragraph. "
    "So every sentence leaves as soon as it is certain."
)
PASSAGES = {"short": " ".join(PASSAGE), "long": " ".join(STORY)}
_GOALS = {"short": 2.4, "long": 5.0}


def run_say(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Speak TEXT or a passage. Status 1 when not all of it was spoken."""
    script = Script(
        text=_text(options),
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


def _text(options: argparse.Namespace) -> str:
    if options.passage is not None:
        return PASSAGES[options.passage]
    return sys.stdin.read() if options.text == "-" else str(options.text)


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
    player = _player(options, console)
    # Before anything is started: a file that cannot be written is told at once.
    file = RawOutput(console.binary) if options.out == "-" else WavFile(Path(options.out))
    show = _Show(options, console, file, player)
    try:
        if options.upstream == stack.UPSTREAMS[0]:
            found = runfile.resolve_url(environ)
        else:  # one that runs here may be joined otherwise
            found, environ = None, {**environ, runfile.URL_VARIABLE: ""}
        if found is None:
            preflight.check(environ, console)
            stack.fetch_assets(console, environ)

        async def command() -> int:
            async with (
                _deployment(found, options.upstream, environ, tell, console) as url,
                Firstword(url) as firstword,
            ):
                await stack.require_services(firstword)
                return await show.run(firstword, script, modes, without_password(url))

        return loop.run(command())
    finally:
        file.close()


def _player(options: argparse.Namespace, console: Console) -> str | None:
    """The player to use: by default only where a person is there to listen."""
    wanted = console.interactive if options.play is None else options.play
    if not wanted or options.out == "-":
        return None
    name = find_player()
    if name is None and options.play:
        console.note("No audio player found (paplay, aplay, ffplay, pw-play, afplay): not played.")
    return name


@contextlib.asynccontextmanager
async def _deployment(
    found: str | None, upstream: str, environ: Mapping[str, str], tell: Tell, console: Console
) -> AsyncIterator[str]:
    """The URL of the Firstword that was found, else of one of our own for the length of the block.

    Its logs go with it, unless something failed: then they are kept, and named.
    """
    if found is not None:
        yield found
        return
    log_dir = Path(tempfile.mkdtemp(prefix="firstword-logs-"))
    keep = False
    try:
        async with stack.running(environ, log_dir=log_dir, tell=tell, upstream=upstream) as url:
            yield url
    except FirstwordError:
        keep = True
        console.note(f"The logs of the services are kept in {log_dir}.")
        raise
    finally:
        if not keep:
            shutil.rmtree(log_dir, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Show:
    """What a person sees and hears of it."""

    options: argparse.Namespace
    console: Console
    file: WavFile | RawOutput
    player: str | None

    async def run(
        self, firstword: Firstword, script: Script, modes: Sequence[str], endpoint: str
    ) -> int:
        """Speak in each mode, as often as there are trials; of the first, the waterfall is shown,
        and its streamed turn, or its only one, is written and played."""
        options = self.options
        if options.compare:
            # One recording for all, and nobody pays for the voice's first sentence.
            self.console.status("the text is being written ...")
            script = dataclasses.replace(script, times_s=await record(script))
            await perform(firstword, dataclasses.replace(script, text=WARM_UP, times_s=None), [])
        performances: list[Performance] = []
        for trial in range(options.trials):
            for mode in modes:
                self.console.status(f"speaking ({mode}, {trial + 1} of {options.trials}) ...")
                now = dataclasses.replace(script, mode=mode)
                if trial or (mode == "batch" and len(modes) > 1):
                    performances.append(await perform(firstword, now, []))
                else:
                    performances.append(await self._audible(firstword, now))
                if not (trial or options.json):
                    self._tell_one(performances[-1])
        self._tell_all(performances, report.Setting(endpoint, _GOALS.get(options.passage)))
        spoken = all(
            p.reason == "complete" and not p.errors and p.waterfall.rows for p in performances
        )
        return 0 if spoken else 1

    async def _audible(self, firstword: Firstword, script: Script) -> Performance:
        if self.player is None:
            performance = await perform(firstword, script, [self.file])
            self.file.close()
            return performance
        player = Player(self.player)
        try:
            performance = await perform(firstword, script, [self.file, player])
            self.file.close()
            await player.finish(Path(self.options.out))
        finally:
            await player.stop()
        if player.problem is not None:
            self.console.note(f"Could not play it ({player.problem}).")
        return performance

    def _tell(self, text: str) -> None:
        """Standard output may be taken by the audio."""
        (self.console.note if self.options.out == "-" else self.console.say)(text)

    def _tell_one(self, performance: Performance) -> None:
        console = self.console
        self._tell(report.one(performance, width=console.width, ascii_only=console.ascii_only))
        self._tell("")

    def _tell_all(self, performances: Sequence[Performance], setting: report.Setting) -> None:
        if self.options.json:
            self._tell(report.as_json(performances, setting, self.options.out))
        elif len(performances) > 1:
            self._tell(report.comparison(performances, setting))
        if self.options.out != "-" and self.file.samples:
            self.console.note(f"The audio is in {self.options.out}.")
