"""`firstword capacity`: what one instance of a backend carries, and how many it takes."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from firstword.capacity import Demand, Plan, plan, refused
from firstword.cli import loop, stack
from firstword.cli.asked import asked
from firstword.cli.console import Console

_PROGRAM = "services.tts_gateway.capacity"


def add_options(
    sub: argparse.ArgumentParser, positive: Callable[[str], float], count: Callable[[str], int]
) -> None:
    """What can be typed after `capacity`."""
    sub.add_argument(
        "--upstream",
        metavar="URL",
        help=f"synthesis backend (default: {stack.UPSTREAM_VARIABLE}, else, without --start, that "
        "of the `firstword up` here, else port 8080 here)",
    )
    sub.add_argument("--voice", default="", help="a voice that the backend has (default: its own)")
    sub.add_argument(
        "--slo",
        type=positive,
        default=0.5,
        metavar="S",
        help="95 of 100 first audios come within so many seconds (default: %(default)g)",
    )
    sub.add_argument(
        "--most-sessions", type=count, default=64, metavar="N", help="try no more (default: 64)"
    )
    sub.add_argument(
        "--step-s", type=positive, default=20.0, metavar="S", help="length of a step (default: 20)"
    )
    sub.add_argument(
        "--q-max",
        type=int,
        metavar="N",
        help="measure nothing: sessions that one instance carries at once are known",
    )
    took = sub.add_mutually_exclusive_group()
    took.add_argument(
        "--total-s",
        type=float,
        metavar="S",
        help="seconds from asking for another instance until it serves",
    )
    took.add_argument(
        "--start", metavar="COMMAND", help="start the backend with it, and measure how long it took"
    )
    sub.add_argument("--peak", type=int, metavar="N", help="sessions open at the busiest moment")
    sub.add_argument(
        "--growth", type=float, metavar="N", help="sessions more in the busiest minute"
    )
    sub.add_argument(
        "--speaking",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="share of open sessions that is spoken to at once (default: 1, all of them)",
    )
    sub.add_argument(
        "--least", type=count, default=1, metavar="N", help="instances that always run (default: 1)"
    )
    sub.add_argument("--json", action="store_true", help="one JSON object a line")


def run(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Status 0 if all that was asked for could be told."""
    _check_together(options)
    if not options.start:  # else what is started is measured, and no other that runs here
        options.upstream = stack.backend(options.upstream, environ)
    return loop.run(_run(options, console, environ))


def _check_together(options: argparse.Namespace) -> None:
    """Refuse, before minutes of measuring, what cannot be planned afterwards."""
    if (options.peak is None) != (options.growth is None):
        raise refused("a plan needs both --peak and --growth")
    if options.peak is None:
        if options.q_max is not None:
            raise refused("with --q-max there is nothing to measure: give --peak and --growth")
        return
    if options.total_s is None and (not options.start or options.q_max is not None):
        raise refused(
            "a plan needs the time until another instance serves: --total-s, or --start to measure "
            "it (docs/DEPLOY.md says how to read an endpoint's)"
        )
    if options.q_max is None:
        plan(1_000_000, options.total_s or 1.0, _demand(options))  # the rest of it, now


def _demand(options: argparse.Namespace) -> Demand:
    return Demand(options.peak, options.growth, options.speaking, options.least)


async def _run(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    q_max, total_s = options.q_max, options.total_s
    if q_max is None:
        async with contextlib.aclosing(measured(options, environ)) as lines:
            async for told in lines:
                if "error" in told:
                    raise refused(told["error"])
                console.say(json.dumps(told) if options.json else in_words(told))
                q_max = told.get("q_max", q_max)
                total_s = told.get("total_s", total_s)
    if options.peak is None:
        return 0 if q_max else 1
    made = plan(q_max, total_s, _demand(options))
    console.say(json.dumps({"plan": _plain(made)}) if options.json else plan_in_words(made))
    return 0


async def measured(
    options: argparse.Namespace, environ: Mapping[str, str]
) -> AsyncGenerator[dict[str, Any], None]:
    """What `services.tts_gateway.capacity` tells: the library imports no service."""
    named = {
        "upstream": options.upstream,
        "voice": options.voice,
        "start": options.start,
        "slo": options.slo,
        "most": options.most_sessions,
        "step": options.step_s,
    }
    async with asked(_PROGRAM, named, environ) as program:
        told_all = False
        async for line in program.lines:
            told = json.loads(line)
            told_all = told_all or "q_max" in told or "error" in told
            yield told
        if not told_all:
            raise refused(await program.complaint() or "the measurement ended without a word")


def in_words(told: Mapping[str, Any]) -> str:
    """A line of the measurement for people."""
    if "total_s" in told:
        return f"T_total: {told['total_s']:g} s from the start to the first words"
    if "q_max" in told:
        more = "" if told["bounded"] else " or more (raise --most-sessions to know)"
        return f"Q_max: {told['q_max']} sessions that speak at once{more}"
    step = told["step"]
    p95 = "   none" if step["p95_s"] is None else f"{step['p95_s']:.3f} s"
    verdict = step["problem"] or "ok"
    return f"{step['sessions']:>4} sessions  {step['turns']:>4} turns  p95 {p95}  {verdict}"


def plan_in_words(made: Plan) -> str:
    """The plan for people, and for `cdk deploy`."""
    context = " ".join(f"-c {name}={value}" for name, value in made.context().items())
    return f"""\
One instance carries {made.per_instance} open sessions.
Add one above {made.scale_out_at:g} an instance (it serves {made.total_s:g} s later), \
take one away below {made.scale_in_at:g}.
Instances: {made.least} to {made.most}; at the peak one may be lost.

{context}"""


def _plain(made: Plan) -> dict[str, Any]:
    return {
        "per_instance": made.per_instance,
        "total_s": made.total_s,
        "context": made.context(),
    }
