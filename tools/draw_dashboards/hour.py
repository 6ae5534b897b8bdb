"""An hour of a deployment in four minutes, and what Prometheus says of it.

Scrapes come once a second instead of every 15 s, and windows are shortened as much: what a panel
shows of the last hour stands in 240 s here. Rates are those of real seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

from firstword import keys
from firstword.client import Firstword
from firstword.errors import FirstwordError
from tests.chaos.deployment import Deployment, Worker
from tests.observability.load import TEXT, callers
from tests.observability.server import Prometheus
from tools.dashboards.build import FOLDER

HOUR_S = 240
QUICKER = 15.0
RATE_INTERVAL = "4s"
"""Grafana's `$__rate_interval` is four scrapes."""
STEP_S = 1


async def watch() -> dict[str, Any]:
    """Run it, break it a little, and ask.

    Returns the answers by expression (`over` the time from `since` to `until`, seconds, and
    `at_end`), each as Prometheus gives it: what the page draws a dashboard from.
    """
    with tempfile.TemporaryDirectory(prefix="firstword-draw-") as kept:
        logs, data = Path(kept) / "logs", Path(kept) / "prometheus"
        logs.mkdir()
        data.mkdir()
        async with Deployment(logs, rtf=0.3, gateway=2) as deployment:
            await deployment.start("agent")
            targets = {
                stage: " ".join(worker.address for worker in deployment.of(stage))
                for stage in ("agent", "segmenter", "gateway", "inference")
            }
            async with Prometheus(data, targets, factor=QUICKER) as prometheus:
                began = time.time()
                await _hour(deployment)
                return await _asked(prometheus, began, time.time())


async def _hour(deployment: Deployment) -> None:
    """Calm, then a rush, and in it a gateway that dies and an engine that hangs; at the end
    somebody publishes what nobody can read."""
    url, [agent] = deployment.servers.url, deployment.of("agent")
    part = HOUR_S / 8
    async with callers(url, agent.address), Firstword(url) as firstword:
        async with _meanwhile(_mistaken(firstword), _conversations(firstword, 4)):
            await asyncio.sleep(2 * part)
            async with _meanwhile(_conversations(firstword, 12)):
                await asyncio.sleep(part)
                await _restarted(deployment, deployment.of("gateway")[0])
                await asyncio.sleep(part)
                await _frozen(deployment.of("inference")[0], 0.4 * part)
                await asyncio.sleep(0.6 * part)
            await asyncio.sleep(3 * part)
            async with _meanwhile(_rubbish(deployment)):
                await asyncio.sleep(part / 4)


@contextlib.asynccontextmanager
async def _meanwhile(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """They go on as long as the body; what broke one of them is raised at its end."""
    tasks = [asyncio.create_task(each) for each in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended


async def _conversations(firstword: Firstword, at_once: int) -> None:
    """Sessions of some turns each, closed in the end."""

    async def converse(number: int) -> None:
        while True:
            with contextlib.suppress(FirstwordError, TimeoutError):
                async with asyncio.timeout(20), firstword.session(pace="realtime") as session:
                    for _ in range(5):
                        await session.say(TEXT)
                        await asyncio.sleep(2 + number / at_once)
                    await session.close()

    await asyncio.gather(*(converse(number) for number in range(at_once)))


async def _mistaken(firstword: Firstword) -> None:
    """Somebody asks for a voice that there is not, now and then."""
    while True:
        with contextlib.suppress(FirstwordError, TimeoutError):
            async with asyncio.timeout(5), firstword.session(voice="nobody") as session:
                await session.say(TEXT)
                await asyncio.sleep(1)
                await session.close()
        await asyncio.sleep(HOUR_S / 8)


async def _rubbish(deployment: Deployment) -> None:
    while True:
        await deployment.streams.commands.xadd(keys.DOOR, {"m": b"\xff this is no message"})
        await asyncio.sleep(1)


async def _restarted(deployment: Deployment, gateway: Worker) -> None:
    """Killed, and started anew where it was after a while, as by its supervisor."""
    await deployment.kill(gateway)
    await asyncio.sleep(HOUR_S / 60)
    port = gateway.address.rpartition(":")[2]
    await deployment.start("gateway", FIRSTWORD_GATEWAY_PORT=port)


async def _frozen(worker: Worker, for_s: float) -> None:
    worker.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(for_s)
    finally:
        worker.signal(signal.SIGCONT)


async def _asked(prometheus: Prometheus, since: float, until: float) -> dict[str, Any]:
    """Every expression of the dashboards, over that time or at its end, as its panel asks."""
    over: dict[str, Any] = {}
    at_end: dict[str, Any] = {}
    span = {"start": f"{since}", "end": f"{until}", "step": f"{STEP_S}"}
    for expr, instant in sorted(_expressions()):
        query = expr.replace("$__rate_interval", RATE_INTERVAL)
        if instant:
            data = await prometheus.ask("query", query=query, time=f"{until}")
            at_end[expr] = data["result"]
        else:
            over[expr] = (await prometheus.ask("query_range", query=query, **span))["result"]
    return {"since": since, "until": until, "over": over, "at_end": at_end}


def _expressions() -> set[tuple[str, bool]]:
    boards = [json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")]
    panels = [panel for board in boards for panel in board["panels"]]
    targets = [target for panel in panels for target in panel.get("targets", [])]
    return {(target["expr"], target["instant"]) for target in targets}
