"""`firstword voices`: what voices there are, and `voices fetch` to have them here."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

from firstword import assets
from firstword.cli import stack
from firstword.cli.console import Console
from firstword.languages import why_silent


def run_list(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """One voice a line."""
    found = assets.voices(environ)
    if options.json:
        rows = [
            {
                "name": v.name,
                "language": v.language,
                "gender": v.gender,
                "installed": v.installed,
                "speaks": why_silent(v.language) is None,
                "needs": why_silent(v.language),
            }
            for v in found
        ]
        console.say(json.dumps(rows, indent=1))
        return 0
    for voice in found:
        mark = "installed" if voice.installed else "-"
        default = "  (default)" if voice.name == assets.DEFAULT_VOICE else ""
        needs = why_silent(voice.language)
        silent = "" if needs is None else f"  (cannot speak here: {needs})"
        line = f"{voice.name:<14} {voice.language:<6} {voice.gender:<7} {mark}{default}{silent}"
        console.say(line)
    if not all(voice.installed for voice in found):
        console.note("`firstword voices fetch --all` installs the rest.")
    return 0


def run_fetch(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Weights and voices into the cache; nothing is fetched twice."""
    found = stack.fetch(environ, console, all_voices=options.all, folder=options.folder)
    count = len(found.installed_voices())
    console.say(f"The weights and {count} voices are in {found.folder}.")
    return 0
