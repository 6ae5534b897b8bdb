"""What `say` and `demo` tell about what they did: for people, and as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence

from firstword import waterfall
from firstword.cli.performance import Performance

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


def comparison(performances: Sequence[Performance]) -> str:
    """First audio of each mode, and their ratio where both spoke."""
    lines = ["First audio, counted from the first token:"]
    for performance in performances:
        ttfa = performance.waterfall.ttfa_ms
        figure = "nothing was spoken" if ttfa is None else f"{ttfa / 1000:.2f} s"
        lines.append(f"  {performance.script.mode:<7} {figure}")
    factor = ratio(performances)
    if factor is not None and factor < _CLEARLY_EARLIER:
        lines.append(
            "  Streaming spoke no earlier: this machine was busy, or the text is too short."
        )
    elif factor is not None:
        lines.append(f"  Streaming spoke {factor:.1f} times as early.")
    return "\n".join(lines)


def ratio(performances: Sequence[Performance]) -> float | None:
    """First audio of batch by that of stream; None unless both spoke."""
    first = {p.script.mode: p.waterfall.ttfa_ms for p in performances}
    stream, batch = first.get("stream"), first.get("batch")
    return batch / stream if stream and batch else None


def as_json(performances: Sequence[Performance], file: str | None) -> str:
    """One document: {"runs": […], "ratio": batch/stream or null, "out": the file or null}."""
    factor = ratio(performances)
    return json.dumps(
        {
            "runs": [performance.as_data() for performance in performances],
            "ratio": None if factor is None else round(factor, 3),
            "out": file,
        },
        indent=1,
        ensure_ascii=False,
    )
