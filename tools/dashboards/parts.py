"""What dashboards are made of, and the expressions that come again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and what its series are called; `{{label}}` is a label's value."""

    expr: str
    legend: str
    exemplars: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture. `unit` in Grafana's words: s, percentunit, reqps, short, bytes, none."""

    title: str
    says: str
    unit: str
    queries: tuple[Query, ...]
    kind: Literal["lines", "stacked", "number"] = "lines"
    span: int = 8


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
    """Events a second by a label, where there are any."""
    return f"sum by ({by}) (rate({counter}[$__rate_interval]))"


def quantile(share: float, histogram: str, by: str = "") -> str:
    """A percentile of a histogram, of all processes together or by a label."""
    labels = f"le, {by}" if by else "le"
    rate = f"sum by ({labels}) (rate({histogram}_bucket[$__rate_interval]))"
    return f"histogram_quantile({share:g}, {rate})"


def percentiles(histogram: str, *, exemplars: bool = False) -> tuple[Query, ...]:
    """Its median, and what 5 and 1 of 100 exceed."""
    return (
        Query(quantile(0.5, histogram), "half", exemplars),
        Query(quantile(0.95, histogram), "95 of 100"),
        Query(quantile(0.99, histogram), "99 of 100"),
    )


def stage(name: str, rate: Query, errors: Query, duration: tuple[Query, ...]) -> Row:
    """Rate, errors, duration."""
    return Row(
        name,
        (
            Panel(f"{name}: rate", "What it does in a second.", "reqps", (rate,)),
            Panel(f"{name}: errors", "What of it fails.", "reqps", (errors,)),
            Panel(f"{name}: duration", "How long it takes.", "s", duration),
        ),
    )
