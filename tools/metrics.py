"""`python -m tools.metrics` writes the tables of docs/METRICS.md from firstword/telemetry.py.

A test holds the two together.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from firstword import telemetry

PAGE = Path(__file__).resolve().parent.parent / "docs" / "METRICS.md"
BEGIN, END = "<!-- made by python -m tools.metrics -->\n", "<!-- end -->\n"


def row(metric: Any) -> str:
    """One line of a table: name, kind, labels, help."""
    family = metric.describe()[0]
    name = family.name + ("_total" if family.type == "counter" else "")
    labels = ", ".join(f"`{label}`" for label in metric._labelnames)
    values = telemetry.LABELS.get(metric, ())
    codes = {*telemetry.ERROR_CODES, "other"}
    if codes <= set(values):
        others = ", ".join(value for value in values if value not in codes)
        labels += ": any of [the codes](#codes)" + f", {others}" * bool(others)
    elif values:
        labels += f": {', '.join(values)}"
    return f"| `{name}` | {family.type} | {labels} | {family.documentation} |"


def tables() -> str:
    """Every metric, by section, as Markdown."""
    parts = []
    for title, metrics in telemetry.SECTIONS.items():
        head = "| name | kind | label | what it says |\n|---|---|---|---|"
        parts.append("\n".join([f"## {title}\n", head, *map(row, metrics)]))
    bounds = [f"{bound:g}" for bound in telemetry.FIRST_AUDIO]
    codes = ", ".join(f"`{code}`" for code in (*sorted(telemetry.ERROR_CODES), "other"))
    parts.append(f"## Buckets\n\nFirst audio, in seconds: {', '.join(bounds)}.")
    parts.append(f"## Codes\n\n{codes}.")
    return "\n\n".join(parts) + "\n"


def page(text: str) -> str:
    """The page with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
