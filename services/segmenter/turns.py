"""The parts of a session's text side: its defaults, its outputs, and one turn."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from firstword import codec
from firstword import messages as m
from services.segmenter import core

SPEED = (0.5, 2.0)
SAMPLE_RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)
PACES = ("realtime", "none")
MAX_SETTING_CHARS = 128


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a session gets that does not say otherwise."""

    voice: str = "af_heart"
    speed: float = 1.0
    lang: str = "auto"
    sample_rate: int = 24_000
    pace: str = "realtime"
    turn_idle_s: float = 30.0
    max_waiting: int = 500
    options: core.SegmenterOptions = field(default_factory=core.SegmenterOptions)


# -- outputs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ForGateway:
    """Append to the session's segments stream."""

    message: m.Segments


@dataclass(frozen=True, slots=True)
class ForListeners:
    """Append to the session's audio stream."""

    message: m.Audio


@dataclass(frozen=True, slots=True)
class CancelTurns:
    """Mark turns cancelled and publish the one answer.

    `order`: the turns that reached the gateway, oldest first; those after its last finished one
    are still to be spoken. `target`: the one to cancel, '' for all of them. `known`: what to
    answer for a target that never reached the gateway: dropped here ('waiting') or 'done'.
    """

    target: str
    order: tuple[str, ...]
    known: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A message that changes nothing, and why; counted."""

    reason: str


Output = ForGateway | ForListeners | CancelTurns | Skipped


# -- a turn ---------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Turn:
    name: str
    opened_at: str
    segmenter: core.Segmenter
    options: core.SegmenterOptions
    voice: str
    speed: float
    lang: str
    last_input: float
    traceparent: str | None = None
    next_seq: int = 0
    held: dict[int, m.Ingress] = field(default_factory=dict)
    gap_at: float | None = None
    segments: int = 0
    waiting: list[m.Segment] = field(default_factory=list)
    ended: str = ""  # the reason once no more text comes

    def snapshot(self, session: str) -> dict[str, Any]:
        """The turn in msgpack types."""
        plain = ("name", "opened_at", "voice", "speed", "lang", "traceparent", "next_seq")
        return {
            **{name: getattr(self, name) for name in (*plain, "segments", "ended")},
            "options": asdict(self.options),
            "segmenter": self.segmenter.snapshot(),
            "held": [codec.pack(self.held[seq], session) for seq in sorted(self.held)],
            "waiting": [codec.pack(segment, session) for segment in self.waiting],
        }

    @classmethod
    def restore(cls, saved: dict[str, Any], now: float) -> Turn:
        """A turn as another worker left it; its timers begin anew at `now`."""
        body = dict(saved)
        options = core.SegmenterOptions(**body.pop("options"))
        held = [codec.unpack(data, codec.INGRESS) for data in body.pop("held")]
        waiting = [codec.unpack(data, codec.SEGMENTS) for data in body.pop("waiting")]
        turn = cls(
            **{key: body[key] for key in body if key != "segmenter"},
            options=options,
            segmenter=core.Segmenter.restore(options, _begun_at(body["segmenter"], now)),
            last_input=now,
            waiting=[segment for segment in waiting if isinstance(segment, m.Segment)],
        )
        for message in held:
            if isinstance(message, m.Text | m.Flush | m.End) and message.seq is not None:
                turn.held[message.seq] = message
        turn.gap_at = now if turn.held else None
        return turn


def _begun_at(segmenter: dict[str, Any], now: float) -> dict[str, Any]:
    """A snapshot whose timers begin at `now`: the clock they were on was another process's."""
    since = None if segmenter["since"] is None else now
    return {**segmenter, "heard": now, "since": since}


def open_problem(message: m.Open) -> str | None:
    """What is wrong with the settings of an `open`, in words that say what to give."""
    if message.speed is not None and not SPEED[0] <= message.speed <= SPEED[1]:
        return f"speed is a number from {SPEED[0]} to {SPEED[1]}"
    if message.sample_rate is not None and message.sample_rate not in SAMPLE_RATES:
        return f"sample_rate is one of {', '.join(map(str, SAMPLE_RATES))}"
    if message.pace is not None and message.pace not in PACES:
        return f"pace is one of {', '.join(PACES)}"
    for name in ("voice", "lang"):
        value = getattr(message, name)
        if value is not None and not 0 < len(value) <= MAX_SETTING_CHARS:
            return f"{name} is 1 to {MAX_SETTING_CHARS} characters"
    return None


def segmenter_lang(lang: str) -> str:
    """The language code the segmenter knows: `en-us` is `en`."""
    return lang.split("-")[0].lower() or "auto"
