"""What dashboards are made of, and the expressions that come again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PER_SECOND = "suffix:/s"
"""Grafana's unit for what happens so often: `2.5/s`."""

Limit = tuple[float, Literal["yellow", "orange", "red"]]


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and what its series are called; `{{label}}` is a label's value."""

    expr: str
    legend: str
    exemplars: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture. `unit` in Grafana's words: s, percentunit, short, bytes, or PER_SECOND.

    `kind`: `lines`; `decades`, lines on a logarithmic axis; `stacked`, whose sum says something;
    `events`, which are rare: stacked bars; `number`, a tile with the last value; `names`, a tile
    for each series that there is; `bars`, a bar for each last value. `limits`: from which value on
    it is bad, smallest first: lines in a graph, the colour of a tile. They are those of alerts.yml,
    where an alert looks at the same.
    """

    title: str
    says: str
    unit: str
    queries: tuple[Query, ...]
    kind: Literal["lines", "decades", "stacked", "events", "number", "names", "bars"] = "lines"
    span: int = 8
    height: int = 7
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that belong together."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard, and the file it is kept in."""

    name: str
    title: str
    says: str
    rows: tuple[Row, ...]


def per_second(counter: str, by: str) -> str:
    """Events a second by a label, zeros too: for labels with few values."""
    return f"sum by ({by}) (rate({counter}[$__rate_interval]))"


def rare(counter: str, by: str) -> str:
    """Events a second by a label with many values: only those that come, or one zero, `none`."""
    rate = f"rate({counter}[$__rate_interval])"
    nothing = f'label_replace(sum({rate}) == 0, "{by}", "none", "", "")'
    return f"sum by ({by}) ({rate}) > 0 or {nothing}"


def quantile(share: float, histogram: str, by: str = "") -> str:
    """A percentile of a histogram, of all processes together or by a label."""
    labels = f"le, {by}" if by else "le"
    rate = f"sum by ({labels}) (rate({histogram}_bucket[$__rate_interval]))"
    return f"histogram_quantile({share:g}, {rate})"


def percentiles(histogram: str, *, exemplars: bool = False) -> tuple[Query, ...]:
    """Its median, and what 5 and 1 of 100 exceed."""
    return (
        Query(quantile(0.5, histogram), "p50", exemplars),
        Query(quantile(0.95, histogram), "p95"),
        Query(quantile(0.99, histogram), "p99"),
    )
