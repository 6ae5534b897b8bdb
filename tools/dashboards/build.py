"""From what a dashboard shows to Grafana's JSON."""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.builders import bargauge, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.common import (
    GraphThresholdsStyleConfig,
    ReduceDataOptions,
    ScaleDistributionConfig,
    StackingConfig,
    VizLegendOptions,
    VizTextDisplayOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    GraphDrawStyle,
    GraphTresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DashboardSpecialValueMapOptions,
    DataSourceRef,
    FieldColorModeId,
    SpecialValueMap,
    SpecialValueMatch,
    Threshold,
    ThresholdsMode,
    ValueMappingResult,
)

from tools.dashboards.capacity import CAPACITY
from tools.dashboards.overview import OVERVIEW
from tools.dashboards.parts import Board, Panel
from tools.dashboards.sessions import SESSIONS

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "observability" / "dashboards"
SOURCE = DataSourceRef(type_val="prometheus", uid="prometheus")
BOARDS = (OVERVIEW, SESSIONS, CAPACITY)
LAST = "lastNotNull"
NOW = "last"
"""Not LAST: a tile that shows the last good value while nothing comes is a lie."""
NOTHING = SpecialValueMap(
    DashboardSpecialValueMapOptions(
        SpecialValueMatch.NULL_AND_NAN, ValueMappingResult("no data", "text")
    )
)

Drawn = stat.Panel | timeseries.Panel | bargauge.Panel


def built(board: Board) -> str:
    """The dashboard as Grafana reads it."""
    others = dashboard.DashboardLink("Firstword").type(DashboardLinkType.DASHBOARDS)
    made = (
        dashboard.Dashboard(board.title)
        .uid(f"firstword-{board.name}")
        .description(board.says)
        .tags(["firstword"])
        .link(others.tags(["firstword"]).keep_time(True))
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


def _panel(panel: Panel) -> Drawn:
    made = _drawn(panel).title(panel.title).description(panel.says).unit(panel.unit)
    made = made.datasource(SOURCE).span(panel.span).height(panel.height)
    if panel.kind != "decades":
        made = made.min(0)
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        asked = prometheus.Dataquery().ref_id(letter).expr(query.expr).legend_format(query.legend)
        asked = asked.exemplar(query.exemplars)
        # What is now, not what was at any time of the hour: names, and how long the longest bar is.
        asked = asked.instant() if panel.kind in ("names", "bars") else asked.range()
        made = made.with_target(asked.datasource(SOURCE))
    return made


def _drawn(panel: Panel) -> Drawn:
    match panel.kind:
        case "number" | "names":
            return _tiles(panel)
        case "bars":
            return _bars(panel)
        case _:
            return _graph(panel)


def _tiles(panel: Panel) -> stat.Panel:
    names = panel.kind == "names"
    made = stat.Panel().reduce_options(ReduceDataOptions().calcs([NOW])).mappings([NOTHING])
    made = made.color_mode(BigValueColorMode.BACKGROUND if names else BigValueColorMode.VALUE)
    made = made.graph_mode(BigValueGraphMode.NONE if names else BigValueGraphMode.AREA)
    made = made.text_mode(BigValueTextMode.NAME if names else BigValueTextMode.VALUE)
    if names:  # below each other: they are long
        made = made.orientation(VizOrientation.HORIZONTAL)
    return made.thresholds(_limits(panel))


def _bars(panel: Panel) -> bargauge.Panel:
    made = bargauge.Panel().reduce_options(ReduceDataOptions().calcs([NOW])).mappings([NOTHING])
    made = made.display_mode(BarGaugeDisplayMode.BASIC).orientation(VizOrientation.HORIZONTAL)
    made = made.text(VizTextDisplayOptions().title_size(13).value_size(16))
    return made.thresholds(_limits(panel)).color_scheme(
        dashboard.FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC)
    )


def _graph(panel: Panel) -> timeseries.Panel:
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(True)
    tooltip = VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
    # Beside a name its last value, unless a label decides how many names there are.
    values = [] if any("{{" in query.legend for query in panel.queries) else [LAST]
    made = timeseries.Panel().legend(legend.placement(LegendPlacement.BOTTOM).calcs(values))
    made = made.tooltip(tooltip).show_points(VisibilityMode.AUTO)
    made = made.fill_opacity({"stacked": 60, "events": 80}.get(panel.kind, 5))
    if panel.kind in ("stacked", "events"):
        made = made.stacking(StackingConfig().mode(StackingMode.NORMAL)).line_width(0)
    if panel.kind == "events":
        made = made.draw_style(GraphDrawStyle.BARS)
    if panel.kind == "decades":
        made = made.scale_distribution(
            ScaleDistributionConfig().type(ScaleDistribution.LOG).log(10)
        )
    # Or an axis of zeros goes up to 100.
    made = made.axis_soft_max({"s": 0.01, "percentunit": 0.01}.get(panel.unit, 1))
    if panel.limits:
        lines = GraphThresholdsStyleConfig().mode(GraphTresholdsStyleMode.DASHED)
        made = made.thresholds(_limits(panel)).thresholds_style(lines)
    return made


def _limits(panel: Panel) -> dashboard.ThresholdsConfig:
    steps = [Threshold(None, "green")]
    steps += [Threshold(value, colour) for value, colour in panel.limits]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
