"""One session's text side: turns in order, each text once, segments numbered as they leave.

Pure: takes messages and `now` (monotonic seconds), returns outputs, and says when it wants to be
called again. The shell stores `snapshot()` with every commit, so any worker can continue from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from firstword import messages as m
from firstword.ids import id_key
from services.segmenter import core
from services.segmenter.opening import Opening
from services.segmenter.options import setting_problem, without_bad_settings
from services.segmenter.outlet import Outlet
from services.segmenter.resend import Heard, Input, Resend, Resumes
from services.segmenter.turns import (
    GAP_WAIT_S,
    CancelTurns,
    Defaults,
    ForGateway,
    Output,
    Skipped,
    Turn,
    error,
    note_input,
    played_of,
)

FINISHED_KEPT = 256
ORDER_KEPT = 64
MAX_HELD = 1000
MAX_FIRST_N = 2**40  # a publisher's number is believed within reason


class Session:
    """One session's text side. Feed it the ingress messages of this session in entry order."""

    def __init__(self, name: str, defaults: Defaults) -> None:
        self.name = name
        self._defaults = defaults
        self._opening = Opening.begin(defaults)
        self._last_src = ""
        self._outlet = Outlet()
        self._turns: list[Turn] = []
        self._finished: deque[str] = deque(maxlen=FINISHED_KEPT)
        self._order: deque[str] = deque(maxlen=ORDER_KEPT)
        self._resumes = Resumes()
        self._refused_unnamed = False

    @property
    def opened(self) -> bool:
        """Whether gateways know of it: it was opened, or spoke, and has not been closed since."""
        return self._opening.opened

    @property
    def busy(self) -> bool:
        """Whether a turn is open: its end has not left yet."""
        return bool(self._turns)

    def timer(self) -> float | None:
        """When `tick` wants to be called, None if never."""
        idle_s = self._defaults.turn_idle_s
        return min((at for turn in self._turns for at in turn.deadlines(idle_s)), default=None)

    def committed(self, queued: int) -> None:
        """All outputs are stored; `queued` entries now wait for the gateway."""
        self._outlet.stored, self._outlet.made = queued, 0

    def looked(self, queued: int) -> None:
        """`queued` entries wait for the gateway now, not counting those that are not stored yet."""
        self._outlet.stored = queued

    @property
    def full(self) -> bool:
        """Whether the most that may wait to be spoken does, as far as is known."""
        return self._outlet.queued + self.waiting >= self._defaults.max_queued

    @property
    def waiting(self) -> int:
        """Segments that wait for earlier turns."""
        return sum(len(turn.waiting) for turn in self._turns)

    # -- input ------------------------------------------------------------------------------------

    def handle(self, entry_id: str, messages: Sequence[m.Ingress], now: float) -> list[Output]:
        """Take the messages of one entry; `entry_id` is its place on the ingress stream."""
        src = messages[0].src
        if src is not None:
            if self._last_src and id_key(src) <= id_key(self._last_src):
                return [Skipped("repeat")]
            self._last_src = src
        return [out for message in messages for out in self._take(entry_id, message, now)]

    def _take(self, entry_id: str, message: m.Ingress, now: float) -> list[Output]:
        match message:
            case m.Open():
                return self._open(message)
            case m.Text() | m.Flush() | m.End():
                return self._on_turn(entry_id, message, now)
            case m.Cancel():
                return self._cancel(message)
            case m.Resume():
                return self._resume(message, now)
            case _:
                return self._close(now)

    def tick(self, now: float) -> list[Output]:
        """Timers: a stalled token stream, a gap that nobody filled, an abandoned turn."""
        out: list[Output] = []
        for turn in [t for t in self._turns if not t.ended]:
            if turn.gap_at is not None and now >= turn.gap_at + GAP_WAIT_S:
                turn.next_seq = min(turn.held)
                told = "part of the text never came; the turn goes on without it"
                out.append(error("gap_skipped", told, turn=turn.name))
                out += self._drain(turn, now)
            if turn.resend is not None and now >= turn.resend.until:
                out += self._release(turn, turn.resend, now)
            if turn.ended:
                continue
            at = turn.segmenter.timer()
            if at is not None and now >= at:
                out += self._speak(turn, turn.segmenter.idle(now))
            if turn.gap_at is None and now >= turn.last_input + self._defaults.turn_idle_s:
                out += self._end(turn, "abandoned", now)
        return out + self._advance()

    # -- open and close ---------------------------------------------------------------------------

    def _open(self, message: m.Open) -> list[Output]:
        problem = self._opening.take(message)
        return [error("bad_setting", problem)] if problem else self._announce()

    def _announce(self) -> list[Output]:
        self._opening.opened = True
        return [ForGateway(self._opening.settings)]

    def _close(self, now: float) -> list[Output]:
        self._opening.refused = ""
        if not self._opening.opened:
            return [Skipped("nothing_open")]
        out: list[Output] = []
        for turn in list(self._turns):
            if not turn.ended:
                out += self._end(turn, "complete", now)
        out += self._advance()
        self._opening.opened = False
        return [*out, ForGateway(m.SessionClose())]

    # -- text, flush, end -------------------------------------------------------------------------

    def _on_turn(self, entry_id: str, message: Input, now: float) -> list[Output]:
        if self._opening.refused:
            return self._refuse(message)
        turn = self._turn_for(entry_id, message, now)
        if isinstance(turn, Skipped):
            return [turn]
        note_input(turn, self._turns, message, now)
        opened = [] if self._opening.opened else self._announce()
        if message.seq is None:
            return [*opened, *self._apply(turn, message, now), *self._advance()]
        if message.seq < turn.next_seq or message.seq in turn.held:
            return [*opened, Skipped("repeat")]
        if message.seq > turn.next_seq:
            return [*opened, *self._hold(turn, message.seq, message, now)]
        turn.held[message.seq] = message
        return [*opened, *self._drain(turn, now), *self._advance()]

    def _refuse(self, message: Input) -> list[Output]:
        """Text of a session whose `open` was refused: an error once a turn, not at every token."""
        name = message.turn
        known = self._opening.told if name is None else name in self._finished
        if known or not isinstance(message, m.Text):
            return [Skipped("not_opened")]
        if name is None:
            self._opening.told = True
        else:
            self._finished.append(name)
        return [error("not_opened", f"`open` was refused: {self._opening.refused}", turn=name)]

    def _turn_for(self, entry_id: str, message: Input, now: float) -> Turn | Skipped:
        name = message.turn
        if name is None:
            last = next((t for t in reversed(self._turns) if not t.ended), None)
            if last is not None:
                return last
            if not isinstance(message, m.Text):
                return Skipped("nothing_open")
            told, self._refused_unnamed = self._refused_unnamed, self.full
            if told and self.full:
                return Skipped("overloaded")  # one error, not one at every token
            name = entry_id
        elif name in self._finished:
            return Skipped("late")
        found = next((t for t in self._turns if t.name == name), None)
        if found is not None:
            return Skipped("late") if found.ended else found
        return self._new_turn(name, entry_id, message, now)

    def _new_turn(self, name: str, entry_id: str, message: Input, now: float) -> Turn:
        turn = Turn.begin(
            name, entry_id, message, self._opening.settings, self._opening.options, now
        )
        at = len(self._turns)
        if message.again is not None:
            # Turns come again in order: those before it of which nothing was applied go behind it.
            while at and not self._turns[at - 1].touched:
                at -= 1
        if at == 0:
            if self._turns:
                self._order.pop()  # it has not begun
            self._order.append(name)
        self._turns.insert(at, turn)
        return turn

    def _hold(self, turn: Turn, seq: int, message: Input, now: float) -> list[Output]:
        if len(turn.held) >= MAX_HELD:
            return [Skipped("gap_full")]
        turn.held[seq] = message
        if turn.gap_at is not None:
            return []
        turn.gap_at = now
        told = f"publish again from seq {turn.next_seq}"
        return [error("gap", told, retryable=True, turn=turn.name, expected=turn.next_seq)]

    def _drain(self, turn: Turn, now: float) -> list[Output]:
        out: list[Output] = []
        while not turn.ended and (message := turn.held.pop(turn.next_seq, None)) is not None:
            turn.next_seq += 1
            out += self._apply(turn, message, now)
        turn.gap_at = now if turn.held and not turn.ended else None
        return out

    def _apply(self, turn: Turn, message: m.Text | m.Flush | m.End, now: float) -> list[Output]:
        if not turn.touched:
            turn.touched = True
            if message.again is not None:
                # The session may have been opened again since a later piece made this turn.
                turn.take_settings(message, self._opening.settings, self._opening.options)
                self._hold_back(turn, message.again, now)
        if turn.resend is not None:
            turn.resend.keep(message)
            return self._release(turn, turn.resend, now) if turn.resend.full else []
        match message:
            case m.Text():
                if self.full and message.again is None and message.text:
                    return self._overload(turn, now)
                out = self._set_manner(turn, message, now)
                return out + self._speak(turn, turn.segmenter.push(message.text, now))
            case m.Flush():
                return self._speak(turn, turn.segmenter.flush(now))
            case _:
                return self._end(turn, "complete", now)

    def _set_manner(self, turn: Turn, message: m.Text, now: float) -> list[Output]:
        """How the turn is spoken from here on; what came before leaves with its own manner."""
        out: list[Output] = []
        if problem := setting_problem(message):
            if problem != turn.refused:
                out.append(error("bad_setting", problem, turn=turn.name))
            turn.refused, message = problem, without_bad_settings(message)
        if not turn.sounds_like(message):
            out += self._speak(turn, turn.segmenter.flush(now))
            turn.take_manner(message, self._defaults.voice)
        return out

    def _end(self, turn: Turn, reason: str, now: float) -> list[Output]:
        out = [] if turn.resend is None else self._release(turn, turn.resend, now)
        if not turn.ended:
            out += self._speak(turn, turn.segmenter.flush(now), last=True)
            turn.ended = reason
        return out

    # -- too much, and again ----------------------------------------------------------------------

    def _overload(self, turn: Turn, now: float) -> list[Output]:
        """End the turn: what was taken of it is spoken, this text is not."""
        told = "too much text waits to be spoken: publish this later"
        refused = error("overloaded", told, retryable=True, turn=turn.name)
        return [refused, *self._end(turn, "overloaded", now)]

    def _hold_back(self, turn: Turn, first_n: int, now: float) -> None:
        """A turn that we do not know is published again: wait for what its listeners have."""
        turn.first_n = min(first_n, MAX_FIRST_N)
        turn.resend = Resend(now + self._defaults.resume_wait_s)
        heard = self._resumes.take(turn.name)
        if heard is not None:
            turn.resend.learn(heard, now)

    def _resume(self, message: m.Resume, now: float) -> list[Output]:
        """A listener says what it has, often before the publisher publishes again."""
        heard = Heard(message.start, message.samples, message.end or 0)
        turn = next((t for t in self._turns if t.name == message.turn), None)
        if turn is not None and turn.resend is not None:
            turn.resend.learn(heard, now)
        elif turn is not None or message.turn in self._finished:
            return [Skipped("late")]  # the listener drops what it hears twice
        else:
            self._resumes.learn(message.turn, heard)
        return []

    def _release(self, turn: Turn, resend: Resend, now: float) -> list[Output]:
        """Go on with what the turn held back, without what was heard."""
        turn.resend, turn.heard = None, resend.heard
        return [out for message in resend.released() for out in self._apply(turn, message, now)]

    # -- output -----------------------------------------------------------------------------------

    def _speak(
        self, turn: Turn, events: Iterable[core.Event], *, last: bool = False
    ) -> list[Output]:
        """Segments of the current turn leave; those of later turns wait for their turn."""
        current = turn is self._turns[0]
        out: list[Output] = []
        events = list(events)
        final = next((e for e in reversed(events) if isinstance(e, core.Segment)), None)
        for event in events:
            if isinstance(event, core.Segment):
                segment = turn.segment(event, last=last and event is final)
                if current:
                    out += self._outlet.leave(turn, segment)
                else:
                    turn.waiting.append(segment)
            elif current:
                out += self._outlet.hint(turn, event)
        return out

    def _advance(self) -> list[Output]:
        """Close the turns that are complete, in order; what waited behind them leaves."""
        out: list[Output] = []
        while self._turns and self._turns[0].ended:
            turn = self._turns.pop(0)
            self._finished.append(turn.name)
            out.append(ForGateway(turn.end_message()))
            if self._turns:
                heir = self._turns[0]
                self._order.append(heir.name)
                out += [o for segment in heir.waiting for o in self._outlet.leave(heir, segment)]
                heir.waiting.clear()
        return out

    def give_up(self) -> list[Output]:
        """Our own code fails on the open turns: end them with what has left of them."""
        told = "the rest of this turn could not be handled; the session goes on"
        broken = [turn for turn in self._turns if not turn.ended]
        for turn in broken:
            turn.ended = "failed"
        return [*(error("failed", told, turn=turn.name) for turn in broken), *self._advance()]

    # -- cancel -----------------------------------------------------------------------------------

    def _cancel(self, message: m.Cancel) -> list[Output]:
        target = message.turn or ""
        live = [t for t in self._turns if target in ("", t.name)]
        waiting = [t for t in live if t is not self._turns[0]]
        known = "waiting" if waiting and target else "done"
        played, out = played_of(message)
        dropped = tuple(turn.name for turn in waiting)
        begun = tuple((turn.opened_at, turn.traceparent) for turn in waiting)
        out.append(CancelTurns(target, tuple(self._order), known, played, dropped, begun))
        for turn in waiting:
            self._turns.remove(turn)
            self._finished.append(turn.name)
        if live and live[0] not in waiting:
            live[0].ended = "cancelled"
            out += self._advance()
        elif target and not live and target not in self._finished:
            self._finished.append(target)
        return out

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All that a successor needs, in msgpack types."""
        return {
            **self._opening.snapshot(self.name),
            "src": self._last_src,
            "n": self._outlet.n,
            "finished": list(self._finished),
            "order": list(self._order),
            "turns": [turn.snapshot(self.name) for turn in self._turns],
            "resumes": self._resumes.snapshot(),
        }

    @classmethod
    def restore(cls, name: str, defaults: Defaults, saved: dict[str, Any], now: float) -> Session:
        """A session as another worker left it; its timers begin anew at `now`."""
        session = cls(name, defaults)
        session._opening = Opening.restore(saved)
        session._last_src = saved["src"]
        session._outlet.n = saved["n"]
        session._finished.extend(saved["finished"])
        session._order.extend(saved["order"])
        wait_s = defaults.resume_wait_s
        session._turns = [Turn.restore(body, now, wait_s) for body in saved["turns"]]
        session._resumes = Resumes.restore(saved["resumes"])
        return session
