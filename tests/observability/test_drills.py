"""Six faults: the right alert fires, five times within a minute, `/readyz` is red, and the alert's
entry in the runbook, followed literally, ends it.

The rules' windows and patience are a fifth of what they are; the minute is held against the real
ones. All six take three minutes: `make drills`. `make test` does the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
import redis.asyncio

from firstword import keys
from tests.chaos.deployment import Deployment, Worker
from tests.observability.load import callers
from tests.observability.promtool import alerts, program
from tests.observability.runbook import follow
from tests.observability.server import Prometheus
from tests.support import eventually

FACTOR = 5.0
SOON_S = 40.0
INTERVAL_S = 15.0
"""Of scrapes and of evaluations, in the real configuration: at worst both are waited for."""
HANG_S = 2
HANGS_ON = "A sentence that no engine gets to the end of."
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]
longer = pytest.mark.skipif(
    not os.environ.get("FIRSTWORD_DRILLS"), reason="a longer drill: run by `make drills`"
)


class Drill:
    """A deployment under load, and the Prometheus that watches it."""

    def __init__(self, deployment: Deployment, prometheus: Prometheus) -> None:
        self.deployment = deployment
        self.prometheus = prometheus
        self.url = deployment.servers.url

    def one(self, stage: str) -> Worker:
        return self.deployment.of(stage)[0]

    async def red(self, worker: Worker) -> dict[str, str]:
        """The reasons why it is not ready; of one that does not answer, that."""
        try:
            timeout = aiohttp.ClientTimeout(total=1)
            async with (
                aiohttp.ClientSession(timeout=timeout) as client,
                client.get(f"http://{worker.address}/readyz") as response,
            ):
                reasons: dict[str, str] = (await response.json())["reasons"]
                assert (response.status == 503) == bool(reasons)
                return reasons
        except (aiohttp.ClientError, TimeoutError):
            return {"answer": "none"}

    async def says(self, worker: Worker, check: str) -> str:
        """Wait until this check is red, and give its reason: it may take long to answer."""

        async def told() -> str | None:
            return (await self.red(worker)).get(check)

        return await eventually(told, f"{check} is red", SOON_S) or ""

    async def alarms(self, alert: str) -> None:
        """Wait until it fires."""

        async def fires() -> bool:
            return alert in await self.prometheus.firing()

        await eventually(fires, f"{alert} fires", 60)

    async def fires(self, alert: str) -> None:
        """Within a minute of the fault, had the rules been what they are."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self.alarms(alert)
        [patience] = [float(a["for"].removesuffix("s")) for a in alerts() if a["alert"] == alert]
        real_s = loop.time() - began + patience - max(1, patience / FACTOR) + 2 * INTERVAL_S
        assert real_s < 60, f"{alert} would have fired after {real_s:.0f} s"

    async def is_over(self, alert: str, *workers: Worker) -> None:
        async def over() -> bool:
            reds = [await self.red(worker) for worker in workers]
            return alert not in await self.prometheus.firing() and not any(reds)

        await eventually(over, f"{alert} is over and all are ready", SOON_S)

    async def again(self, worker: Worker, **environ: str) -> Worker:
        """Start such a worker anew where the old one was, so that it is the same target."""
        _, _, port = worker.address.rpartition(":")
        variable = f"FIRSTWORD_{worker.stage.upper()}_PORT"
        return await self.deployment.start(worker.stage, **{variable: port}, **environ)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def drill(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Drill]:
    program("prometheus")
    logs, folder = tmp_path_factory.mktemp("logs"), tmp_path_factory.mktemp("prometheus")
    async with Deployment(Path(logs), rtf=0.05) as deployment:
        # One gateway is the target; the other takes its sessions when it is frozen.
        target = deployment.of("gateway")[0]
        await deployment.start("gateway")
        stages = ("segmenter", "inference")
        addresses = {stage: deployment.of(stage)[0].address for stage in stages}
        addresses["gateway"] = target.address
        async with (
            Prometheus(Path(folder), addresses, factor=FACTOR) as prometheus,
            callers(deployment.servers.url),
        ):
            yield Drill(deployment, prometheus)


async def test_a_server_that_is_gone(drill: Drill) -> None:
    alert = "FirstwordRedisUnreachable"
    watched = drill.one("gateway"), drill.one("segmenter")
    server = drill.deployment.server
    await asyncio.to_thread(server.kill)
    await drill.fires(alert)
    for worker in watched:
        await drill.says(worker, "redis")
    status, told = await follow(alert, "firstword redis PING", drill.url)
    assert (status, "Traceback" in told) == (1, False), told
    await asyncio.to_thread(server.restart)  # "start the server again"
    status, told = await follow(alert, "firstword redis PING", drill.url)
    assert (status, told.strip()) == (0, "PONG")
    await drill.is_over(alert, *watched)


@longer
async def test_a_backend_that_refuses(drill: Drill) -> None:
    alert = "FirstwordUpstreamAway"
    gateway, inference = drill.one("gateway"), drill.one("inference")
    await drill.deployment.kill(inference)
    await drill.fires(alert)
    await drill.says(gateway, "upstream")
    command = "curl -s http://INFERENCE/ping"
    status, _ = await follow(alert, command, drill.url, INFERENCE=inference.address)
    assert status, "it does not answer"
    again = await drill.again(inference)  # "start or restart the inference service"
    await drill.is_over(alert, gateway, again)


@longer
async def test_a152_a_gateway_that_is_frozen_and_the_gauges_recover(drill: Drill) -> None:
    alert = "FirstwordTargetDown"
    gateway = drill.one("gateway")
    gateway.signal(signal.SIGSTOP)
    await drill.fires(alert)
    assert await drill.red(gateway) == {"answer": "none"}
    pid = str(gateway.child.pid)
    _, told = await follow(alert, "ps -o pid,stat,etime,cmd -p PID", drill.url, PID=pid)
    assert " T" in told
    status, _ = await follow(alert, "kill -KILL PID", drill.url, PID=pid)
    assert status == 0
    await asyncio.to_thread(gateway.child.wait)
    again = await drill.again(gateway)
    await drill.is_over(alert, again)

    async def as_the_server_says() -> bool:
        owned = len(await drill.deployment.units(again))
        expr = f'firstword_owned_units{{stage="gateway",instance="{again.address}"}}'
        return await drill.prometheus.values(expr) == [float(owned)]

    await eventually(as_the_server_says, "the gauge is what is owned", SOON_S)


@longer
async def test_a_flood_of_what_nobody_can_read(drill: Drill) -> None:
    alert = "FirstwordPoisonFlood"
    publisher = redis.asyncio.Redis.from_url(drill.url, single_connection_client=True)
    async with publisher:
        await publisher.ping()
        address = str((await publisher.client_info())["addr"])
        flood = asyncio.create_task(_flood(publisher))
        await drill.fires(alert)
        told = await drill.says(drill.one("segmenter"), "poison")
        assert "`firstword dead list`" in told and alert in told, "it says what to do"
        status, told = await follow(alert, "firstword dead list", drill.url)
        assert (status, "bad_msgpack" in told, keys.DOOR in told) == (0, True, True)
        _, told = await follow(alert, "firstword redis CLIENT LIST", drill.url)
        assert f"addr={address}" in told
        command = "firstword redis CLIENT KILL ADDR IP:PORT"
        ip, _, port = address.rpartition(":")
        status, told = await follow(alert, command, drill.url, IP=ip, PORT=port)
        assert status == 0, told
        with contextlib.suppress(redis.exceptions.RedisError):
            await flood
        await drill.is_over(alert, drill.one("segmenter"))


async def _flood(publisher: redis.asyncio.Redis) -> None:
    """Until it is thrown out."""
    while True:
        await publisher.xadd(keys.DOOR, {"m": b"\xff this is no message"})
        await asyncio.sleep(0.05)


@longer
async def test_a_synthesis_that_hangs(drill: Drill) -> None:
    alert = "FirstwordEngineUnwell"
    [old] = drill.deployment.of("inference")
    await drill.deployment.terminate(old)
    limits = {"FIRSTWORD_INFERENCE_HANG_S": str(HANG_S), "FIRSTWORD_INFERENCE_DRAIN_S": "1"}
    inference = await drill.again(old, FIRSTWORD_STAMP_HANGS_ON=HANGS_ON, **limits)
    await drill.is_over(alert, inference)
    asking = asyncio.create_task(_invoke(inference, HANGS_ON))

    async def unwell() -> bool:
        return "engine" in await drill.red(inference)

    await eventually(unwell, "it is red by the deadline", HANG_S + INTERVAL_S)
    assert await asking == 503, "its caller was told"
    await drill.alarms(alert)
    command = "curl -s http://INSTANCE/readyz"
    _, told = await follow(alert, command, drill.url, INSTANCE=inference.address)
    assert "hangs" in told
    pid = str(inference.child.pid)
    status, told = await follow(alert, "kill -TERM PID", drill.url, PID=pid)
    assert status == 0, told
    await asyncio.to_thread(inference.child.wait)  # it ends although its thread never does
    await drill.is_over(alert, await drill.again(inference))


async def _invoke(inference: Worker, text: str) -> int:
    """The status that it answers with."""
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"http://{inference.address}/invocations", json={"text": text}) as response,
    ):
        return response.status


@longer
async def test_a_server_that_is_full(drill: Drill) -> None:
    alert = "FirstwordRedisFull"
    segmenter = drill.one("segmenter")
    commands = drill.deployment.streams.commands
    before = (await commands.config_get("maxmemory"))["maxmemory"]
    used = (await commands.info("memory"))["used_memory"]
    await commands.config_set("maxmemory", int(used / 0.95))
    await drill.fires(alert)
    await drill.says(segmenter, "memory")
    status, told = await follow(alert, "firstword redis INFO memory", drill.url)
    assert (status, "maxmemory" in told) == (0, True)
    command = "firstword redis CONFIG SET maxmemory BYTES"
    status, told = await follow(alert, command, drill.url, BYTES=str(int(before)))
    assert status == 0, told
    await drill.is_over(alert, segmenter)
