"""A service's look at its Redis server when it starts: what may cost sessions is logged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from firstword import server_check, server_errors, telemetry
from firstword.errors import FirstwordError
from firstword.streams import Streams, pause

T = TypeVar("T")


async def check_server(streams: Streams, stop: asyncio.Event) -> None:
    """Look once, when it answers, at what the server is, and log what may cost sessions.

    Returns early when `stop` is set. Raises FirstwordError for a server that cannot do, or that
    will not have us.
    """
    facts = await when_it_answers(streams.server_facts, stop)
    if facts is None:
        return
    telemetry.server_evicts.set(server_check.may_evict(facts))
    found = server_check.findings(facts)
    for finding in found:
        if finding.level == "fatal":
            raise FirstwordError(finding.name, f"{finding.message}: {finding.remedy}")
    for finding in found:
        log = telemetry.logger().warning if finding.level == "warning" else telemetry.logger().info
        if finding.level != "ok":
            log(finding.name, found=finding.message, remedy=finding.remedy)


async def when_it_answers(attempt: Callable[[], Awaitable[T]], stop: asyncio.Event) -> T | None:
    """What `attempt`, which may be repeated, returns: a server that is away or full is waited for,
    and None returned when `stop` is set first. Raises FirstwordError for what no waiting cures."""
    failures = 0
    while not stop.is_set():
        try:
            return await attempt()
        except FirstwordError:
            raise
        except Exception as error:  # whatever else the client raises, the server is only away
            reason = server_errors.final(error)
            if reason is not None and not reason.retryable:
                raise reason from error
            failures += 1
            telemetry.logger().warning("server_unknown", error=type(error).__name__)
            await pause(failures)
    return None
