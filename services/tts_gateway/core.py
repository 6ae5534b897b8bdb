"""One session's speech: which synthesis to request, what to publish, when to try again.

Pure: it is told of entries, frames, lost connections and time, and answers with actions. The shell
performs them in order and reports back; it never decides. Strictly one synthesis at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from firstword import codec
from firstword import messages as m
from firstword import session_protocol as wire
from firstword.errors import FirstwordError, UpstreamError
from firstword.session_protocol import Frame
from services.tts_gateway.actions import (
    CLOSED,
    FIRST,
    Action,
    Close,
    Commit,
    Connect,
    Disconnect,
    Fields,
    Limits,
    Send,
)
from services.tts_gateway.pace import Pace
from services.tts_gateway.progress import Progress
from services.tts_gateway.pulse import Pulse
from services.tts_gateway.retries import Retries
from services.tts_gateway.said import Said
from services.tts_gateway.work import (
    Early,
    Work,
    announced,
    broken,
    is_of,
    is_speakable,
    rate_differs,
    request,
    saved_settings,
)


class Speech:
    """The decisions for one session. Begin one entry at a time, while `idle`."""

    def __init__(self, session: str, limits: Limits, saved: Mapping[str, bytes]) -> None:
        self.session = session
        self.settings = saved_settings(saved)
        self._limits = limits
        self._out = Progress.restore(saved)
        self._said = Said(saved)
        self._retries = Retries(limits)
        self._pulse = Pulse(limits.ping_s, limits.pong_s)
        self._wire: wire.ClientConnection | None = None
        self._work: Work | None = None
        self._ending: m.TurnEnd | None = None
        self._early: Early | None = None
        self._requests = 0
        self.pace = Pace(limits.max_ahead_s)
        self.traceparent: str | None = None
        """Of the turn whose entries are begun; it is sent with their requests."""
        self._closing = False

    # -- what the shell asks ----------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether the next entry may begin."""
        return self._work is None and self._ending is None

    @property
    def quiet(self) -> bool:
        """Whether no request runs on the connection, so that another may take its place."""
        return self._work is None and self._early is None

    @property
    def position(self) -> str:
        """The last finished entry."""
        return self._out.position

    @property
    def turn(self) -> str:
        """The turn of the entry in hand, '' while idle."""
        if self._work is not None:
            return self._work.segment.turn
        return "" if self._ending is None else self._ending.turn

    def wait_before(self, message: m.Segments, now: float) -> float:
        """Seconds to hold this entry back, so that audio is not made too far ahead."""
        if not isinstance(message, m.Segment) or message.first or self.settings.pace == "none":
            return 0.0  # a turn begins at once: a listener who barged in has no audio left to play
        return self.pace.wait(now)

    def timer(self) -> float | None:
        """When `expired` wants to be called, None if never."""
        if self._wire is not None and self.quiet:
            return self._pulse.timer()
        return None if self._work is None else self._work.deadline(self._limits)

    @property
    def owed_since(self) -> float | None:
        """Since when the backend owes audio; None while it owes none."""
        return None if self._work is None else self._work.owed_since

    # -- entries ----------------------------------------------------------------------------------

    def begin(self, entry_id: str, message: m.Segments, now: float) -> list[Action]:
        """Take the next entry of the segments stream."""
        match message:
            case m.Segment():
                return self._begin_segment(entry_id, message, now)
            case m.TurnEnd():
                self._ending = message
                return [*self._drop_early(), self._turn_end(entry_id, message, told=True)]
            case m.SessionOpen():
                self.settings = message
                packed = codec.pack(message, self.session)
                advance = self._advance(entry_id, {"settings": packed, CLOSED: None})
                return [*self._drop_early(), advance, Connect()]
            case m.SessionClose():
                closed = m.Closed(reason="closed")
                return [self._advance(entry_id, {CLOSED: "1"}, closed), self._disconnect(), Close()]
            case m.Tentative():
                return self._hint(message, now)
            case _:  # a hint is taken back
                return self._drop_early()

    def skip(self, entry_id: str) -> list[Action]:
        """Pass over a segment of a cancelled turn."""
        return [*self._drop_early(), replace(self._advance(entry_id, {}), drops="segment")]

    def pass_over(self, entry_id: str) -> Commit:
        """Finish everything up to an entry that needs no work."""
        return self._advance(entry_id, {})

    def put_aside(self, entry_id: str, message: m.Segments | None) -> list[Action]:
        """Finish an entry on which our own code failed too often; it ends in an error."""
        match message:
            case m.Segment():
                self._work = work = Work(entry_id, message)
                return self._give_up(work, FirstwordError("failed", broken().message))
            case m.TurnEnd(turn=turn):
                self._ending = replace(message, reason="failed")
                end = self._turn_end(entry_id, self._ending, told=True)
                return [replace(end, events=(broken(turn), *end.events))]
            case _:
                return [self._advance(entry_id, {}, broken())]

    def _begin_segment(self, entry_id: str, segment: m.Segment, now: float) -> list[Action]:
        self._work = work = Work(entry_id, segment, since=now)
        early = self._early
        if early is None:
            return [Connect()]
        if not announced(early.hint, segment):
            return [*self._drop_early(), Connect()]
        self._early = None
        work.request, work.sent_at = early.request, early.sent_at
        return [action for event, at in early.events for action in self._event(event, at)]

    def _hint(self, hint: m.Tentative, now: float) -> list[Action]:
        """Begin a synthesis that is likely to be wanted, since there is nothing else to do."""
        if self._wire is None or self._early is not None:
            return []
        request = self._request(hint, hint.text, now)
        self._early = Early(hint, request, now)
        return [Send(self._wire.synthesize(request))]

    def _drop_early(self) -> list[Action]:
        early, self._early = self._early, None
        return [] if early is None else self._stop()

    # -- the connection ---------------------------------------------------------------------------

    def connected(self, fresh: bool, now: float) -> list[Action]:
        """There is a connection; `fresh`: it is a new one."""
        if fresh or self._wire is None:
            self._wire = wire.ClientConnection()
            self._pulse.felt(now)
        work = self._work
        if work is None or work.request is not None:
            return []
        work.request = self._request(work.segment, work.segment.spoken, now)
        work.sent_at, work.heard_at, work.arrived = now, None, 0
        return [Send(self._wire.synthesize(work.request))]

    def _request(self, said: m.Segment | m.Tentative, text: str, now: float) -> wire.Synthesize:
        self._requests += 1
        return request(
            said,
            text,
            number=self._requests,
            session=self.session,
            out=self._out,
            rate=self.settings.sample_rate,
            ahead_s=self.pace.ahead(now),
            lexicon=self.settings.lexicon,
            traceparent=self.traceparent,
        )

    def lost(self, error: FirstwordError) -> list[Action]:
        """The connection is gone, or could not be had."""
        work, was_up = self._work, self._wire is not None
        disconnect = self._disconnect()
        if work is None or (was_up and work.request is None):
            return [disconnect]  # no request ran on it; a retry that waits will connect again
        return [disconnect, *self._try_again(work, error)]

    def expired(self, now: float) -> list[Action]:
        """The deadline of `timer` has passed. A backend that hangs is treated as lost."""
        if self.quiet and not self._pulse.overdue:
            self._pulse.asked(now)
            return [Send(wire.encode_client(wire.Ping()))]
        told = "the synthesis backend went silent; the connection was dropped"
        return self.lost(UpstreamError("upstream_timeout", told, retryable=True))

    def rest(self) -> list[Action]:
        """There has been nothing to do for long: free the connection."""
        return [] if self._wire is None else [self._disconnect()]

    def receive(self, frame: Frame, text: bool | None, now: float) -> list[Action]:
        """A frame came from the backend."""
        if self._wire is None:
            return []
        self._pulse.felt(now)
        try:
            events = self._wire.receive(frame, text)
        except FirstwordError as error:
            return self.lost(error)
        actions: list[Action] = []
        for event in events:
            if self._early is not None and is_of(event, self._early.request):
                self._early.events.append((event, now))
            else:
                actions += self._event(event, now)
        return actions

    def _disconnect(self) -> Disconnect:
        self._wire = self._early = None
        self._closing = False
        return Disconnect()

    def _stop(self) -> list[Action]:
        """Stop the running synthesis; a connection that the container is closing ends now."""
        if self._closing:
            return [self._disconnect()]
        frame = None if self._wire is None else self._wire.cancel()
        return [] if frame is None else [Send(frame)]

    # -- what a synthesis says --------------------------------------------------------------------

    def _event(self, event: wire.Event, now: float) -> list[Action]:
        work = self._work
        if isinstance(event, wire.Closing):
            return self._on_closing()
        if work is None or work.request is None or not is_of(event, work.request):
            return []
        match event:
            case wire.SynthesisStart():
                return self._on_start(work, work.request, event)
            case wire.Audio():
                return self._on_audio(work, work.request, event, now)
            case wire.SynthesisComplete():
                return self._on_complete(work, work.request, event, now)
            case wire.Error(_, code, message, retryable, wait_ms):
                error = UpstreamError(code, message, retryable=retryable)
                return self._try_again(work, error, (wait_ms or 0) / 1000)
            case _:
                told = "the backend stopped the synthesis on its own"
                return self._try_again(work, UpstreamError("stopped", told, retryable=True))

    def _on_closing(self) -> list[Action]:
        """The container is going away: let it finish its synthesis, then connect again."""
        if self._work is None or self._work.request is None:
            return [self._disconnect()]
        self._closing = True
        return []

    def _on_start(
        self, work: Work, asked: wire.Synthesize, start: wire.SynthesisStart
    ) -> list[Action]:
        if start.sample_rate != asked.sample_rate:
            return [*self._stop(), *self._give_up(work, rate_differs(start, asked))]
        work.plan, work.voice = start.plan or "", start.voice or ""
        goes_on = asked.plan is not None and asked.plan == start.plan
        if goes_on or not self._out.samples_of(work.segment.n):
            return []
        # Another engine, or one that cannot repeat: its audio does not continue the old one.
        self.pace.take_back(self._out.samples / self._out.turn_rate)
        restarted = self._out.restart(work.segment)
        return [Commit((restarted,), self._out.fields(), guard=work.segment.turn)]

    def _on_audio(
        self, work: Work, asked: wire.Synthesize, audio: wire.Audio, now: float
    ) -> list[Action]:
        out, s, data = self._out, work.segment, audio.data
        work.heard_at = now
        work.arrived += len(data) // wire.BYTES_PER_SAMPLE
        if out.n != s.n:  # listeners have its beginning from before the server lost the turn
            data = data[max(0, work.skips - audio.offset) * wire.BYTES_PER_SAMPLE :]
            if not data:
                return []
        events, marks = self._begin_events(work, asked, work.skips, now)
        events += out.audio(s, data, self._limits, first=bool(events))
        self._retries.got(s.n, out.samples)
        sounds_s = len(data) / wire.BYTES_PER_SAMPLE / out.turn_rate
        dry_s = self.pace.add(sounds_s, now, work.since)
        fields = out.fields() | marks
        return [Commit(tuple(events), fields, guard=s.turn, dry_s=dry_s, speech_s=sounds_s)]

    def _begin_events(
        self, work: Work, asked: wire.Synthesize, skipped: int, now: float
    ) -> tuple[list[m.Audio], Fields]:
        """The events before the first audio of a segment, and the fields to store with them."""
        marks: Fields = {}
        events = self._out.open_turn(work.segment, asked.sample_rate, work.voice)
        if events:
            self.pace.begin(now)
            marks["turn_at"] = FIRST
        begun = self._out.open_segment(
            work.segment, work.plan, work.entry_id, now - work.sent_at, skipped
        )
        if begun:
            marks |= self._said.begin(work.segment, self._out.turn_rate)
        return events + begun, marks

    def _on_complete(
        self, work: Work, asked: wire.Synthesize, end: wire.SynthesisComplete, now: float
    ) -> list[Action]:
        out, s = self._out, work.segment
        if not work.arrived and not out.samples_of(s.n) and is_speakable(s):
            told = "the synthesis backend answered with no audio"
            return self._try_again(work, UpstreamError("no_audio", told, retryable=True))
        events: list[m.Audio] = []
        marks: Fields = {}
        if work.arrived and out.n != s.n:  # listeners had all of it before the loss
            events, marks = self._begin_events(work, asked, work.arrived, now)
        done = out.done(s, end.words)
        if done.samples:
            marks |= self._said.done(s, done.samples, end.words, out.turn_rate)
        return self._finish(work, done, *events, marks=marks)

    def _try_again(self, work: Work, error: FirstwordError, wait_s: float = 0) -> list[Action]:
        if isinstance(error, UpstreamError) and not error.retryable:
            return self._give_up(work, error)  # the next segment tries again
        work.request = None
        pause_s = self._retries.pause_after(work.segment.n, error.code, wait_s)
        if pause_s is None:
            return self._give_up(work, error)
        return [*([self._disconnect()] if self._closing else []), Connect(pause_s, error.code)]

    def _give_up(self, work: Work, error: FirstwordError) -> list[Action]:
        return self._finish(work, self._out.failed(work.segment, error))

    def _finish(
        self,
        work: Work,
        end: m.SegmentDone | m.ErrorEvent,
        *before: m.Audio,
        marks: Fields | None = None,
    ) -> list[Action]:
        self._out.position = work.entry_id
        fields = self._out.fields() | (marks or {})
        commit = Commit((*before, end), fields, guard=work.segment.turn, done_to=work.entry_id)
        return [commit, self._disconnect()] if self._closing else [commit]

    # -- after a commit ---------------------------------------------------------------------------

    def committed(self, commit: Commit, first_id: str) -> None:
        """The commit is stored; its first event has this id."""
        if commit.fields.get("turn_at") == FIRST:
            self._out.turn_at = first_id
        if commit.done_to:
            if self._ending is not None:
                self._out = self._out.after_turn()
            self._work = self._ending = None

    def cancelled(self) -> list[Action]:
        """The turn in hand is cancelled: stop its synthesis, say nothing more of it."""
        if self._ending is not None:
            return [self._turn_end(self.position, self._ending, told=False)]
        if self._work is None:
            return []
        return [*self._stop(), *self.skip(self._work.entry_id)]

    def _turn_end(self, entry_id: str, end: m.TurnEnd, *, told: bool) -> Commit:
        self._out.position = entry_id
        mark = f"cancelled:{end.turn}"
        fields = {**self._out.after_turn_fields(), "done_turn": end.turn, mark: None}
        if not told:
            return Commit((), fields, done_to=entry_id, drops="turn")
        return Commit((self._out.turn_done(end),), fields, guard=end.turn, done_to=entry_id)

    def _advance(self, entry_id: str, fields: Fields, *events: m.Audio) -> Commit:
        self._out.position = entry_id
        return Commit(events, {"position": entry_id, **fields}, done_to=entry_id)
