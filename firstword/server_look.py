"""A service's look at its Redis server when it starts: what may cost sessions is logged."""

from __future__ import annotations

import asyncio

from firstword import server_check, telemetry
from firstword.errors import FirstwordError
from firstword.streams import Streams, pause


async def check_server(streams: Streams, stop: asyncio.Event) -> None:
    """Look once, when it answers, at what the server is, and log what may cost sessions.

    Returns early when `stop` is set. Raises FirstwordError for a server that cannot do.
    """
    failures = 0
    while not stop.is_set():
        try:
            facts = await streams.server_facts()
            break
        except Exception as error:  # whatever the client raises, the server is only away
            failures += 1
            telemetry.logger().warning("server_unknown", error=type(error).__name__)
            await pause(failures)
    else:
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
