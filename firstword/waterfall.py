"""Where the time of one turn went, segment by segment: from the first token to the last audio.

All times are milliseconds on the server's clock (the ids of stream entries), counted from the
turn's first token. No clock and no socket here: what was published and what was heard goes in, a
`Waterfall` comes out, as text for people or as plain data for programs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from firstword import messages as m
from firstword.ids import id_key
from firstword.terminal import visible

AUDIBLE_WAIT_MS = 20  # shorter waits drown in any player's buffer


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of the turn's text: its characters, and when it was there."""

    text: str
    at_ms: float


@dataclass(frozen=True, slots=True)
class Heard:
    """One event of the session and when it was published."""

    at_ms: float
    message: m.Audio


@dataclass(slots=True)
class Row:
    """The way of one segment. Times are None for what has not happened or cannot be known.

    `mark_ms` is when the token with the segment's last character (its mark) was there, and
    `mark_token` that token's number, from 1. `committed_token` and `first_audio_token` are the
    numbers of the last token that was there by then.
    """

    n: int
    text: str
    first_token_ms: float | None
    mark_ms: float | None
    mark_token: int | None
    committed_ms: float | None
    synthesis_ms: float
    first_audio_ms: float
    done_ms: float | None = None
    audio_s: float = 0.0
    committed_token: int | None = None
    first_audio_token: int | None = None


@dataclass(slots=True)
class Waterfall:
    """One turn. `waits_ms`: the pauses that a listener who plays at once would have heard."""

    turn: str
    tokens: int
    text_ms: float
    rows: list[Row] = field(default_factory=list)
    waits_ms: list[float] = field(default_factory=list)

    @property
    def ttfa_ms(self) -> float | None:
        """First token to first audio; None when nothing was spoken."""
        return self.rows[0].first_audio_ms if self.rows else None

    @property
    def audio_s(self) -> float:
        return sum(row.audio_s for row in self.rows)

    @property
    def done_ms(self) -> float:
        """First token to the last audio, or to the last token if that was later."""
        return max([self.text_ms, *(row.done_ms or row.first_audio_ms for row in self.rows)])

    @property
    def real_time_factor(self) -> float | None:
        """Time in synthesis by seconds of audio made; None when nothing was."""
        busy = sum((row.done_ms or row.first_audio_ms) - row.synthesis_ms for row in self.rows)
        return busy / 1000 / self.audio_s if self.audio_s else None

    def as_data(self) -> dict[str, Any]:
        """Everything as plain data, times rounded to 0.1 ms."""
        data = {
            "turn": self.turn,
            "tokens": self.tokens,
            "text_ms": self.text_ms,
            "ttfa_ms": self.ttfa_ms,
            "done_ms": self.done_ms,
            "audio_s": self.audio_s,
            "real_time_factor": self.real_time_factor,
            "waits_ms": self.waits_ms,
            "segments": [asdict(row) for row in self.rows],
        }
        return {name: _rounded(value) for name, value in data.items()}


def build(
    turn: str, tokens: Sequence[Token], events: Iterable[Heard], sample_rate: int
) -> Waterfall:
    """The waterfall of `turn` from its tokens (at least one) and the events of its session."""
    zero = tokens[0].at_ms
    marks = _Marks(tokens)
    rows: dict[int, Row] = {}
    chunks: list[tuple[float, float]] = []
    for event in events:
        message, at_ms = event.message, event.at_ms - zero
        if getattr(message, "turn", None) != turn:
            continue
        match message:
            case m.SegmentStarted():
                rows.setdefault(message.n, _row(message, at_ms, marks, zero))
            case m.AudioChunk() if message.n in rows:
                seconds = len(message.data) / 2 / sample_rate
                chunks.append((at_ms, seconds * 1000))
                rows[message.n].audio_s = max(
                    rows[message.n].audio_s, message.offset / sample_rate + seconds
                )
            case m.SegmentDone() if message.n in rows:  # a silent segment never starts
                rows[message.n].done_ms = at_ms
    return Waterfall(
        turn=turn,
        tokens=len(tokens),
        text_ms=tokens[-1].at_ms - zero,
        rows=[rows[n] for n in sorted(rows)],
        waits_ms=_waits(chunks),
    )


class _Marks:
    """Which token a character of the turn came with."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._owner = [number for number, token in enumerate(tokens) for _ in token.text]
        self._tokens = tokens
        self._times = [token.at_ms for token in tokens]

    def by(self, at_ms: float) -> int:
        """The number of the last token that was there at this time."""
        return bisect_right(self._times, at_ms)

    def at(self, character: int) -> tuple[float | None, int | None]:
        """When that character was there, and its token's number from 1."""
        if not 0 <= character < len(self._owner):
            return None, None
        number = self._owner[character]
        return self._tokens[number].at_ms, number + 1


def _row(started: m.SegmentStarted, at_ms: float, marks: _Marks, zero: float) -> Row:
    first_token, _ = marks.at(started.start)
    mark, mark_token = marks.at(started.end - 1)
    committed = float(id_key(started.committed_at)[0]) if started.committed_at else None
    return Row(
        n=started.n,
        text=started.text,
        first_token_ms=None if first_token is None else first_token - zero,
        mark_ms=None if mark is None else mark - zero,
        mark_token=mark_token,
        committed_ms=None if committed is None else committed - zero,
        synthesis_ms=at_ms - started.ttfb_ms,
        first_audio_ms=at_ms,
        committed_token=None if committed is None else marks.by(committed),
        first_audio_token=marks.by(at_ms + zero),
    )


def _waits(chunks: Sequence[tuple[float, float]]) -> list[float]:
    """Pauses of a player that starts with the first chunk and waits whenever it runs dry."""
    waits: list[float] = []
    plays_until = chunks[0][0] if chunks else 0.0
    for arrived, length in chunks:
        if arrived - plays_until >= AUDIBLE_WAIT_MS:
            waits.append(arrived - plays_until)
        plays_until = max(plays_until, arrived) + length
    return waits


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, 1) if abs(value) >= 100 else round(value, 3)
        case list():
            return [_rounded(item) for item in value]
        case dict():
            return {name: _rounded(item) for name, item in value.items()}
    return value


# -- for people -----------------------------------------------------------------------------------

_LABEL = 5
_SPANS = ("text being written", "waiting for its turn", "synthesis", "audio arriving")
_UNICODE = "░·▒█"
_ASCII = ".-=#"


def render(waterfall: Waterfall, *, width: int = 100, ascii_only: bool = False) -> str:
    """The waterfall as lines of at most `width` columns: bars, then the same as figures."""
    cells = _ASCII if ascii_only else _UNICODE
    if not waterfall.rows:
        return "  nothing was spoken\n"
    bars = max(20, width - _LABEL - 36)
    scale = bars / max(waterfall.done_ms, 1.0)
    lines = [" " * _LABEL + _axis(waterfall.done_ms, bars, scale)]
    for row in waterfall.rows:
        bar = _bar(row, bars, scale, cells).ljust(bars)
        lines.append(f"{row.n:>3}  {bar}  {_shorten(row.text, width - _LABEL - bars - 2)}")
    legend = zip(cells, _SPANS, strict=True)
    lines += ["     " + "   ".join(f"{cell} {what}" for cell, what in legend), ""]
    lines.append(
        "    first token  mark (token)  committed (token)  synthesis  first audio (token)"
        "     done    audio"
    )
    lines += [_figures(row) for row in waterfall.rows]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _axis(total_ms: float, bars: int, scale: float) -> str:
    """Labels of whole seconds above the bars."""
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 10**6) if s * 1000 * scale >= 8)
    line = [" "] * bars
    for second in range(0, int(total_ms / 1000) + 1, step):
        at = int(second * 1000 * scale)
        label = f"{second} s"
        if at + len(label) <= bars:
            line[at : at + len(label)] = label
    return "".join(line)


def _bar(row: Row, bars: int, scale: float, cells: str) -> str:
    """One character per slice of time; what came last wins where several share a slice."""
    done = row.done_ms if row.done_ms is not None else row.first_audio_ms
    committed = row.committed_ms if row.committed_ms is not None else row.synthesis_ms
    begin = row.first_token_ms if row.first_token_ms is not None else committed
    edges = [begin, committed, row.synthesis_ms, row.first_audio_ms, done]
    line = [" "] * bars
    for (start, end), cell in zip(pairwise(edges), cells, strict=True):
        first = min(max(int(start * scale), 0), bars - 1)
        last = min(max(int(end * scale), 0), bars - 1)
        if end > start or cell == cells[-1]:
            line[first : last + 1] = cell * (last + 1 - first)
    return "".join(line)


def _figures(row: Row) -> str:
    mark = _with_token(row.mark_ms, row.mark_token)
    committed = _with_token(row.committed_ms, row.committed_token)
    first_audio = _with_token(row.first_audio_ms, row.first_audio_token)
    return (
        f"{row.n:>3} {_seconds(row.first_token_ms):>11} {mark:>13} {committed:>18}"
        f" {_seconds(row.synthesis_ms):>10} {first_audio:>20}"
        f" {_seconds(row.done_ms):>8} {row.audio_s:>6.2f} s"
    )


def _with_token(milliseconds: float | None, token: int | None) -> str:
    return f"{_seconds(milliseconds)} ({token or '-'})"


def _seconds(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.2f} s"


def _shorten(text: str, length: int) -> str:
    text = visible(" ".join(text.split()))
    return text if len(text) <= length else text[: max(0, length - 3)].rstrip() + "..."
