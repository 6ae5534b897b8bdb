"""One session's speech: which synthesis to ask for, what to publish, when to try again.

Pure: it is told of entries, frames, lost connections and time, and answers with actions. The shell
performs them in order and reports back; it never decides. Strictly one synthesis at a time.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from firstword import codec
from firstword import messages as m
from firstword import session_protocol as wire
from firstword.errors import FirstwordError
from firstword.ids import START, id_key
from firstword.session_protocol import Frame
from services.tts_gateway.actions import (
    Action,
    Close,
    Commit,
    Connect,
    Disconnect,
    Fields,
    Limits,
    Progress,
    Send,
)

BYTES = wire.BYTES_PER_SAMPLE


@dataclass(slots=True, eq=False)
class _Work:
    """The segment being spoken."""

    entry_id: str
    segment: m.Segment
    attempts: int = 0
    request_id: str = ""
    sent_at: float = 0.0
    first_byte_at: float | None = None
    plan: str = ""


@dataclass(slots=True, eq=False)
class _Early:
    """A synthesis begun on a hint: its audio is held until the segment is committed."""

    hint: m.Tentative
    request_id: str
    sent_at: float
    events: list[tuple[wire.Event, float]] = field(default_factory=list)


class Speech:
    """The decisions for one session. Begin one entry at a time, while `idle`."""

    def __init__(self, session: str, limits: Limits, saved: Mapping[str, bytes]) -> None:
        self.session = session
        self.settings = _saved_settings(saved)
        self._limits = limits
        self._done = Progress.restore(saved)
        self._wire: wire.ClientConnection | None = None
        self._work: _Work | None = None
        self._ending: tuple[str, m.TurnEnd] | None = None
        self._early: _Early | None = None
        self._requests = 0
        self._plays_until = 0.0
        self._closing = False

    # -- what the shell asks ----------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether the next entry may begin."""
        return self._work is None and self._ending is None

    @property
    def position(self) -> str:
        """The last entry that is done with."""
        return self._done.position

    @property
    def turn(self) -> str:
        """The turn of the entry in hand, '' while idle."""
        if self._work is not None:
            return self._work.segment.turn
        return self._ending[1].turn if self._ending is not None else ""

    @property
    def opened_at(self) -> str:
        """Entry id of the first text of the turn in hand: where TTFA begins."""
        return self._work.segment.opened_at if self._work is not None else START

    def wait_before(self, message: m.Segments, now: float) -> float:
        """Seconds to wait before this entry, so that audio is not made too far ahead."""
        if not isinstance(message, m.Segment) or message.first or self.settings.pace == "none":
            return 0.0  # a turn begins at once: a listener who barged in has nothing ahead
        return max(0.0, self._plays_until - now - self._limits.max_ahead_s)

    def timer(self) -> float | None:
        """When `expired` wants to be called, None if never."""
        work = self._work
        if work is None or not work.request_id:
            return None
        if work.first_byte_at is None:
            return work.sent_at + self._limits.first_byte_s
        return work.first_byte_at + self._limits.between_frames_s

    # -- entries ----------------------------------------------------------------------------------

    def begin(self, entry_id: str, message: m.Segments, now: float) -> list[Action]:
        """Take the next entry of the segments stream."""
        match message:
            case m.Segment():
                return self._begin_segment(entry_id, message, now)
            case m.TurnEnd():
                self._ending = (entry_id, message)
                return [self._turn_end(entry_id, message, told=True)]
            case m.SessionOpen():
                self.settings = message
                packed = codec.pack(message, self.session)
                return [self._advance(entry_id, {"settings": packed}), Connect()]
            case m.SessionClose():
                return [
                    self._advance(entry_id, {}, m.Closed(reason="closed")),
                    self._disconnect(),
                    Close(),
                ]
            case m.Tentative():
                return self._hint(message, now)
            case m.Revoke():
                return self._drop_early()

    def skip(self, entry_id: str) -> list[Action]:
        """Pass over a segment of a cancelled turn."""
        return [*self._drop_early(), self._advance(entry_id, {}, drops="segment")]

    def _begin_segment(self, entry_id: str, segment: m.Segment, now: float) -> list[Action]:
        self._work = work = _Work(entry_id, segment)
        early = self._early
        if early is None:
            return [Connect()]
        if not _announced(early.hint, segment):
            return [*self._drop_early(), Connect()]
        self._early = None
        work.request_id, work.sent_at = early.request_id, early.sent_at
        actions: list[Action] = []
        for event, at in early.events:
            actions += self._event(event, at)
        return actions

    def _hint(self, hint: m.Tentative, now: float) -> list[Action]:
        """Begin a synthesis that is likely to be wanted, if nothing else is to do."""
        if self._wire is None or self._wire.busy or not self.idle or self._early is not None:
            return []
        if hint.n != self._done.n + 1 or self._closing:
            return []
        request = self._request(hint.n, hint.text, hint.voice, hint.speed, hint.lang, now)
        self._early = _Early(hint, request.id, now)
        return [Send(self._wire.synthesize(request))]

    def _drop_early(self) -> list[Action]:
        early, self._early = self._early, None
        if early is None or self._wire is None:
            return []
        frame = self._wire.cancel()
        return [] if frame is None else [Send(frame)]

    # -- the connection ---------------------------------------------------------------------------

    def connected(self, fresh: bool, now: float) -> list[Action]:
        """There is a connection; `fresh` if it is a new one."""
        if fresh or self._wire is None:
            self._wire = wire.ClientConnection()
            self._early = None
            self._closing = False
        work = self._work
        if work is None or work.request_id:
            return []
        s = work.segment
        request = self._request(s.n, s.spoken, s.voice, s.speed, s.lang, now)
        work.request_id, work.sent_at, work.first_byte_at = request.id, now, None
        return [Send(self._wire.synthesize(request))]

    def _request(
        self, n: int, text: str, voice: str, speed: float, lang: str, now: float
    ) -> wire.Synthesize:
        self._requests += 1
        resumed = self._done.n == n and self._done.samples > 0
        return wire.Synthesize(
            id=f"{n}.{self._requests}",
            text=text,
            voice=voice,
            speed=speed,
            lang=None if lang == "auto" else lang,
            sample_rate=self.settings.sample_rate,
            seed=zlib.crc32(f"{self.session} {n}".encode()),
            deadline_ms=max(0, int((self._plays_until - now) * 1000)),
            skip_samples=self._done.samples if resumed else 0,
            plan=self._done.plan if resumed else None,
        )

    def lost(self, error: FirstwordError, now: float) -> list[Action]:
        """The connection is gone, or could not be had."""
        return [self._disconnect(), *self._try_again(error)]

    def _disconnect(self) -> Disconnect:
        self._wire = self._early = None
        self._closing = False
        return Disconnect()

    def expired(self, now: float) -> list[Action]:
        """The deadline of `timer` has passed: a backend that hangs is a backend that is lost."""
        told = "the synthesis backend went silent; the connection was dropped"
        return self.lost(FirstwordError("upstream_timeout", told, retryable=True), now)

    def receive(self, frame: Frame, text: bool | None, now: float) -> list[Action]:
        """A frame came from the backend."""
        if self._wire is None:
            return []
        try:
            events = self._wire.receive(frame, text)
        except FirstwordError as error:
            return self.lost(error, now)
        actions: list[Action] = []
        for event in events:
            early = self._early
            if early is not None and getattr(event, "id", None) == early.request_id:
                early.events.append((event, now))
            else:
                actions += self._event(event, now)
        return actions

    # -- what a synthesis says --------------------------------------------------------------------

    def _event(self, event: wire.Event, now: float) -> list[Action]:
        if isinstance(event, wire.Closing):
            self._closing = True
            return [] if self._work is not None else [self._disconnect()]
        work = self._work
        if work is None or getattr(event, "id", None) != work.request_id:
            return []
        match event:
            case wire.SynthesisStart(plan=plan):
                return self._started(work, plan or "")
            case wire.Audio(offset=offset, data=data):
                return self._audio(work, offset, data, now)
            case wire.SynthesisComplete():
                return self._complete(work, event)
            case wire.Error():
                error = FirstwordError(event.code, event.message, retryable=event.retryable)
                return self._try_again(error) if event.retryable else self._give_up(error)
            case _:
                return []

    def _started(self, work: _Work, plan: str) -> list[Action]:
        work.plan = plan
        done = self._done
        if done.n != work.segment.n or done.samples == 0 or (plan and plan == done.plan):
            return []
        # Another engine, or one that cannot repeat: what listeners hold of it does not fit.
        done.turn_samples -= done.samples
        done.samples = 0
        s = work.segment
        restarted = m.SegmentRestarted(turn=s.turn, n=s.n)
        return [Commit((restarted,), self._done.fields(), guard=s.turn)]

    def _audio(self, work: _Work, offset: int, data: bytes, now: float) -> list[Action]:
        done, s = self._done, work.segment
        expected = done.samples if done.n == s.n else 0
        if offset != expected:
            told = f"audio begins at sample {offset}, {expected} was expected"
            return self.lost(FirstwordError("audio_misplaced", told, retryable=True), now)
        events = self._opening(work, now)
        rate = self.settings.sample_rate
        seconds = self._limits.first_chunk_s if events else self._limits.chunk_s
        work.first_byte_at = now
        at = 0
        while at < len(data):
            size = min(int(seconds * rate) * BYTES, self._limits.chunk_bytes // BYTES * BYTES)
            piece = data[at : at + size]
            events.append(m.AudioChunk(turn=s.turn, n=s.n, offset=offset + at // BYTES, data=piece))
            at += len(piece)
            seconds = self._limits.chunk_s
        count = len(data) // BYTES
        done.samples += count
        done.turn_samples += count
        self._plays_until = max(self._plays_until, now) + count / rate
        return [Commit(tuple(events), self._done.fields(), guard=s.turn)]

    def _opening(self, work: _Work, now: float) -> list[m.Audio]:
        """What is said before the first audio of a segment, and of a turn."""
        done, s = self._done, work.segment
        events: list[m.Audio] = []
        if done.turn != s.turn:
            done.turn, done.turn_at = s.turn, "@first"
            done.turn_segments = done.turn_samples = 0
            self._plays_until = now
            events.append(
                m.TurnStarted(turn=s.turn, voice=s.voice, sample_rate=self.settings.sample_rate)
            )
        if done.n != s.n:
            done.n, done.samples, done.plan = s.n, 0, work.plan
            events.append(
                m.SegmentStarted(
                    turn=s.turn,
                    n=s.n,
                    text=s.text,
                    start=s.start,
                    end=s.end,
                    committed_at=work.entry_id,
                    ttfb_ms=round(max(0.0, now - work.sent_at) * 1000, 1),
                )
            )
        done.plan = work.plan
        return events

    def _complete(self, work: _Work, event: wire.SynthesisComplete) -> list[Action]:
        done, s = self._done, work.segment
        events = self._opening(work, work.sent_at)
        done.turn_segments += 1
        words = [list(word) for word in event.words or ()]
        events.append(m.SegmentDone(turn=s.turn, n=s.n, samples=done.samples, words=words))
        return self._finish(work, tuple(events))

    def _try_again(self, error: FirstwordError) -> list[Action]:
        work = self._work
        if work is None:
            return []
        work.attempts += 1
        work.request_id = ""
        if work.attempts >= self._limits.attempts:
            return self._give_up(error)
        return [Connect(self._limits.backoff_s * 2 ** (work.attempts - 1))]

    def _give_up(self, error: FirstwordError) -> list[Action]:
        work = self._work
        if work is None:
            return []
        s = work.segment
        out = self._done.samples if self._done.n == s.n else 0
        event = m.ErrorEvent(
            code=error.code,
            message=error.message,
            retryable=error.retryable,
            turn=s.turn,
            n=s.n,
            samples=out,
        )
        return self._finish(work, (event,))

    def _finish(self, work: _Work, events: tuple[m.Audio, ...]) -> list[Action]:
        self._done.position = work.entry_id
        commit = Commit(
            events,
            self._done.fields(),
            guard=work.segment.turn,
            done_to=work.entry_id,
        )
        return [commit, *([self._disconnect()] if self._closing else [])]

    # -- after a commit ---------------------------------------------------------------------------

    def committed(self, commit: Commit, first_id: str) -> None:
        """The commit is stored; its first event has this id."""
        if self._done.turn_at == "@first":
            self._done.turn_at = first_id
        if commit.done_to:
            if self._ending is not None:
                self._done.turn = self._done.turn_at = ""
            self._work = self._ending = None

    def cancelled(self) -> list[Action]:
        """The turn in hand is cancelled: stop its synthesis, say nothing more of it."""
        actions: list[Action] = []
        entry_id = ""
        if self._work is not None:
            entry_id = self._work.entry_id
            frame = self._wire.cancel() if self._wire is not None else None
            actions = [] if frame is None else [Send(frame)]
        if self._ending is not None:
            entry_id, message = self._ending
            return [self._turn_end(entry_id, message, told=False)]
        actions.append(self._advance(entry_id, {}, drops="segment"))
        return actions

    def _turn_end(self, entry_id: str, message: m.TurnEnd, *, told: bool) -> Commit:
        done = self._done
        samples = done.turn_samples if done.turn == message.turn else 0
        ttfa = None
        if samples and message.opened_at and done.turn_at:
            ttfa = float(id_key(done.turn_at)[0] - id_key(message.opened_at)[0])
        event = m.TurnDone(
            turn=message.turn,
            segments=message.segments,
            samples=samples,
            ttfa_ms=ttfa,
            reason=message.reason,
        )
        fields: Fields = {
            "done_turn": message.turn,
            "turn": None,
            "turn_at": None,
            f"cancelled:{message.turn}": None,
            "position": entry_id,
        }
        return Commit(
            (event,) if told else (),
            fields,
            guard=message.turn if told else "",
            done_to=entry_id,
            drops="" if told else "turn",
        )

    def _advance(
        self,
        entry_id: str,
        fields: Fields,
        *events: m.Audio,
        drops: str = "",
    ) -> Commit:
        self._done.position = entry_id
        return Commit(events, {"position": entry_id, **fields}, done_to=entry_id, drops=drops)


def _announced(hint: m.Tentative, segment: m.Segment) -> bool:
    """Whether the segment came as the hint said, so that its audio may be used."""
    said = (hint.n, hint.text, hint.voice, hint.speed, hint.lang)
    return said == (segment.n, segment.spoken, segment.voice, segment.speed, segment.lang)


def _saved_settings(saved: Mapping[str, bytes]) -> m.SessionOpen:
    if "settings" in saved:
        settings = codec.unpack(saved["settings"], codec.SEGMENTS)
        if isinstance(settings, m.SessionOpen):
            return settings
    return m.SessionOpen(
        voice="", speed=1.0, lang="auto", sample_rate=wire.DEFAULT_SAMPLE_RATE, pace="realtime"
    )
