"""The command line: what can be typed, and what an error looks like."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from firstword.cli import (
    bench,
    capacity,
    dead,
    doctor,
    emulate,
    follow,
    output,
    redis_command,
    speak,
    stack,
    teardown,
    token,
    up,
    voices,
)
from firstword.cli.console import Console
from firstword.cli.loop import INTERRUPTED
from firstword.embedded import DEFAULT_PORT
from firstword.errors import FirstwordError

N = TypeVar("N", int, float)
_WRONG_USAGE = 2
Command = Callable[[argparse.Namespace, Console, Mapping[str, str]], int]

_EPILOG = """\
Commands that need a server use FIRSTWORD_REDIS_URL, else the `firstword up` that runs here.
Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted. Settings: docs/CLI.md."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status. Errors that can be expected are one line."""
    console = Console()
    options = parser().parse_args(argv)
    command: Command = options.run
    try:
        return command(options, console, os.environ)
    except FirstwordError as error:
        console.note(f"firstword: {error.message}")
        return _WRONG_USAGE if error.code == "bad_settings" else 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return output.failed(error, console.note)


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    top = argparse.ArgumentParser(
        prog="firstword",
        description="Speech that starts while the language model is still writing.",
        epilog=_EPILOG,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=30
        ),
    )
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, run: Command, about: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        sub.set_defaults(run=run)
        return sub

    _add_up(add("up", up.run, "run a server and the four services here until Ctrl-C"))
    _add_demo(add("demo", speak.run_demo, "hear what it is about; starts all it needs"))
    _add_say(add("say", speak.run_say, "speak a text at a language model's pace, and time it"))
    _add_publish(add("publish", follow.run_publish, "speak standard input while it comes"))
    _add_listen(add("listen", follow.run_listen, "follow a session's events and audio"))
    _add_partition(add("partition", follow.run_partition, "tell a session's ingress partition"))
    redis = add("redis", redis_command.run, "send any command to the Redis server in use")
    redis.add_argument("name", metavar="COMMAND", help="for example XLEN")
    redis.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="its own")
    dead.add_commands(
        commands.add_parser(
            "dead",
            help="look at entries that nobody could use, and replay them",
            description="Look at entries that nobody could use, and replay them.",
        )
    )
    doctor.add_options(add("doctor", doctor.run, "look at the Redis server and the backend"))
    _add_voices(add("voices", voices.run_list, "list the voices; `voices fetch` installs them"))
    segment = add("segment", _segment, "cut standard input into segments, without a server")
    segment.add_argument("--lang", default="auto", help="language of the text (default: by script)")
    segment.add_argument("--mode", choices=("safe", "eager"), default="safe")
    segment.add_argument("--json", action="store_true", help="one JSON object a segment")
    about = "stand in for SageMaker's bidirectional streams before a container of yours"
    emulate.add_options(add("emulate-sagemaker", emulate.run, about), _positive)
    about = "measure an inference container from outside"
    what = commands.add_parser("bench", help=about, description=f"{about.capitalize()}.")
    bench.add_commands(what, _count)
    about = "measure what a backend carries, and plan its instances"
    capacity.add_options(add("capacity", capacity.run, about), _positive, _count)
    sub = add("token", token.run, "make a token for the agent's doors")
    sub.add_argument("name", metavar="NAME", help="who will use it")
    about = "take a deployment on AWS away, and tell what still costs"
    teardown.add_options(add("teardown", teardown.run, about))
    add("version", _tell_version, "tell the version")
    return top


def _add_up(sub: argparse.ArgumentParser) -> None:
    _add_upstream(sub)
    sub.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        help="port of the embedded Redis-compatible server, if it is free (default: %(default)s)",
    )
    sub.add_argument(
        "--agent-port",
        type=_port,
        help="port of the agent and its page, if it is free (default: FIRSTWORD_AGENT_PORT, "
        "else 8000)",
    )
    sub.add_argument(
        "--log-dir",
        type=Path,
        help="folder for the services' logs (default: firstword/logs in $XDG_STATE_HOME or "
        "~/.local/state)",
    )


def _add_upstream(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--upstream",
        choices=stack.UPSTREAMS,
        default=stack.UPSTREAMS[0],
        help="how gateway and container are joined: straight (default), or as behind a SageMaker "
        "endpoint, by AWS's own client and `emulate-sagemaker`",
    )


def _add_demo(sub: argparse.ArgumentParser) -> None:
    _add_upstream(sub)
    sub.add_argument("--voice", help="voice to speak with")
    sub.add_argument("--out", default="demo.wav", metavar="FILE", help="default: %(default)s")
    _add_pace(sub, default=12.0)
    _add_play(sub)
    sub.set_defaults(json=False, compare=False, trials=1, passage=None)


def _add_say(sub: argparse.ArgumentParser) -> None:
    sub.set_defaults(upstream=stack.UPSTREAMS[0])
    what = sub.add_mutually_exclusive_group(required=True)
    about = "what to say; - reads standard input"
    what.add_argument("text", nargs="?", metavar="TEXT", help=about)
    about = "say a text of ours instead, of four sentences or of ten"
    what.add_argument("--passage", choices=tuple(speak.PASSAGES), help=about)
    sub.add_argument("--voice", help="a voice of `firstword voices`")
    sub.add_argument("--speed", type=_speed, help="1 is normal, 0.5 to 2")
    sub.add_argument("--lang", help="language of the text, for example en-us")
    sub.add_argument(
        "--out",
        default="say.wav",
        metavar="FILE",
        help="WAV file to write (default: %(default)s); - writes raw s16le to standard output",
    )
    _add_pace(sub, default=12.0)
    how = sub.add_mutually_exclusive_group()
    how.add_argument(
        "--mode",
        choices=("stream", "batch"),
        default="stream",
        help="stream: publish each token as it comes (default); batch: wait for the whole text",
    )
    how.add_argument("--compare", action="store_true", help="batch, then stream, and the ratio")
    about = "speak so often in each mode, and tell mean, p50 and p95 (default: %(default)s)"
    sub.add_argument("--trials", type=_count, default=1, metavar="N", help=about)
    sub.add_argument("--json", action="store_true", help="all figures as one JSON document")
    sub.add_argument(
        "--timeout",
        type=_positive,
        default=120.0,
        metavar="S",
        help="give up after that many seconds in which nothing was heard (default: 120)",
    )
    _add_play(sub)


def _add_pace(sub: argparse.ArgumentParser, default: float) -> None:
    sub.add_argument(
        "--tokens-per-second",
        type=_not_negative,
        default=default,
        metavar="N",
        help="pace of the text; 0 is as fast as possible (default: %(default)g)",
    )


def _add_play(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--play",
        action=argparse.BooleanOptionalAction,
        help="play the audio (default: if standard output is a terminal and a player is found)",
    )


def _add_publish(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("session", metavar="SESSION")
    sub.add_argument("--turn", help="name of the turn (default: a new one, which is printed)")


def _add_listen(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("session", metavar="SESSION")
    sub.add_argument(
        "--out", metavar="FILE", help="WAV file to write; - writes raw s16le to standard output"
    )
    sub.add_argument("--json", action="store_true", help="one JSON object an event")
    sub.add_argument(
        "--from", dest="from_id", metavar="ID", help="begin after this event; 0 is the oldest kept"
    )
    sub.add_argument("--turns", type=_count, metavar="N", help="end after N turns")


def _add_partition(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("session", metavar="SESSION")
    sub.add_argument(
        "--partitions", type=_count, metavar="P", help="count with P (default: the deployment's)"
    )


def _add_voices(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", action="store_true", help="as JSON")
    fetch = sub.add_subparsers(metavar="[fetch]").add_parser(
        "fetch",
        help="get the weights and voices once",
        description="Get the weights and the default voice, or all voices, into the user's cache.",
    )
    fetch.add_argument("--all", action="store_true", help="every voice of the model")
    fetch.add_argument(
        "--from", dest="folder", type=Path, metavar="FOLDER", help="look in this folder first"
    )
    fetch.set_defaults(run=voices.run_fetch)


def _segment(options: argparse.Namespace, _console: Console, _environ: Mapping[str, str]) -> int:
    """Becomes the segmenter's own program: the library imports no service."""
    command = [sys.executable, "-P", "-m", "services.segmenter.stdin", "--lang", options.lang]
    command += ["--mode", options.mode, *["--json"] * options.json]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606


def _tell_version(_options: argparse.Namespace, console: Console, _: Mapping[str, str]) -> int:
    console.say(_version())
    return 0


def _version() -> str:
    return f"firstword {metadata.version('firstword')}"


def _port(text: str) -> int:
    return _number(text, int, 1, 65_535, "a port is a number from 1 to 65535")


def _count(text: str) -> int:
    return _number(text, int, 1, 1_000_000, "must be a whole number of at least 1")


def _positive(text: str) -> float:
    return _number(text, float, 1e-6, 1e6, "must be a number greater than 0")


def _speed(text: str) -> float:
    return _number(text, float, 0.5, 2.0, "must be a number from 0.5 to 2")


def _not_negative(text: str) -> float:
    return _number(text, float, 0.0, 1e6, "must be a number of at least 0")


def _number(text: str, kind: type[N], low: N, high: N, rule: str) -> N:
    with contextlib.suppress(ValueError):
        value = kind(text)
        if low <= value <= high:
            return value
    raise argparse.ArgumentTypeError(f"{text!r}: {rule}")
