"""Streaming beside batch: of what the time to first audio is made, over several trials of each.

Pure: waterfalls go in, figures come out, as text for people or as plain data for programs. All
times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from firstword.bench.figures import quantile, table
from firstword.waterfall import Waterfall

LEGS: Final = {
    "first_sentence": "first segment is written",
    "rest": "rest of the text is written",
    "segmentation": "segmentation",
    "waiting": "waiting and publishing",
    "synthesis": "synthesis",
}
"""What the time to first audio is made of, in its order, and how people are told."""
_TOTAL, _LAST = "ttfa", "done"
_FIGURES = ("mean", "p50", "p95")


def legs(fall: Waterfall, *, whole: bool) -> dict[str, float] | None:
    """The legs on the way to the turn's first audio; they add up to it. None: nothing was spoken.

    `whole`: nothing was published before the last token was there. `synthesis` is the time to first
    byte as far as it was waited for: what the gateway began before the segment was certain, and
    made by then, is in no leg.
    """
    if not fall.rows:
        return None
    row = fall.rows[0]
    end = row.first_audio_ms
    mark = min(row.mark_ms or 0.0, end)
    ready = min(max(fall.text_ms, mark), end) if whole else mark
    committed = min(max(row.committed_ms or 0.0, ready), end)
    synthesis = min(end - row.synthesis_ms, end - committed)
    return {
        "first_sentence": mark,
        "rest": ready - mark,
        "segmentation": committed - ready,
        "waiting": end - committed - synthesis,
        "synthesis": synthesis,
    }


@dataclass(frozen=True, slots=True)
class Spread:
    """Some measured values, at least one. Quantiles are nearest ranks."""

    values: Sequence[float]

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    def figures(self) -> dict[str, float]:
        """Mean, p50 and p95."""
        p50, p95 = (quantile(self.values, share) for share in (0.5, 0.95))
        return dict(zip(_FIGURES, (self.mean, p50, p95), strict=True))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Trials by mode, `batch` or `stream`: legs and `done`, the last audio, of each that spoke."""

    trials: Mapping[str, Sequence[Mapping[str, float]]]

    @property
    def ratio(self) -> float | None:
        """Mean first audio of batch by that of stream; None unless both spoke."""
        return self._times_as_early(_TOTAL)

    @property
    def file_ratio(self) -> float | None:
        """The same for a caller of batch who gets all audio at once, when its last is made."""
        return self._times_as_early(_LAST)

    def _times_as_early(self, than: str) -> float | None:
        found = self._spreads()
        if "batch" not in found or "stream" not in found or not found["stream"][_TOTAL].mean:
            return None
        return found["batch"][than].mean / found["stream"][_TOTAL].mean

    def as_data(self) -> dict[str, Any]:
        """{mode: {"n": trials that spoke, "ttfa", "done" and each leg: {"mean", "p50", "p95"}}}."""
        return {
            mode: {"n": len(self.trials[mode])}
            | {
                name: {figure: round(value, 1) for figure, value in spread.figures().items()}
                for name, spread in spreads.items()
            }
            for mode, spreads in self._spreads().items()
        }

    def as_text(self) -> str:
        """Rows: legs, their sum, the last audio. Of one trial its times, else mean, p50, p95."""
        found = self._spreads()
        figures = _FIGURES[:1] if all(len(t) <= 1 for t in self.trials.values()) else _FIGURES
        head = ["ms"]
        rows = [[about] for about in (*LEGS.values(), "first audio", "last audio")]
        for mode, spreads in found.items():
            head += [mode] if len(figures) == 1 else [f"{mode} {figures[0]}", *figures[1:]]
            for row, name in zip(rows, (*LEGS, _TOTAL, _LAST), strict=True):
                row += [f"{spreads[name].figures()[figure]:.0f}" for figure in figures]
        return table(head, rows)

    def _spreads(self) -> dict[str, dict[str, Spread]]:
        """Of each mode that spoke: its legs, their sum, and the last audio."""
        return {
            mode: {name: Spread([trial[name] for trial in trials]) for name in (*LEGS, _LAST)}
            | {_TOTAL: Spread([sum(trial[leg] for leg in LEGS) for trial in trials])}
            for mode, trials in self.trials.items()
            if trials
        }


def compare(falls: Sequence[tuple[str, Waterfall]]) -> Comparison:
    """Of waterfalls, each with its mode."""
    trials: dict[str, list[dict[str, float]]] = {mode: [] for mode, _ in falls}
    for mode, fall in falls:
        found = legs(fall, whole=mode == "batch")
        if found is not None:
            trials[mode].append({**found, _LAST: fall.done_ms})
    return Comparison(trials)
