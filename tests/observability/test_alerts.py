"""Each alert fires when it should, and does not when it should not, by promtool's word."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Histogram

from firstword import poison, telemetry
from tests.observability.promtool import FOLDER, RULES, alerts, program, quicker, rules
from tools.dashboards.build import BOARDS

RUNBOOK = FOLDER.parents[1] / "docs" / "RUNBOOK.md"
Series = dict[str, str]


@dataclass(frozen=True)
class Case:
    """Series for which an alert is to fire after `at`, and others for which it is not.

    Values in promtool's notation, a sample every `step`: `0+9x60` is 0, 9, 18, …
    """

    alert: str
    fires: Series
    quiet: Series
    at: str = "20m"
    step: str = "1m"


def first_audio(good: float, every: float, steps: int) -> Series:
    """So many turns a step, of which `good` were in time."""
    return {
        'firstword_first_audio_seconds_bucket{le="0.5"}': f"0+{good}x{steps}",
        'firstword_first_audio_seconds_bucket{le="10.0"}': f"0+{every}x{steps}",
        "firstword_first_audio_seconds_count": f"0+{every}x{steps}",
    }


def gauge(name: str, firing: str, quiet: str, alert: str, at: str = "20m") -> Case:
    return Case(alert, {name: firing}, {name: quiet}, at)


def late(slow: int) -> Series:
    name = "firstword_loop_late_seconds_bucket"
    return {
        f'{name}{{le="0.1",instance="a",service="gateway"}}': f"0+{600 - slow}x60",
        f'{name}{{le="0.25",instance="a",service="gateway"}}': "0+600x60",
        f'{name}{{le="+Inf",instance="a",service="gateway"}}': "0+600x60",
    }


def rtf(slow: int) -> Series:
    return {
        'firstword_rtf_bucket{le="0.8"}': f"0+{100 - slow}x60",
        'firstword_rtf_bucket{le="1.0"}': "0+100x60",
        'firstword_rtf_bucket{le="+Inf"}': "0+100x60",
    }


def off_scale(beyond: int) -> Series:
    return {
        'firstword_first_audio_seconds_bucket{le="10.0"}': f"0+{100 - beyond}x60",
        "firstword_first_audio_seconds_count": "0+100x60",
    }


def outcomes(done: int, error: int) -> Series:
    name = "firstword_segments_total"
    return {
        f'{name}{{outcome="done"}}': f"0+{done}x60",
        f'{name}{{outcome="error"}}': f"0+{error}x60",
        f'{name}{{outcome="cancelled"}}': "0+5x60",
    }


def dry(times: int) -> Series:
    return {
        "firstword_underruns_total": f"0+{times}x60",
        'firstword_segments_total{outcome="done"}': "0+100x60",
    }


def ready(check: str) -> str:
    return f'firstword_not_ready{{check="{check}",instance="a",service="gateway"}}'


def up(*services: str, values: str = "1x60") -> Series:
    return {f'up{{job="firstword",instance="a",service="{name}"}}': values for name in services}


FAILURES = 'firstword_upstream_failures_total{code="upstream_refused"}'
DEAD = 'firstword_dead_letters_total{reason="bad_msgpack"}'
BUSY = 'firstword_synthesis_errors_total{code="busy"}'
BUSY_PUBLISHED = 'firstword_errors_total{code="busy"}'
FENCED = 'firstword_fenced_commits_total{stage="gateway"}'
TAKEN = 'firstword_takeovers_total{stage="gateway"}'
UP = 'up{job="firstword",instance="a",service="gateway"}'

CASES = [
    Case("FirstwordFirstAudioBurnsFast", first_audio(20, 100, 180), first_audio(40, 100, 180)),
    # What is over is not told for an hour.
    Case(
        "FirstwordFirstAudioBurnsFast",
        first_audio(20, 100, 180),
        {
            'firstword_first_audio_seconds_bucket{le="0.5"}': "0+20x60 1200+100x40",
            'firstword_first_audio_seconds_bucket{le="10.0"}': "0+100x100",
            "firstword_first_audio_seconds_count": "0+100x100",
        },
        at="75m",
    ),
    Case(
        "FirstwordFirstAudioBurnsSteadily",
        first_audio(60, 100, 200),
        first_audio(80, 100, 200),
        at="12h",
        step="5m",
    ),
    Case(
        "FirstwordFirstAudioBurnsSlowly",
        first_audio(93, 100, 1200),
        first_audio(96, 100, 1200),
        at="90h",
        step="5m",
    ),
    Case("FirstwordFirstAudioOffTheScale", off_scale(3), off_scale(0)),
    Case("FirstwordListenersRunDry", dry(5), dry(1)),
    Case("FirstwordSegmentsFail", outcomes(90, 5), outcomes(100, 1)),
    gauge('firstword_stuck_sessions{instance="a"}', "1x60", "0x60", "FirstwordSessionsStuck"),
    gauge('firstword_lag_seconds{stage="segmenter"}', "7x60", "4x60", "FirstwordLag"),
    Case("FirstwordDeadLetters", {DEAD: "0x18 1x40"}, {DEAD: "1x60"}),
    Case("FirstwordPoisonFlood", {DEAD: "0+90x60"}, {DEAD: "0+30x60"}),
    gauge(ready("upstream"), "1x60", "0x60", "FirstwordUpstreamAway"),
    Case("FirstwordUpstreamFails", {FAILURES: "0+30x60"}, {FAILURES: "0+6x60"}),
    gauge(ready("engine"), "1x60", "0x18 1x1 0x40", "FirstwordEngineUnwell"),
    Case("FirstwordSynthesisSlow", rtf(20), rtf(0)),
    gauge(ready("redis"), "1x60", "0x60", "FirstwordRedisUnreachable"),
    gauge("firstword_server_memory_share", "0.75x60", "0.6x60", "FirstwordRedisFillsUp"),
    gauge("firstword_server_memory_share", "0.85x60", "0.75x60", "FirstwordRedisFull"),
    gauge("firstword_server_evicts", "1x60", "0x60", "FirstwordRedisMayEvict"),
    gauge("firstword_server_evicted_keys", "0x18 40x40", "40x60", "FirstwordRedisEvicts"),
    gauge('firstword_unowned_units{stage="gateway"}', "3x60", "0x60", "FirstwordNoCapacity"),
    gauge(
        'firstword_unowned_units{stage="segmenter"}', "3x60", "0x60", "FirstwordPartitionsUnowned"
    ),
    Case(
        "FirstwordInferenceBusy",
        {BUSY: "0+30x60", BUSY_PUBLISHED: "0x60"},
        {BUSY: "0+6x60", BUSY_PUBLISHED: "0+3x60"},
    ),
    gauge(ready("partitions"), "1x60", "0x60", "FirstwordPartitionsDiffer"),
    gauge(UP, "0x60", "1x60", "FirstwordTargetDown"),
    Case("FirstwordNoTargets", up("segmenter"), up("segmenter", "gateway")),
    Case("FirstwordNoTargets", up("gateway"), up("segmenter", "gateway", "inference")),
    # One that goes away, and one that there never was or that is down: that is another's to tell.
    Case(
        "FirstwordNoTargets",
        {**up("segmenter", "gateway"), **up("agent", values="1x10 stale _x40")},
        {**up("segmenter", "gateway"), **up("agent", values="1x10 0x40")},
    ),
    Case("FirstwordWorkersDie", {TAKEN: "0x15 12x40"}, {TAKEN: "12x60"}),
    Case("FirstwordOwnersFight", {FENCED: "0+30x60"}, {FENCED: "0+3x60"}),
    Case("FirstwordLoopLate", late(20), late(1)),
]


def as_a_collector_writes(series: Series) -> Series:
    """Bounds as an OpenTelemetry collector sends them on: 10 for 10.0."""
    return {re.sub(r'le="(\d+)\.0"', r'le="\1"', name): values for name, values in series.items()}


def promtool_test(case: Case, series: Series, firing: int) -> dict[str, Any]:
    expected = [{"labels": "{}", "value": firing}] if firing else []
    named = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
    return {
        "interval": case.step,
        "name": f"{case.alert}: {'fires' if firing else 'quiet'}",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": f"count({named})", "eval_time": case.at, "exp_samples": expected}
        ],
    }


@pytest.mark.parametrize("step", sorted({case.step for case in CASES}))
@pytest.mark.parametrize("written", [dict, as_a_collector_writes])
def test_each_fires_and_does_not_fire(
    tmp_path: Path, written: Callable[[Series], Series], step: str
) -> None:
    every = [replace(c, fires=written(c.fires), quiet=written(c.quiet)) for c in CASES]
    cases = [case for case in every if case.step == step]
    tests = [promtool_test(case, case.fires, 1) for case in cases]
    tests += [promtool_test(case, case.quiet, 0) for case in cases]
    files = [str(FOLDER / name) for name in RULES]
    file = tmp_path / "test.yml"
    file.write_text(
        yaml.safe_dump({"rule_files": files, "evaluation_interval": step, "tests": tests})
    )
    done = subprocess.run(
        [program("promtool"), "test", "rules", file], capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_bounds_of_both_spellings_are_tested() -> None:
    written = {name for case in CASES for name in as_a_collector_writes(case.fires)}
    assert {'firstword_first_audio_seconds_bucket{le="10"}', 'firstword_rtf_bucket{le="1"}'} <= (
        written
    )


def test_whole_bounds_are_found_however_they_are_written() -> None:
    panels = [panel for board in BOARDS for row in board.rows for panel in row.panels]
    asked = [query.expr for panel in panels for query in panel.queries]
    asked += [rule["expr"] for rule in rules()]
    for expr in asked:
        for sign, bound in re.findall(r'\ble(=~?|!~?)"([^"]*)"', expr):
            whole = re.fullmatch(r"(\d+)(\.0|\(\[\.\]0\)\?)?", bound)
            if whole:
                assert (sign, bound) == ("=~", f"{whole[1]}([.]0)?"), expr
            else:
                assert float(bound) % 1, expr


@pytest.mark.parametrize(
    ("alert", "metric"),
    [("FirstwordSynthesisSlow", telemetry.rtf), ("FirstwordLoopLate", telemetry.loop_late)],
)
def test_limits_of_percentiles_are_boundaries(alert: str, metric: Histogram) -> None:
    """Between two of them a percentile is a guess."""
    [expr] = [each["expr"] for each in alerts() if each["alert"] == alert]
    assert float(expr.rpartition(" > ")[2]) in metric._kwargs["buckets"]


def test_each_alert_has_its_case() -> None:
    assert {case.alert for case in CASES} == {alert["alert"] for alert in alerts()}


def test_the_configuration_is_one() -> None:
    done = subprocess.run(
        [program("promtool"), "check", "config", FOLDER / "prometheus.yml"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_each_alert_leads_to_its_entry_in_the_runbook(alert: dict[str, Any]) -> None:
    name = alert["alert"]
    assert alert["labels"]["severity"] in ("page", "ticket")
    assert alert["annotations"]["runbook_url"] == f"docs/RUNBOOK.md#{name.lower()}"
    _, _, entry = RUNBOOK.read_text(encoding="utf-8").partition(f"\n## {name}\n")
    entry, _, _ = entry.partition("\n## ")
    for part in ("**Symptom.**", "**Means.**", "**Check.**", "**Remedy.**"):
        assert part in entry, f"{name}: no {part}"


def test_the_runbook_has_no_entry_without_an_alert() -> None:
    entries = re.findall(r"^## (Firstword\w+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(entries) == sorted(alert["alert"] for alert in alerts())


def test_rules_name_only_metrics_that_there_are() -> None:
    every = [metric for metrics in telemetry.SECTIONS.values() for metric in metrics]
    known = {family.name for metric in every for family in metric.describe()}
    for rule in rules():
        for name in re.findall(r"\bfirstword_\w+", rule["expr"]):
            assert re.sub(r"_(bucket|count|sum|total)$", "", name) in known, name


def test_a_page_comes_within_a_minute_where_sessions_end() -> None:
    """The rules' patience and one window of theirs: what the drills then show with real faults."""
    soon = {"FirstwordRedisUnreachable", "FirstwordUpstreamAway", "FirstwordTargetDown"}
    soon |= {"FirstwordPoisonFlood", "FirstwordRedisFull", "FirstwordSessionsStuck"}
    for alert in alerts():
        if alert["alert"] in soon:
            assert int(alert["for"].removesuffix("s")) <= 20


def test_the_alert_for_a_flood_begins_where_a_worker_turns_red() -> None:
    [expr] = [alert["expr"] for alert in alerts() if alert["alert"] == "FirstwordPoisonFlood"]
    assert poison.FLOOD_S == 60
    assert expr == f"sum(rate(firstword_dead_letters_total[1m])) > {poison.FLOOD_PER_S}"


def test_rules_can_be_made_quicker() -> None:
    assert quicker("rate(x[5m])\n  for: 30s", 30) == "rate(x[10s])\n  for: 1s"
