"""What goes wrong on purpose, and exactly when.

A fault is written `KIND[=VALUE][@STREAMS][:EVENT]`: `429@1-3`, `abort@2:5`, `delay=200`.

* STREAMS says which streams it meets, counted from 1 since it was switched on: `@2`, `@1-3`, `@4-`.
  Without it, all: those too that are open already.
* EVENT says after which event of a stream: `:5` or `:out5` is the fifth part that goes to the
  client, `:in5` the fifth that came from it. Without it a stream is hit as soon as it is open, and
  `split` and `delay` hold for every part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from firstword.errors import FirstwordError


class FaultError(FirstwordError):
    """A fault that cannot be read; the message says how it is written."""


class Kind(Enum):
    """Every fault; the value is how it is written."""

    THROTTLED = "429"
    MODEL_ERROR = "424"
    UNAVAILABLE = "503"
    INTERNAL = "500"
    NEVER_ANSWER = "never-answer"
    SLOW_OPEN = "slow-open"
    ABORT = "abort"
    RST = "rst"
    GOAWAY = "goaway"
    CUT = "cut"
    NO_WINDOW = "no-window"
    MAX_DURATION = "max-duration"
    SPLIT = "split"
    DELAY = "delay"


@dataclass(frozen=True)
class _Rule:
    about: str
    default: float | None = None  # of the value; None: it must be given, if `unit` says one
    unit: str = ""
    event: bool = False  # whether it can wait for an event


RULES = {
    Kind.THROTTLED: _Rule("refuse the stream with 429 ThrottlingException"),
    Kind.MODEL_ERROR: _Rule("refuse it with 424 ModelError, as when the container refuses"),
    Kind.UNAVAILABLE: _Rule("refuse it with 503 ServiceUnavailableError"),
    Kind.INTERNAL: _Rule("refuse it with 500 InternalServerError"),
    Kind.NEVER_ANSWER: _Rule("take the request and never answer"),
    Kind.SLOW_OPEN: _Rule("answer the opening MS milliseconds later", unit="MS"),
    Kind.ABORT: _Rule("break the TCP connection off (a RST packet)", event=True),
    Kind.RST: _Rule("RST_STREAM with CODE (default 2, INTERNAL_ERROR)", 2, "CODE", event=True),
    Kind.GOAWAY: _Rule("GOAWAY: open streams go on, new ones are refused", event=True),
    Kind.CUT: _Rule("send half of a part, then abort (default: the first part)", event=True),
    Kind.NO_WINDOW: _Rule("give no flow-control window back from here on", event=True),
    Kind.MAX_DURATION: _Rule("end the stream S seconds after it opened", unit="S"),
    Kind.SPLIT: _Rule("send parts in DATA frames of BYTES (default 5)", 5, "BYTES", event=True),
    Kind.DELAY: _Rule("send parts MS milliseconds later", unit="MS", event=True),
}
_REFUSALS = {
    Kind.THROTTLED: (429, "ThrottlingException", "Rate exceeded"),
    Kind.MODEL_ERROR: (424, "ModelError", "Failed to establish WebSocket connection"),
    Kind.UNAVAILABLE: (503, "ServiceUnavailableError", "The service is unavailable. Try again."),
    Kind.INTERNAL: (500, "InternalServerError", "An internal error occurred. Try again."),
}
_STRIKES = (Kind.GOAWAY, Kind.RST, Kind.ABORT)
_WRITTEN = re.compile(
    r"(?P<kind>[a-z0-9-]+?)(?:=(?P<value>\d+(?:\.\d+)?))?"
    r"(?:@(?P<first>\d+)(?P<to>-(?P<last>\d*))?)?"
    r"(?::(?P<side>in|out)?(?P<event>\d+))?"
)


@dataclass(frozen=True)
class Fault:
    """One fault as it was written."""

    kind: Kind
    value: float = 0.0
    first: int | None = None
    """First stream that it meets; None for all streams."""
    last: int | None = None
    """Last stream that it meets; None for no end."""
    event: int | None = None
    incoming: bool = False
    """Whether `event` counts what the client sends."""


def parse(text: str) -> Fault:
    """Raises FaultError."""
    written = _WRITTEN.fullmatch(text.strip())
    try:
        kind = Kind(written["kind"]) if written else None
    except ValueError:
        kind = None
    if written is None or kind is None:
        kinds = ", ".join(kind.value for kind in Kind)
        raise _wrong(text, f"must be KIND[=VALUE][@STREAMS][:EVENT], KIND one of {kinds}")
    rule = RULES[kind]
    if written["value"] is not None and not rule.unit:
        raise _wrong(text, f"{kind.value} takes no value")
    if written["value"] is None and rule.unit and rule.default is None:
        raise _wrong(text, f"write {kind.value}={rule.unit}")
    if written["event"] is not None and not rule.event:
        raise _wrong(text, f"{kind.value} is about the whole stream and takes no event")
    value = float(written["value"] or rule.default or 0)
    if kind is Kind.SPLIT and value < 1:
        raise _wrong(text, "a DATA frame has at least one byte")
    first = int(written["first"]) if written["first"] else None
    last = first if not written["to"] else int(written["last"]) if written["last"] else None
    event = int(written["event"]) if written["event"] else None
    if first == 0 or event == 0 or (first and last and last < first):
        raise _wrong(text, "streams and events are counted from 1, upwards")
    incoming = written["side"] == "in"
    if incoming and kind in (Kind.CUT, Kind.SPLIT, Kind.DELAY):
        raise _wrong(text, f"{kind.value} is about parts that go to the client")
    return Fault(kind, value, first, last, event, incoming)


def _wrong(text: str, why: str) -> FaultError:
    return FaultError("bad_fault", f"fault {text!r}: {why}")


class _Active:
    """A fault that is switched on, and how many streams were opened since."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.opened = 0


class Faults:
    """What is switched on now. It may change at any time, also for streams that are open."""

    def __init__(self, faults: Sequence[str] = ()) -> None:
        self._active: list[_Active] = []
        for text in faults:
            self.add(text)

    def add(self, text: str) -> Fault:
        """Switch a fault on. Raises FaultError."""
        fault = parse(text)
        self._active.append(_Active(fault))
        return fault

    def clear(self) -> None:
        """Switch all of them off."""
        self._active.clear()

    def opened(self) -> StreamFaults:
        """Count one more stream; returns what it will meet."""
        met = set()
        for active in self._active:
            active.opened += 1
            first, last = active.fault.first, active.fault.last
            if first is not None and first <= active.opened <= (last or active.opened):
                met.add(active)
        return StreamFaults(self._active, met)


class StreamFaults:
    """The faults of one stream, asked at each of its steps."""

    def __init__(self, active: list[_Active], met: set[_Active]) -> None:
        self._active = active
        self._met = met
        self._struck: set[_Active] = set()

    def refusal(self) -> tuple[int, str, str] | None:
        """Status, name and message of the answer instead of a stream."""
        kinds = [active.fault.kind for active in self._mine(*_REFUSALS)]
        return _REFUSALS[kinds[0]] if kinds else None

    def never_answers(self) -> bool:
        """Whether the request is left without any answer."""
        return any(self._mine(Kind.NEVER_ANSWER))

    def open_delay_s(self) -> float:
        """How much later the opening is answered."""
        return sum(active.fault.value for active in self._mine(Kind.SLOW_OPEN)) / 1000

    def max_duration_s(self, default: float) -> float:
        """How long the stream may live."""
        caps = [active.fault.value for active in self._mine(Kind.MAX_DURATION)]
        return min([*caps, default])

    def out_delay_s(self, number: int) -> float:
        """How much later the part of that number goes to the client."""
        return sum(fault.value for fault in self._at(Kind.DELAY, number)) / 1000

    def piece_bytes(self, number: int) -> int | None:
        """The size of the DATA frames for the part of that number, if it is split."""
        return min((int(fault.value) for fault in self._at(Kind.SPLIT, number)), default=None)

    def cuts(self, number: int) -> bool:
        """Whether the connection breaks off in the middle of the part of that number."""
        return any((active.fault.event or 1) == number for active in self._mine(Kind.CUT))

    def withholds(self, ins: int, outs: int) -> bool:
        """Whether no window is given back after so many parts each way."""
        return any(_due(active.fault, ins, outs) for active in self._mine(Kind.NO_WINDOW))

    def strike(self, ins: int, outs: int) -> list[Fault]:
        """What breaks now, after so many parts each way; each fault once in a stream."""
        due = [
            active
            for active in self._mine(*_STRIKES)
            if active not in self._struck and _due(active.fault, ins, outs)
        ]
        self._struck.update(due)
        return sorted(
            (active.fault for active in due), key=lambda fault: _STRIKES.index(fault.kind)
        )

    def _mine(self, *kinds: Kind) -> Iterator[_Active]:
        for active in self._active:
            if active.fault.kind in kinds and (active.fault.first is None or active in self._met):
                yield active

    def _at(self, kind: Kind, number: int) -> Iterator[Fault]:
        for active in self._mine(kind):
            if active.fault.event in (None, number):
                yield active.fault


def _due(fault: Fault, ins: int, outs: int) -> bool:
    return (ins if fault.incoming else outs) >= (fault.event or 0)
