"""What was measured, as tables for people and as data for programs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from firstword.bench.figures import quantile, table

OURS: Final = "ours"
ONE_LOCK: Final = "one lock"

BATCH: Final = "whole passage, heard when complete"
STREAMED: Final = "whole passage, heard as it is made"
SENTENCE: Final = "first sentence alone"
CLAUSE: Final = "first sentence, may begin with a clause"


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from a request until its first sound could be heard, trial by trial."""

    name: str
    seconds: Sequence[float]

    @property
    def mean(self) -> float:
        return sum(self.seconds) / len(self.seconds)

    def at(self, share: float) -> float:
        return quantile(self.seconds, share)

    def data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mean_s": round(self.mean, 4),
            "p50_s": round(self.at(0.5), 4),
            "p95_s": round(self.at(0.95), 4),
            "trials_s": [round(value, 4) for value in self.seconds],
        }


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the ladder: so many `callers`, each of which begins a turn when its last ended.

    `first_s`: from a turn's begin to its first audio. `dry`: turns whose listener would have heard
    a pause that the speech does not have. `refused`: times a request was told to come back later.
    """

    order: str
    callers: int
    first_s: Sequence[float]
    audio_s: float
    wall_s: float
    dry: int
    refused: int

    @property
    def audio_hours_per_hour(self) -> float:
        return self.audio_s / self.wall_s

    def at(self, share: float) -> float:
        return quantile(self.first_s, share)

    def data(self) -> dict[str, Any]:
        return {
            "order": self.order,
            "callers": self.callers,
            "turns": len(self.first_s),
            "first_audio_p50_s": round(self.at(0.5), 4),
            "first_audio_p95_s": round(self.at(0.95), 4),
            "audio_hours_per_hour": round(self.audio_hours_per_hour, 3),
            "ran_dry": self.dry,
            "refused": self.refused,
        }


@dataclass(frozen=True, slots=True)
class Size:
    """All clips in one format. `base64`: bytes as they are inside JSON."""

    format: str
    audio_s: float
    raw: int
    base64: int
    encode_s: float

    @property
    def kbit_per_s(self) -> float:
        return self.raw * 8 / 1000 / self.audio_s

    def data(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "bytes": self.raw,
            "base64_bytes": self.base64,
            "kbit_per_s": round(self.kbit_per_s, 1),
            "encode_ms_per_audio_s": round(1000 * self.encode_s / self.audio_s, 2),
        }


@dataclass(frozen=True, slots=True)
class Results:
    """Of one run; what was left out is empty. `about`: of what, from where and how."""

    about: dict[str, Any]
    first_audio: Sequence[Times] = ()
    ladder: Sequence[Rung] = ()
    clips: int = 0
    codecs: Sequence[Size] = ()

    def data(self) -> dict[str, Any]:
        """As one JSON object."""
        return {
            **self.about,
            "first_audio": [each.data() for each in self.first_audio],
            "ladder": [each.data() for each in self.ladder],
            "clips": self.clips,
            "codecs": [each.data() for each in self.codecs],
        }

    def text(self) -> str:
        """As tables, one below the other."""
        return "\n\n".join([*self._first_audio(), *self._ladder(), *self._codecs()])

    def _first_audio(self) -> list[str]:
        if not self.first_audio:
            return []
        slowest = self.first_audio[0].mean
        trials = len(self.first_audio[0].seconds)
        head = (f"first audio, {trials} trials", "mean s", "p50 s", "p95 s", "of the first row")
        lines = [
            (
                each.name,
                *(f"{value:.3f}" for value in (each.mean, each.at(0.5), each.at(0.95))),
                f"{each.mean / slowest:.2f}",
            )
            for each in self.first_audio
        ]
        return [table(head, lines)]

    def _ladder(self) -> list[str]:
        if not self.ladder:
            return []
        head = (
            *("callers", "order", "turns", "first audio p50 s", "p95 s"),
            *("audio hours per hour", "ran dry", "refused"),
        )
        lines = [
            (
                str(each.callers),
                each.order,
                str(len(each.first_s)),
                f"{each.at(0.5):.3f}",
                f"{each.at(0.95):.3f}",
                f"{each.audio_hours_per_hour:.2f}",
                str(each.dry),
                str(each.refused),
            )
            for each in self.ladder
        ]
        return [table(head, lines)]

    def _codecs(self) -> list[str]:
        if not self.codecs:
            return []
        head = (
            *(f"{self.clips} clips, {self.codecs[0].audio_s:.1f} s", "kB", "kB in base64"),
            *("kbit/s", "encoding ms per s"),
        )
        lines = [
            (
                each.format,
                f"{each.raw / 1000:.1f}",
                f"{each.base64 / 1000:.1f}",
                f"{each.kbit_per_s:.1f}",
                f"{1000 * each.encode_s / each.audio_s:.1f}",
            )
            for each in self.codecs
        ]
        return [table(head, lines)]
