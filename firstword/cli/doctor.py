"""`firstword doctor`: looks at the Redis server and at the synthesis backend, thing by thing."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, get_args

from firstword import keys, runfile, server_check
from firstword.cli import loop, stack
from firstword.cli.asked import asked
from firstword.cli.console import Console
from firstword.errors import FirstwordError
from firstword.server_check import Facts, Finding, Level, refuses_writes
from firstword.server_errors import final, insist, without_password
from firstword.streams import Streams

PARTITIONS_VARIABLE = "FIRSTWORD_PARTITIONS"
_PROGRAM = "services.tts_gateway.doctor"
_SHOWN: Mapping[Level, str] = {"ok": "ok", "note": "warn", "warning": "warn", "fatal": "FAIL"}
_FAR_MS = 5.0
"""A server that takes longer to answer costs every sentence several times that."""


def add_options(sub: argparse.ArgumentParser) -> None:
    """What can be typed after `doctor`."""
    sub.add_argument("--redis", metavar="URL", help="default: the server that other commands use")
    sub.add_argument(
        "--upstream",
        metavar="URL",
        help=f"synthesis backend (default: {stack.UPSTREAM_VARIABLE}, else that of the "
        "`firstword up` here, else port 8080 here)",
    )
    sub.add_argument("--voice", default="", help="a voice that the backend has (default: its own)")
    sub.add_argument("--only", choices=("redis", "upstream"), help="look at one of the two")
    sub.add_argument("--json", action="store_true", help="one JSON object a finding")


def run(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Status 0 only if nothing is FAIL."""
    looks: list[AsyncIterator[Finding]] = []
    if options.only != "upstream":
        server = options.redis or runfile.resolve_url(environ)
        looks.append(look_at_redis(server, environ.get(PARTITIONS_VARIABLE)))
    if options.only != "redis":
        url = stack.backend(options.upstream, environ)
        looks.append(look_at_upstream(url, options.voice, environ))

    async def look() -> int:
        failed = False
        for findings in looks:
            async for finding in findings:
                failed = failed or finding.level == "fatal"
                console.say(json.dumps(asdict(finding)) if options.json else in_words(finding))
        return int(failed)

    return loop.run(look())


def in_words(finding: Finding) -> str:
    """One or two lines for people."""
    line = f"{_SHOWN[finding.level]:<4}  {finding.name:<20}  {finding.message}"
    return f"{line}\n{'':28}→ {finding.remedy}" if finding.remedy else line


# -- the Redis server -----------------------------------------------------------------------------


async def look_at_redis(url: str | None, partitions: str | None) -> AsyncIterator[Finding]:
    """Reachable, near, new enough, set up right, and of one mind about `partitions`, where set."""
    if url is None:
        told = "there is no Redis server to use"
        remedy = f"start one with `firstword up`, give --redis or set {runfile.URL_VARIABLE}"
        yield Finding("redis_reachable", "fatal", told, remedy)
        return
    try:
        streams = Streams(url)
    except ValueError as error:
        yield Finding("redis_reachable", "fatal", str(error), "give a redis:// or rediss:// URL")
        return
    name = "redis_reachable"
    try:
        yield await _reach(streams, url)
        name = "redis_answers"
        facts = await insist(streams.server_facts, url)
        for finding in server_check.findings(facts):
            yield strictly(finding, facts)
        yield await _takes_writes(streams)
        recorded = await insist(streams.partitions, url)
        running = await insist(lambda: streams.workers("segmenter"), url)
        yield partitions_agree(recorded, partitions, running)
    except FirstwordError as error:
        if error.code == "partitions_differ":
            yield Finding("partitions", "fatal", error.message)
        else:
            yield Finding(name, "fatal", error.message, "see that it runs and lets us in")
    finally:
        await streams.close()


async def _reach(streams: Streams, url: str) -> Finding:
    await insist(streams.commands.ping, url)
    clock = asyncio.get_running_loop().time
    took: list[float] = []
    for _ in range(15):
        began = clock()
        await insist(streams.commands.ping, url)
        took.append(clock() - began)
    median_ms = statistics.median(took) * 1000
    told = f"{without_password(url)} answers in {median_ms:.1f} ms"
    if median_ms > _FAR_MS:
        remedy = "run the services near their server: a first word crosses this way several times"
        return Finding("redis_reachable", "warning", told, remedy)
    return Finding("redis_reachable", "ok", told)


async def _takes_writes(streams: Streams) -> Finding:
    """A server that only reads answers everything else here as if all were well."""
    name = "takes_writes"
    try:
        await streams.try_writing()
    except Exception as error:  # a cluster client raises more kinds than redis-py's own
        told = final(error)
        if told is not None:
            return Finding(name, "warning", told.message, "look with the user that services have")
        remedy = (
            "MISCONF: make room on its disk, its own log says what failed; NOREPLICAS: start its "
            "replicas; a replica: give the address of its primary"
        )
        return Finding(name, "fatal", f"the server takes nothing now: {error}", remedy)
    return Finding(name, "ok", "what is written is taken")


def strictly(finding: Finding, servers: Sequence[Facts]) -> Finding:
    """A policy that deletes sessions which are being spoken fails. Services only warn of it: they
    must not stay away because of a setting. One that deletes by expiry may be the only one to have.
    A server that takes no text fails, too, though services can start on it, and must.
    """
    if finding.name == "memory_limit" and any(map(refuses_writes, (f.info for f in servers))):
        return replace(finding, level="fatal")
    policies = [facts.info.get("maxmemory_policy") or "" for facts in servers]
    if finding.name == "eviction_policy" and any(p.startswith("allkeys-") for p in policies):
        return replace(finding, level="fatal")
    return finding


def partitions_agree(recorded: int | None, wanted: str | None, running: int) -> Finding:
    """Whether the partitions that services are set to are those of the deployment, in which so many
    segmenters are running."""
    name = "partitions"
    if recorded is None and running:
        told = f"not recorded, though segmenters run ({running}): the server has lost its data"
        remedy = "look again: they record it within 2 s. If they do not, start one of them again"
        return Finding(name, "warning", told, remedy)
    if recorded is None:
        told = "not recorded, and no segmenter runs: the first that starts does it"
        return Finding(name, "ok", told)
    if wanted and wanted != str(recorded):
        told = f"the deployment has {recorded}, and {PARTITIONS_VARIABLE}={wanted} is set here"
        remedy = (
            f"set {PARTITIONS_VARIABLE}={recorded}, or stop every service, let the streams run "
            f"empty and delete {keys.CONFIG}"
        )
        return Finding(name, "fatal", told, remedy)
    return Finding(name, "ok", str(recorded))


# -- the synthesis backend ------------------------------------------------------------------------


async def look_at_upstream(
    url: str | None, voice: str, environ: Mapping[str, str]
) -> AsyncIterator[Finding]:
    """What `services.tts_gateway.doctor` finds: the library imports no service, so it is asked."""
    options = {"voice": voice, "upstream": url}
    async with asked(_PROGRAM, options, environ) as program:
        found = 0
        async for line in program.lines:
            if (finding := read_finding(line)) is not None:
                found += 1
                yield finding
        if await program.status() == 2 or not found:
            yield _unlooked(await program.complaint())


def read_finding(line: bytes) -> Finding | None:
    """A line of the program's; None for what is no finding."""
    try:
        fields: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict) or fields.get("level") not in get_args(Level):
        return None
    texts = [str(fields.get(name, "")) for name in ("name", "message", "remedy")]
    return Finding(texts[0], fields["level"], texts[1], texts[2])


def _unlooked(complaint: str) -> Finding:
    """The program ended without a word: wrong settings, or it is not installed."""
    remedy = "put that setting right"
    if complaint.startswith("ModuleNotFoundError"):
        remedy = "pip install 'firstword[gateway]'"
    return Finding("upstream_settings", "fatal", complaint or "no reason", remedy)
