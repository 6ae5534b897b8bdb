"""Keeps the ECS task that this process runs in from being scaled in while it has work.

ECS gives every task an agent (`ECS_AGENT_URI`). A protected task is left alone by autoscaling and
by deployments; a stop by hand, or of the machine below it, is not prevented. The protection ends
by itself after `MINUTES`, so that a process that hangs is not kept for good, and is renewed well
before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import aiohttp

from firstword import telemetry

MINUTES = 35
RENEW_S = 600.0
LOOK_S = 2.0
RETRY_S = 20.0
TIMEOUT = aiohttp.ClientTimeout(total=5)


class TaskProtection:
    """`agent` is ECS_AGENT_URI. Nothing here ever fails the service: what goes wrong is logged."""

    def __init__(
        self,
        agent: str,
        *,
        renew_s: float = RENEW_S,
        look_s: float = LOOK_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._url = f"{agent.rstrip('/')}/task-protection/v1/state"
        self._renew_s = renew_s
        self._look_s = look_s
        self._retry_s = retry_s
        self._protected = False
        self._next = 0.0
        self._told = ""

    async def run(self, busy: Callable[[], bool]) -> None:
        """Until cancelled: protected while `busy()`, given up as soon as it is not."""
        async with aiohttp.ClientSession(timeout=TIMEOUT) as http:
            while True:
                wanted = busy()
                if (wanted or self._protected) and self._is_time(wanted):
                    await self._set(http, wanted)
                await asyncio.sleep(self._look_s)

    def _is_time(self, wanted: bool) -> bool:
        """At once when it changes, and when the last one grows old or has failed."""
        changed = wanted != self._protected and not self._told
        return changed or time.monotonic() >= self._next

    async def _set(self, http: aiohttp.ClientSession, wanted: bool) -> None:
        body: dict[str, bool | int] = {"ProtectionEnabled": wanted}
        if wanted:
            body["ExpiresInMinutes"] = MINUTES
        problem = await self._ask(http, body)
        if not problem:
            self._protected = wanted
        self._next = time.monotonic() + (self._retry_s if problem else self._renew_s)
        if problem and problem != self._told:
            telemetry.logger().warning("task_protection_failed", wanted=wanted, error=problem)
        self._told = problem

    async def _ask(self, http: aiohttp.ClientSession, body: dict[str, bool | int]) -> str:
        """What went wrong, as a name; empty when it is as asked."""
        try:
            async with http.put(self._url, json=body) as response:
                told = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return type(error).__name__
        return _refusal(told)


def _refusal(told: object) -> str:
    """ECS refuses with status 200, too: for example while a deployment is stuck."""
    match told:
        case {"protection": {"ProtectionEnabled": bool()}}:
            return ""
        case {"failure": {"Reason": str(reason)}} | {"error": {"Code": str(reason)}}:
            return reason
    return "bad_answer"
