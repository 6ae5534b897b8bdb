"""What `say` and `demo` tell about what they did: for people, and as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from firstword import waterfall
from firstword.cli.performance import Performance
from firstword.comparison import Comparison, compare

_CLEARLY_EARLIER = 1.05  # below, it is noise, and would be shown as "1.0 times"
_ABOUT = {
    "stream": "each sentence is spoken while the next is being written",
    "batch": "the text is complete before anything is spoken",
}


def one(performance: Performance, *, width: int, ascii_only: bool) -> str:
    """The summary and the waterfall of one turn."""
    fall = performance.waterfall
    written = f"{_count(fall.tokens, 'token')} in {fall.text_ms / 1000:.1f} s"
    lines = [f"{performance.script.mode}: {_ABOUT[performance.script.mode]} ({written})", ""]
    lines.append(waterfall.render(fall, width=width, ascii_only=ascii_only))
    if not any(map(str.isalnum, performance.script.text)):
        lines.append("There is no letter or digit in the text: nothing in it can be spoken.")
    lines += _speed(performance)
    for error in performance.errors:
        what = "ERROR" if error.n is None else f"NOT SPOKEN: segment {error.n}"
        lines.append(f"{what}: {error.message} ({error.code})")
    if performance.reason != "complete":
        lines.append(f"The turn did not end as it should: {performance.reason}.")
    return "\n".join(lines)


def _speed(performance: Performance) -> list[str]:
    fall = performance.waterfall
    if fall.real_time_factor is None:
        return []
    lines = [
        f"{fall.audio_s:.1f} s of audio. "
        f"This machine needed {fall.real_time_factor:.2f} s for each second of it."
    ]
    if fall.waits_ms:
        lines.append(
            f"Played as it came, it would have had {_count(len(fall.waits_ms), 'pause')} of "
            f"{sum(fall.waits_ms) / 1000:.1f} s in all, where audio was not there in time."
        )
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)


@dataclass(frozen=True, slots=True)
class Setting:
    """Under what a comparison was made: the server, and what ratio is aimed at, if any."""

    endpoint: str
    goal: float | None = None


def comparison(performances: Sequence[Performance], setting: Setting) -> str:
    """First audio of each mode leg by leg, and their ratio where both spoke."""
    found = _compared(performances)
    first = performances[0]
    silent = [mode for mode, trials in found.trials.items() if not trials]
    lines = [
        "First audio, counted from the first token:",
        f"  {setting.endpoint}, {_voice(performances)}, {len(first.script.text)} characters, "
        f"{_count(first.waterfall.tokens, 'token')} at the same times in each mode",
        "  trials that spoke: " + ", ".join(f"{len(t)} {mode}" for mode, t in found.trials.items()),
        "",
        *(f"  {line}" for line in found.as_text().splitlines()),
        "",
        *(f"  {mode}: nothing was spoken" for mode in silent),
    ]
    factor = found.ratio
    if factor is None:
        return "\n".join(lines)
    if factor < _CLEARLY_EARLIER:
        lines.append(
            "  Streaming spoke no earlier: this machine was busy, or the text is too short."
        )
    else:
        lines.append(f"  Streaming spoke {factor:.1f} times as early.")
    lines.append(
        f"  Who gets all audio at once, when batch has made the last, waits {found.file_ratio:.1f} "
        "times as long."
    )
    if setting.goal is not None:
        reached = "reached" if factor >= setting.goal else "missed"
        lines.append(f"  The goal of {setting.goal:g} times is {reached}.")
    return "\n".join(lines)


def _voice(performances: Sequence[Performance]) -> str:
    voices = sorted({p.voice for p in performances if p.voice})
    return "voice " + ", ".join(voices) if voices else "no voice"


def _compared(performances: Sequence[Performance]) -> Comparison:
    return compare([(p.script.mode, p.waterfall) for p in performances])


def as_json(performances: Sequence[Performance], setting: Setting, file: str | None) -> str:
    """One document, see docs/CLI.md; `out` is the file or null."""
    found = _compared(performances)
    times_s = performances[0].script.times_s
    return json.dumps(
        {
            "endpoint": setting.endpoint,
            "runs": [performance.as_data() for performance in performances],
            "trace_ms": None if times_s is None else [round(at * 1000, 1) for at in times_s],
            "first_audio": found.as_data(),
            "ratio": None if found.ratio is None else round(found.ratio, 3),
            "file_ratio": None if found.file_ratio is None else round(found.file_ratio, 3),
            "goal": setting.goal,
            "out": file,
        },
        indent=1,
        ensure_ascii=False,
    )
