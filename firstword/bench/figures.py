"""Quantiles and tables. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of the values do not exceed.

    Nearest rank: always a value that was measured. Raises ValueError without values.
    """
    if not values:
        raise ValueError("no values: nothing was measured")
    rank = math.ceil(share * len(values))
    return sorted(values)[max(rank, 1) - 1]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as what is in them; the first to the left, figures to the right."""
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *rest = (
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join((first, *rest)).rstrip()

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])
