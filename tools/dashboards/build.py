"""From what a dashboard shows to Grafana's JSON."""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.common import StackingConfig, VizLegendOptions
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, StackingMode
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef

from tools.dashboards.capacity import CAPACITY
from tools.dashboards.overview import OVERVIEW
from tools.dashboards.parts import Board, Panel
from tools.dashboards.sessions import SESSIONS

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "observability" / "dashboards"
SOURCE = DataSourceRef(type_val="prometheus", uid="prometheus")
BOARDS = (OVERVIEW, SESSIONS, CAPACITY)


def built(board: Board) -> str:
    """The dashboard as Grafana reads it."""
    made = (
        dashboard.Dashboard(board.title)
        .uid(f"firstword-{board.name}")
        .description(board.says)
        .tags(["firstword"])
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
    )
    number = 0
    for row in board.rows:
        number += 1
        made = made.with_row(dashboard.Row(row.title).id(number))
        for panel in row.panels:
            number += 1
            made = made.with_panel(_panel(panel).id(number))
    return json.dumps(made.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _panel(panel: Panel) -> stat.Panel | timeseries.Panel:
    made: stat.Panel | timeseries.Panel
    if panel.kind == "number":
        made = stat.Panel()
    else:
        legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST)
        made = timeseries.Panel().legend(legend.placement(LegendPlacement.BOTTOM).show_legend(True))
        made = made.fill_opacity(30 if panel.kind == "stacked" else 5)
        if panel.kind == "stacked":
            made = made.stacking(StackingConfig().mode(StackingMode.NORMAL))
    made = made.title(panel.title).description(panel.says).unit(panel.unit)
    made = made.datasource(SOURCE).span(panel.span).height(8).min(0)
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        asked = prometheus.Dataquery().ref_id(letter).expr(query.expr).legend_format(query.legend)
        asked = asked.exemplar(query.exemplars).range()
        made = made.with_target(asked.datasource(SOURCE))
    return made
