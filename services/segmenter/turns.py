"""The parts of a session's text side: its defaults, its outputs, and one turn."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from firstword import codec
from firstword import messages as m
from services.segmenter import core
from services.segmenter.tables import languages

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
    refused: str = ""  # what was last said of a bad setting on its text: once, not at every token

    def snapshot(self, session: str) -> dict[str, Any]:
        """The turn in msgpack types."""
        plain = (
            "name",
            "opened_at",
            "voice",
            "speed",
            "lang",
            "traceparent",
            "next_seq",
            "refused",
        )
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
            held={
                message.seq: message
                for message in held
                if isinstance(message, m.Text | m.Flush | m.End) and message.seq is not None
            },
        )
        turn.gap_at = now if turn.held else None
        return turn


def _begun_at(segmenter: dict[str, Any], now: float) -> dict[str, Any]:
    """A snapshot whose timers begin at `now`: the clock they were on was another process's."""
    since = None if segmenter["since"] is None else now
    return {**segmenter, "heard": now, "since": since}


# -- settings -------------------------------------------------------------------------------------


def setting_problem(message: m.Open | m.Text) -> str:
    """What is wrong with the settings of a message, in words that say what to give; '' if nothing.

    `voice`, `speed` and `lang` may stand on both; the others on an `open` alone.
    """
    if message.speed is not None and not SPEED[0] <= message.speed <= SPEED[1]:
        return f"speed is a number from {SPEED[0]} to {SPEED[1]}"
    for name, value in (("voice", message.voice), ("lang", message.lang)):
        if value is not None and not 0 < len(value) <= MAX_SETTING_CHARS:
            return f"{name} is 1 to {MAX_SETTING_CHARS} characters"
    return _open_problem(message) if isinstance(message, m.Open) else ""


def _open_problem(message: m.Open) -> str:
    if message.sample_rate is not None and message.sample_rate not in SAMPLE_RATES:
        return f"sample_rate is one of {', '.join(map(str, SAMPLE_RATES))}"
    if message.pace is not None and message.pace not in PACES:
        return f"pace is one of {', '.join(PACES)}"
    options = segmenter_options(message)
    if not isinstance(options, dict):
        return "meta.segmenter is a map of options"
    problems = (_option_problem(name, value) for name, value in options.items())
    return next((problem for problem in problems if problem), "")


def segmenter_options(message: m.Open) -> Any:
    """What an `open` says of the segmenter: {} if nothing."""
    return (message.meta or {}).get("segmenter", {})


_CHOICES = {"mode": get_args(core.Mode), "skip_code": get_args(core.SkipCode)}
_COUNTS = ("min_chars", "max_chars", "first_clause")
_SECONDS = ("max_wait", "stall")
_FLAGS = ("merge_first",)
MAX_COUNT = 100_000
WAIT_S = (0.05, 60)  # a shorter one would have us look at text that cannot be cut all the time


def _option_problem(name: str, value: Any) -> str:
    kind = type(value)
    if name in _CHOICES:
        fits, wanted = value in _CHOICES[name], f"one of {', '.join(_CHOICES[name])}"
    elif name in _COUNTS:
        fits = kind is int and 0 <= value <= MAX_COUNT
        wanted = f"a whole number from 0 to {MAX_COUNT}"
    elif name in _SECONDS:
        fits = kind in (int, float) and (value == 0 or WAIT_S[0] <= value <= WAIT_S[1])
        wanted = f"a number of seconds from {WAIT_S[0]} to {WAIT_S[1]}, or 0"
    elif name in _FLAGS:
        fits, wanted = kind is bool, "true or false"
    else:
        return f"meta.segmenter takes {', '.join((*_CHOICES, *_COUNTS, *_SECONDS, *_FLAGS))}"
    return "" if fits else f"meta.segmenter.{name} is {wanted}"


def segmenter_lang(lang: str) -> str:
    """The language code the segmenter knows: `en-us` is `en`, and so is what it does not know."""
    code = lang.lower().replace("_", "-").split("-")[0]
    return code if code == "auto" or code in languages() else "en"


def error(
    code: str,
    message: str,
    *,
    retryable: bool = False,
    turn: str | None = None,
    expected: int | None = None,
) -> ForListeners:
    """Something its listeners and publishers must know; the session goes on."""
    return ForListeners(
        m.ErrorEvent(code=code, message=message, retryable=retryable, turn=turn, expected=expected)
    )
