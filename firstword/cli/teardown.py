"""`firstword teardown`: takes a deployment on AWS away, and tells what still costs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from firstword import teardown
from firstword.cli.console import Console
from firstword.teardown import KEPT, Client, Deployment, Thing


def add_options(sub: argparse.ArgumentParser) -> None:
    """What can be typed after `teardown`."""
    sub.add_argument(
        "--name", type=_name, default="firstword", help="of the deployment (default: %(default)s)"
    )
    sub.add_argument("--region", default="", metavar="R", help="default: as AWS's tools find it")
    how = sub.add_mutually_exclusive_group()
    how.add_argument(
        "--plan", action="store_true", help="only tell what would be taken away (the default)"
    )
    how.add_argument("--yes", action="store_true", help="take it away")
    sub.add_argument(
        "--also",
        type=_kept,
        default=(),
        metavar="WHAT",
        help=f"of what stays: {', '.join(KEPT)}, several with commas between, or all",
    )


def run(options: argparse.Namespace, console: Console, _environ: Mapping[str, str], /) -> int:
    """Status 0 if all that was asked for is gone, or was told."""
    return take_away(options, console, teardown.clients(options.region))


def take_away(options: argparse.Namespace, console: Console, client: Client) -> int:
    """Look, tell and, with `--yes`, do it. Raises FirstwordError where AWS refuses."""
    try:
        return _take_away(options, console, Deployment(options.name, client))
    except Exception as error:
        told = teardown.in_words(error)
        if told is None:
            raise
        raise told from error


def _take_away(options: argparse.Namespace, console: Console, found: Deployment) -> int:
    going = found.running()
    _go(console, going, options.yes)
    staying = found.staying()
    removed = [thing for word in options.also for thing in staying[word]]
    _go(console, removed, options.yes)
    left = [thing for word in KEPT if word not in options.also for thing in staying[word]]
    base = [] if left else found.base()
    _go(console, base, options.yes)
    if not going and not removed and not base:
        console.say(f"nothing of {options.name} runs")
    if left:
        console.say("stays, and still costs:")
        for thing in left:
            console.say(f"  {_line(thing)}")
        console.say(
            f"take it away with --also {','.join(w for w in KEPT if _any(w, staying, left))}"
        )
    if not options.yes and (going or removed or base):
        console.note("nothing was taken away: --yes does it")
    return 0


def _any(word: str, staying: Mapping[str, Sequence[Thing]], left: Sequence[Thing]) -> bool:
    return any(thing in left for thing in staying[word])


def _go(console: Console, things: Sequence[Thing], really: bool) -> None:
    """One after the other: each is gone before the next one goes."""
    for thing in things:
        if really:
            console.status(f"taking away {thing.kind} {thing.name}")
            thing.remove()
        console.say(f"{'gone' if really else 'goes'}: {_line(thing)}")


def _line(thing: Thing) -> str:
    detail = f" ({thing.detail})" if thing.detail else ""
    costs = f"; costs {thing.costs}" if thing.costs else ""
    return f"{thing.kind} {thing.name}{detail}{costs}"


def _name(name: str) -> str:
    try:
        teardown.check_name(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{name!r}: {error}") from None
    return name


def _kept(words: str) -> Sequence[str]:
    try:
        return teardown.chosen(words)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{words!r}: {error}") from None
