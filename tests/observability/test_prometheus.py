"""Every rule and every expression of the dashboards has data on a real Prometheus, under load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firstword import telemetry
from tests.chaos.deployment import STAGES, Deployment
from tests.observability.load import TRACE, callers
from tests.observability.promtool import alerts, program, quicker, rules
from tests.observability.server import Prometheus
from tests.support import eventually
from tools.dashboards.build import BOARDS

FACTOR = 60.0
WITHOUT = ("absent(",)
"""What has no data while all is well."""


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
            left = asked()

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
