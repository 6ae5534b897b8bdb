"""`firstword dead list | show | replay`: what nobody could use, for the operator to judge."""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from firstword import codec, dead
from firstword.cli import loop
from firstword.cli.console import Console
from firstword.client import Firstword
from firstword.dead import DeadLetter
from firstword.errors import DecodeError, FirstwordError
from firstword.ids import id_key
from firstword.server_errors import final, insist, unreachable
from firstword.streams import Streams

MOST = 2000
"""About as many are kept."""


def add_commands(sub: argparse.ArgumentParser) -> None:
    """The three verbs and their options."""
    verbs = sub.add_subparsers(metavar="VERB", required=True)
    about = "list the newest dead letters, without what they say"
    listing = verbs.add_parser("list", help=about, description=f"{about.capitalize()}.")
    listing.add_argument("--limit", type=_limit, default=100, metavar="N", help="default: 100")
    listing.add_argument("--json", action="store_true", help="one JSON object a line")
    listing.set_defaults(run=run_list)
    about = "show one of them whole, as JSON (it may hold what a customer said)"
    showing = verbs.add_parser("show", help=about, description=f"{about.capitalize()}.")
    showing.add_argument("id", metavar="ID")
    showing.set_defaults(run=run_show)
    about = "append it to the stream it came from again, and forget it here"
    replaying = verbs.add_parser("replay", help=about, description=f"{about.capitalize()}.")
    replaying.add_argument("id", metavar="ID")
    replaying.set_defaults(run=run_replay)


def run_list(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """When, why, from where and how large: never what."""

    async def act(streams: Streams) -> None:
        letters = await insist(lambda: dead.read(streams, options.limit), streams.url)
        for letter in letters:
            about = _about(letter)
            console.say(json.dumps(about) if options.json else _line(about))
        if not letters:
            console.note("No dead letters.")

    return _run(act, environ)


def run_show(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """All of one: its fields as they came, and its messages or why there are none."""

    async def act(streams: Streams) -> None:
        letter = await insist(lambda: dead.find(streams, options.id), streams.url)
        whole = _about(letter)
        whole["fields"] = {_text(name): _text(value) for name, value in letter.fields.items()}
        try:
            whole["messages"] = [codec.fields_of(message) for message in letter.messages()]
        except DecodeError as error:
            whole["problem"] = error.message
        console.say(json.dumps(whole, indent=2, default=str))

    return _run(act, environ)


def run_replay(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Prints the new entry's id. Tried once: a lost reply does not tell whether it is there."""

    async def act(streams: Streams) -> None:
        await insist(streams.commands.ping, streams.url)
        try:
            new_id = await dead.replay(streams, options.id)
        except FirstwordError:
            raise
        except Exception as error:
            raise final(error) or unreachable(streams.url, error) from error
        console.say(new_id)

    return _run(act, environ)


def _run(act: Callable[[Streams], Awaitable[None]], environ: Mapping[str, str]) -> int:
    async def connected() -> int:
        async with Firstword(environ=environ) as firstword:
            await act(firstword.streams)
        return 0

    return loop.run(connected())


def _about(letter: DeadLetter) -> dict[str, Any]:
    """All but what it says."""
    when = datetime.fromtimestamp(id_key(letter.id)[0] // 1000, UTC)
    return {
        "id": letter.id,
        "time": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "reason": letter.reason,
        "source": letter.source,
        "entry": letter.entry,
        "bytes": letter.size,
    }


def _line(about: Mapping[str, Any]) -> str:
    return "{id:<16}  {time}  {reason:<13}  {source} {entry}, {bytes} bytes".format_map(about)


def _text(data: bytes) -> str:
    """Bytes as text; what is not UTF-8 escaped."""
    return data.decode("utf-8", "backslashreplace")


def _limit(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= MOST:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}: a number from 1 to {MOST}")
