"""The results as one picture: three panels, one for each experiment."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from firstword.bench.results import ONE_LOCK, OURS, Results

MISSING = "no picture: it needs matplotlib (pip install 'firstword[bench]')"
_COLOURS = {OURS: "#1b7f5c", ONE_LOCK: "#b4532a"}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(results: Results, path: Path) -> None:
    """Write a PNG of what was measured. Raises OSError where it cannot be written."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = [
        (wanted, panel)
        for wanted, panel in (
            (results.first_audio, _first_audio),
            (results.ladder, _ladder),
            (results.codecs, _codecs),
        )
        if wanted
    ]
    figure = Figure(figsize=(5.2 * len(panels), 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    for number, (_, panel) in enumerate(panels, 1):
        panel(results, figure.add_subplot(1, len(panels), number))
    figure.savefig(path, dpi=120)


def _first_audio(results: Results, axes: Any) -> None:
    names = [each.name.replace(", ", ",\n") for each in results.first_audio]
    bars = axes.barh(names, [each.at(0.5) for each in results.first_audio], color=_COLOURS[OURS])
    axes.bar_label(bars, fmt="%.2f s", padding=3)
    axes.invert_yaxis()
    axes.set_xmargin(0.2)
    axes.set_xlabel("seconds, p50")
    axes.set_title("First audio of a passage of four sentences")


def _ladder(results: Results, axes: Any) -> None:
    for order, colour in _COLOURS.items():
        steps = [each for each in results.ladder if each.order == order]
        for share, style in ((0.5, "--"), (0.95, "-")):
            axes.plot(
                [each.callers for each in steps],
                [each.at(share) for each in steps],
                style,
                marker="o",
                color=colour,
                label=f"{order}, p{share * 100:.0f}",
            )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_xticks(sorted({each.callers for each in results.ladder}))
    axes.set_xlabel("callers at a time")
    axes.set_ylabel("seconds")
    axes.set_title("First audio of a turn")
    axes.legend()


def _codecs(results: Results, axes: Any) -> None:
    names = [each.format for each in results.codecs]
    bars = axes.bar(names, [each.kbit_per_s for each in results.codecs], color=_COLOURS[OURS])
    axes.bar_label(bars, fmt="%.0f", padding=2)
    axes.set_ymargin(0.1)
    axes.set_ylabel("kbit/s")
    axes.set_title(f"{results.clips} clips in each format")
