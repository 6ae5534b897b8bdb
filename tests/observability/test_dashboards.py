"""The dashboards that are kept are those that the code makes, and ask for what there is."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
import yaml

from firstword import telemetry
from tests.observability.promtool import rules
from tools.dashboards.build import BOARDS, FOLDER, built
from tools.dashboards.parts import Board
from tools.draw_dashboards.browser import PAGE
from tools.tree import ROOT

BY_NAME = pytest.mark.parametrize("board", BOARDS, ids=[board.name for board in BOARDS])


def panels(board: Board) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(built(board))["panels"]
    return found


@BY_NAME
def test_the_file_is_what_the_code_makes(board: Board) -> None:
    assert (FOLDER / f"{board.name}.json").read_text(encoding="utf-8") == built(board), (
        "make it anew: python -m tools.dashboards"
    )


def test_there_is_no_other_file() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {board.name for board in BOARDS}


@BY_NAME
def test_panels_have_ids_of_their_own_places_and_queries(board: Board) -> None:
    every = panels(board)
    assert not [number for number, count in Counter(p["id"] for p in every).items() if count > 1]
    for panel in every:
        if panel["type"] == "row":
            continue
        assert panel["title"] and panel["description"]
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))


@BY_NAME
def test_panels_do_not_lie_on_each_other(board: Board) -> None:
    cells = Counter(
        (x, y)
        for panel in panels(board)
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    )
    assert max(cells.values()) == 1


@BY_NAME
def test_every_line_of_panels_is_full(board: Board) -> None:
    ends: dict[int, int] = {}
    for at in (panel["gridPos"] for panel in panels(board)):
        ends[at["y"]] = max(ends.get(at["y"], 0), at["x"] + at["w"])
    assert set(ends.values()) == {24}


@BY_NAME
def test_labels_with_many_values_show_only_what_happens(board: Board) -> None:
    for panel in (panel for row in board.rows for panel in row.panels):
        for query in panel.queries:
            if re.search("{{(code|reason|check)}}", query.legend):
                assert " > 0 or " in query.expr, f"{panel.title}: a legend of zeros"


@BY_NAME
def test_limits_are_drawn(board: Board) -> None:
    drawn = {panel["title"]: panel for panel in panels(board)}
    for panel in (panel for row in board.rows for panel in row.panels if panel.limits):
        defaults = drawn[panel.title]["fieldConfig"]["defaults"]
        steps = [(step.get("value"), step["color"]) for step in defaults["thresholds"]["steps"]]
        assert steps == [(None, "green"), *panel.limits]
        if drawn[panel.title]["type"] == "timeseries":
            assert defaults["custom"]["thresholdsStyle"] == {"mode": "dashed"}


def test_expressions_name_only_what_there_is() -> None:
    every = [metric for metrics in telemetry.SECTIONS.values() for metric in metrics]
    known = {family.name for metric in every for family in metric.describe()}
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    every_panel = [panel for board in BOARDS for row in board.rows for panel in row.panels]
    for expr in (query.expr for panel in every_panel for query in panel.queries):
        for name in re.findall(r"\bfirstword_\w+", expr):
            assert re.sub(r"_(bucket|count|sum|total)$", "", name) in known, name
        assert set(re.findall(r"\bfirstword:[\w:]+", expr)) <= recorded


def test_they_are_drawn_by_the_grafana_that_compose_runs() -> None:
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    [version] = re.findall(r"image: grafana/grafana:(\S+)", compose)
    package = json.loads((PAGE / "package.json").read_text(encoding="utf-8"))
    assert {package["dependencies"][name] for name in ("@grafana/data", "@grafana/ui")} == {version}


def test_exemplars_lead_to_traces() -> None:
    """Prometheus keeps them, Grafana links them, by the label that our services give."""
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    flag = "--enable-feature=exemplar-storage"
    assert flag in compose["services"]["prometheus"]["command"]
    page = (ROOT / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^    prometheus --config.*$", page, re.MULTILINE)
    assert flag in command
    provisioned = ROOT / "deploy" / "docker" / "grafana" / "datasources" / "prometheus.yaml"
    [source] = yaml.safe_load(provisioned.read_text(encoding="utf-8"))["datasources"]
    [link] = source["jsonData"]["exemplarTraceIdDestinations"]
    assert [link["name"]] == list(telemetry.trace_of(f"00-{'a' * 32}-{'b' * 16}-01") or {})
    assert link["url"] == "$TRACES_URL$${__value.raw}"
    assert "TRACES_URL" in compose["services"]["grafana"]["environment"]
