"""A session's text side on the server: load it, commit to it, leave it."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack

from firstword import codec, keys, telemetry
from firstword import messages as m
from firstword.errors import BrokenState, LeaseLost, StateLost
from firstword.ids import START, seconds_between
from firstword.outbox import NO_MORE, TAKEN_FIELDS
from firstword.ownership import offer
from firstword.streams import Streams
from firstword.tracing import TurnTrace, at
from services.segmenter.session import Session
from services.segmenter.turns import (
    CancelTurns,
    Defaults,
    ForGateway,
    ForListeners,
    Output,
    Skipped,
)

GATEWAY = "gateway"
CANCELS_KEPT = 16
NO_CAPACITY_S = 10.0
"""How long a session may be without a gateway before its listeners are told: for so long the
gateways may be busy taking over from one that died."""
NO_CAPACITY = m.ErrorEvent(
    code="no_capacity",
    message="no gateway has room for this session: it waits, and is spoken once one has",
    retryable=True,
)


@dataclass(slots=True, eq=False)
class Held:
    """A session that this worker owns, and how much of it the server has."""

    session: Session
    token: str
    rev: int
    position: str
    """Last ingress entry that is committed with the state."""
    seen: str
    """Last ingress entry handled; beyond `position` the server does not know of it yet."""
    pending_from: str | None = None
    pending_since: float = 0.0
    used_at: float = 0.0
    cancels: deque[str] = field(default_factory=lambda: deque(maxlen=CANCELS_KEPT))
    """Entry ids of the last cancels that were handled."""
    told: dict[str, bytes] = field(default_factory=dict)
    """The fields for publishers, as they are stored."""
    offered: bool = False
    """Whether it was offered to the gateways."""
    unheard: bool = False
    """Whether it may have work and no gateway that knows of it."""
    unheard_since: float | None = None
    """Since when; infinite once its listeners have been told."""

    def note(self, entry_id: str, now: float) -> None:
        """An entry was handled and awaits its commit."""
        self.seen = entry_id
        if self.pending_from is None:
            self.pending_from = entry_id
            self.pending_since = now


async def load(
    streams: Streams,
    name: str,
    token: str,
    worker: str,
    defaults: Defaults,
    now: float,
    *,
    anew: bool = False,
) -> Held:
    """Become the only writer of this session's text side, and continue from its stored state.

    Raises BrokenState if that cannot be read; with `anew` it is ignored.
    """
    saved = await streams.acquire([keys.text_state(name)], token, worker)
    session = Session(name, defaults)
    if "state" in saved and not anew:
        try:
            session = _restore(name, saved, defaults, now)
        except Exception as error:
            raise BrokenState(name, saved["state"]) from error
    position = saved.get("position", START.encode()).decode()
    held = Held(session, token, int(saved.get("rev", b"0")), position, position, used_at=now)
    held.told = {name: saved[name] for name in TAKEN_FIELDS if name in saved}
    if "cancels" in saved:
        held.cancels.extend(msgpack.unpackb(saved["cancels"]))
    return held


def _restore(name: str, saved: Mapping[str, bytes], defaults: Defaults, now: float) -> Session:
    body = msgpack.unpackb(saved["state"], raw=False, unicode_errors="surrogateescape")
    body["finished"] = msgpack.unpackb(saved["finished"])
    return Session.restore(name, defaults, body, now)


async def commit(streams: Streams, held: Held, outputs: list[Output]) -> None:
    """Store outputs, state and position in one step; wake the session's gateway.

    Raises LeaseLost if another worker owns the session's text side now, StateLost if the server
    no longer has it as we left it, BrokenState if it cannot be encoded. Then nothing was written.
    """
    name = held.session.name
    for output in outputs:
        if isinstance(output, Skipped):
            telemetry.skipped.labels(output.reason).inc()
    written = [o for o in outputs if not isinstance(o, Skipped)]
    to_gateway = any(isinstance(o, ForGateway | CancelTurns) for o in written)
    if to_gateway and not held.offered:
        # Before the commit: a session with work and without a worker cannot come about.
        await offer(streams, GATEWAY, [name])
        held.offered = True
    try:
        body = held.session.snapshot()
        taken = _taken(held, body)
        state = msgpack.packb(body, unicode_errors="surrogateescape")
        made = [word for output in written for word in _arguments(output, name)]
    except Exception as error:
        raise BrokenState(name) from error
    key_list = [
        keys.text_state(name),
        keys.segments(name),
        keys.audio(name),
        keys.speech_state(name),
    ]
    fields = ["state", state, "position", held.seen, "waiting", held.session.waiting]
    for field_name, value in taken.items():
        if held.told.get(field_name) != value:
            fields += [field_name, value]
    args = [held.token, held.rev + 1, *fields, "", *made]
    status, worker, last_id, queued = await streams.script("commit_text", key_list, args)
    if status == -1:
        telemetry.fenced_commits.labels("segmenter").inc()
        raise LeaseLost(f"session {name}")
    if status == -2:
        raise StateLost(f"session {name}")
    held.rev += 1
    held.told = taken
    held.session.committed(queued)
    held.position = held.seen
    held.pending_from = None
    _measure(name, written, last_id.decode())
    if to_gateway:
        await _call(streams, held, worker)


def _taken(held: Held, body: dict[str, Any]) -> dict[str, bytes]:
    """The fields for publishers, see `firstword.outbox.Taken`. Each is written when it changes. The
    finished turns are moved here from the state, which does not repeat them."""
    turns = {turn["name"]: NO_MORE if turn["ended"] else turn["next_seq"] for turn in body["turns"]}
    values = (turns, body.pop("finished"), list(held.cancels))
    return dict(zip(TAKEN_FIELDS, map(msgpack.packb, values), strict=True))


async def call_gateway(streams: Streams, held: Held, now: float) -> None:
    """Have a gateway look at the session if work waits there.

    It may have reached none: a worker may have died between its commit and its call, or the
    session was offered to a gateway that was just leaving. If all are full, listeners are told.
    """
    name = held.session.name
    state = keys.speech_state(name)
    worker, position = await streams.commands.hmget(state, "worker", "position")
    done = START if position is None else position.decode()
    if await streams.range(keys.segments(name), done, count=1):
        await _call(streams, held, worker)
    else:
        held.unheard = False
    if not held.unheard:
        held.unheard_since = None
    elif held.unheard_since is None:
        held.unheard_since = now
    elif now - held.unheard_since >= NO_CAPACITY_S:
        telemetry.count_error(NO_CAPACITY.code)
        telemetry.logger().warning("error_told", session=name, code=NO_CAPACITY.code)
        await streams.tell(name, NO_CAPACITY)
        held.unheard_since = math.inf  # once


async def _call(streams: Streams, held: Held, worker: bytes | None) -> None:
    name = held.session.name
    if worker:
        await streams.ring(GATEWAY, worker.decode(), name)
    else:
        await offer(streams, GATEWAY, [name])
    held.unheard = not worker


def _arguments(output: Output, name: str) -> list[Any]:
    match output:
        case ForGateway(message):
            return ["segments", codec.pack(message, name), ""]
        case ForListeners(message):
            return ["audio", codec.pack(message, name), ""]
        case CancelTurns(target, order, known, played, dropped, _):
            cancel = ["cancel", target, " ".join((known, *order))]
            if dropped:
                cancel = ["dropped", " ".join(dropped), "", *cancel]
            if played is not None:
                cancel = ["played", played.turn, f"{played.n} {played.samples}", *cancel]
            return cancel
        case _:
            return []


def _measure(name: str, outputs: Sequence[Output], last_id: str) -> None:
    for output in outputs:
        match output:
            case ForGateway(m.Segment(first=True, turn=turn, opened_at=opened_at) as segment):
                took_s = max(0.0, seconds_between(opened_at, last_id))
                trace = TurnTrace(segment.traceparent, name, turn, opened_at)
                telemetry.segmentation.observe(took_s, trace.exemplar)
                trace.record("segmentation", at(opened_at), at(last_id))
            case ForListeners(m.ErrorEvent(code=code, turn=of_turn)):
                telemetry.count_error(code)
                telemetry.logger().warning("error_told", session=name, turn=of_turn, code=code)
            case CancelTurns(dropped=dropped, begun=begun):
                telemetry.cancels.inc()
                for turn, (opened_at, traceparent) in zip(dropped, begun, strict=True):
                    trace = TurnTrace(traceparent, name, turn, opened_at)
                    trace.record("turn", at(opened_at), time.time(), outcome="cancelled")
            case _:
                pass


async def leave(streams: Streams, held: Held, expiry_s: int) -> None:
    """Release a session with nothing open; its state expires `expiry_s` after its last use."""
    key = keys.text_state(held.session.name)
    await streams.vacate([key], held.token, "", [expiry_s])
