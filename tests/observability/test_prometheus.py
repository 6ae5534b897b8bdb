"""Every rule and every expression of the dashboards has data on a real Prometheus, under load."""

from __future__ import annotations

import re
from pathlib import Path

import aiohttp
import pytest

from firstword import keys, telemetry
from firstword.streams import Streams
from tests.chaos.deployment import STAGES, Deployment
from tests.observability.load import TRACE, callers
from tests.observability.promtool import alerts, program, quicker, rules
from tests.observability.server import Prometheus
from tests.support import eventually
from tools.dashboards.build import BOARDS

FACTOR = 60.0
WITHOUT = ("absent(",)
"""What has no data while all is well."""


STILL = (
    *(telemetry.underruns, telemetry.underrun_seconds, telemetry.stuck_sessions),
    *(telemetry.unowned_units, telemetry.takeovers, telemetry.fenced_commits),
    *(telemetry.skipped, telemetry.errors, telemetry.server_evicts, telemetry.server_evicted),
    *(telemetry.upstream_failures, telemetry.upstream_reconnects, telemetry.upstream_rotations),
    *(telemetry.synthesis_errors, telemetry.cut_listeners, telemetry.model_failures),
    *(telemetry.not_ready, telemetry.lag),
)
"""What stays at zero while all is well, or nearly so."""


def moving() -> set[str]:
    """What is more than zero now or was, if each of the other metrics is kept."""
    kinds = {"counter": "_total", "histogram": "_count", "gauge": ""}
    every = [metric for metrics in telemetry.SECTIONS.values() for metric in metrics]
    families = [family for each in every if each not in STILL for family in each.describe()]
    names = [family.name + kinds[family.type] for family in families]
    return {f"sum(max_over_time({name}[5m])) > 0" for name in names}


def asked() -> set[str]:
    """Every expression: alerts without what they compare with, so that they have a value."""
    found = {quicker(rule["expr"], FACTOR) for rule in rules() if "record" in rule}
    for alert in alerts():
        for part in quicker(alert["expr"], FACTOR).split(" and "):
            found.add(re.sub(r" (>|==) .*$", "", part))
    for board in BOARDS:
        for panel in (panel for row in board.rows for panel in row.panels):
            found |= {query.expr.replace("$__rate_interval", "20s") for query in panel.queries}
    return {expr for expr in found if not expr.startswith(WITHOUT)}


@pytest.mark.timeout(240)
async def test_every_expression_has_data_under_load(tmp_path: Path) -> None:
    program("prometheus")
    logs, folder = tmp_path / "logs", tmp_path / "prometheus"
    logs.mkdir()
    folder.mkdir()
    async with Deployment(logs, rtf=0.05) as deployment:
        await deployment.start("agent")
        addresses = {stage: deployment.of(stage)[0].address for stage in (*STAGES, "agent")}
        async with (
            Prometheus(folder, addresses, factor=FACTOR) as prometheus,
            callers(deployment.servers.url, addresses["agent"]),
        ):
            await give_bad_ones(deployment.servers.url, addresses["agent"])
            left = asked() | moving()

            async def all_answered() -> bool:
                for expr in sorted(left):
                    if await prometheus.values(expr):
                        left.discard(expr)
                assert not left, "\n".join(sorted(left))
                return True

            await eventually(all_answered, "every expression has data", 90)
            slow = f'le="{telemetry.SLO_FIRST_AUDIO_S}"'

            async def all_is_seen() -> bool:
                """In one scrape: on a busy machine one of them may come too late."""
                assert await prometheus.values("count(up == 1)") == [4.0]
                traces = await prometheus.traces("firstword_first_audio_seconds_bucket")
                assert traces == {TRACE}
                values = f"firstword_first_audio_seconds_bucket{{{slow}}}"
                return bool(await prometheus.values(values))

            await eventually(all_is_seen, "every service is up, and times lead to their trace")


async def give_bad_ones(redis_url: str, agent: str) -> None:
    """What nobody can use, at both doors."""
    streams = Streams(redis_url)
    await streams.append(keys.DOOR, {"m": b"rubbish"})
    await streams.close()
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"http://{agent}/invocations", json={}) as response,
    ):
        assert response.status == 400
