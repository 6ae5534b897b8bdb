"""The parts of a session's text side: its defaults, its outputs, and one turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from firstword import codec
from firstword import messages as m
from firstword.keys import NAME
from services.segmenter import core
from services.segmenter.options import segmenter_lang, voice_for, without_bad_settings
from services.segmenter.resend import Heard, Input, Resend

GAP_WAIT_S = 5.0
MAX_PLAYED = 2**52  # scripts of the server count in doubles


@dataclass(frozen=True, slots=True)
class Defaults:
    """The settings of a session that gives none."""

    voice: str = "af_heart"
    speed: float = 1.0
    lang: str = "auto"
    sample_rate: int = 24_000
    pace: str = "realtime"
    turn_idle_s: float = 30.0
    resume_wait_s: float = 1.0
    max_queued: int = 200
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
class Played:
    """How far a listener had really heard: so many samples of segment `n` of a turn."""

    turn: str
    n: int
    samples: int


@dataclass(frozen=True, slots=True)
class CancelTurns:
    """Mark turns cancelled and publish the one receipt.

    `target`: the turn to cancel, '' for all. `order`: the turns that reached the gateway, oldest
    first; those after the last one it has finished are still to be spoken. `known`: how to answer
    for a target that never reached the gateway: dropped here ('waiting') or 'done'. `played`: what
    the listener had really heard. `dropped`: the turns that will never reach the gateway. `begun`:
    of each dropped turn the entry id where it began, and its `traceparent`.
    """

    target: str
    order: tuple[str, ...]
    known: str
    played: Played | None = None
    dropped: tuple[str, ...] = ()
    begun: tuple[tuple[str, str | None], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A message that changes nothing, and why; it is counted."""

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
    held: dict[int, Input] = field(default_factory=dict)
    gap_at: float | None = None
    segments: int = 0
    waiting: list[m.Segment] = field(default_factory=list)
    ended: str = ""  # the reason once no more text comes
    refused: str = ""  # the last error about a setting on its text: one, not one at every token
    touched: bool = False  # some of its input was applied
    first_n: int = 0  # the number that its first segment had before the server lost the turn
    resend: Resend | None = None  # it is published again, and waits to learn what was heard
    heard: Heard | None = None  # what listeners have of it from before

    @classmethod
    def begin(
        cls,
        name: str,
        entry_id: str,
        message: Input,
        settings: m.SessionOpen,
        options: core.SegmenterOptions,
        now: float,
    ) -> Turn:
        """A turn whose first message stands at `entry_id`."""
        turn = cls(
            name=name,
            opened_at=message.src or entry_id,
            segmenter=core.Segmenter(options),
            options=options,
            voice=settings.voice,
            speed=settings.speed,
            lang=settings.lang,
            last_input=now,
            traceparent=message.traceparent,
        )
        turn.take_settings(message, settings, options)
        return turn

    def take_settings(
        self, message: Input, settings: m.SessionOpen, options: core.SegmenterOptions
    ) -> None:
        """Take the session's present settings; text is cut in the language of the first piece."""
        self.voice, self.speed, self.lang = settings.voice, settings.speed, settings.lang
        wanted = without_bad_settings(message).lang if isinstance(message, m.Text) else None
        lang = wanted or settings.lang
        self.options = replace(options, lang=segmenter_lang(lang))
        self.segmenter = core.Segmenter(self.options)

    def sounds_like(self, message: m.Text) -> bool:
        """Whether this text wants no other voice, speed or language than the turn has."""
        return all(
            wanted in (None, had)
            for wanted, had in (
                (message.voice, self.voice),
                (message.speed, self.speed),
                (message.lang, self.lang),
            )
        )

    def take_manner(self, message: m.Text, default_voice: str) -> None:
        """Speak the turn as this text wants it from here on."""
        self.speed = message.speed or self.speed
        self.lang = message.lang or self.lang
        self.voice = message.voice or voice_for(self.voice, self.lang, default_voice)

    def segment(self, event: core.Segment, *, last: bool) -> m.Segment:
        """The next segment of the turn, without its number."""
        self.segments += 1
        return m.Segment(
            turn=self.name,
            n=0,
            text=event.text,
            spoken=event.spoken,
            start=event.start,
            end=event.end,
            voice=self.voice,
            speed=self.speed,
            lang=self.lang,
            first=self.segments == 1,
            last=last,
            opened_at=self.opened_at,
            traceparent=self.traceparent,
        )

    def hint(self, event: core.Tentative | core.Revoke, n: int) -> m.Segments:
        """The hint to the gateway about a segment `n` that is not certain yet."""
        if isinstance(event, core.Revoke):
            return m.Revoke(turn=self.name, n=n)
        return m.Tentative(
            turn=self.name,
            n=n,
            text=event.text,
            voice=self.voice,
            speed=self.speed,
            lang=self.lang,
            opened_at=self.opened_at,
            traceparent=self.traceparent,
        )

    def deadlines(self, idle_s: float) -> list[float]:
        """The times at which something is due even if no input comes."""
        if self.ended:
            return []
        waits = self.last_input + idle_s if self.gap_at is None else self.gap_at + GAP_WAIT_S
        at = self.segmenter.timer() if self.resend is None else self.resend.until
        return [waits] if at is None else [waits, at]

    def end_message(self) -> m.TurnEnd:
        """All its segments have left."""
        return m.TurnEnd(
            turn=self.name,
            segments=self.segments,
            reason=self.ended,
            opened_at=self.opened_at,
            traceparent=self.traceparent,
        )

    def snapshot(self, session: str) -> dict[str, Any]:
        """The turn in msgpack types."""
        plain = (
            *("name", "opened_at", "voice", "speed", "lang", "traceparent", "next_seq"),
            *("refused", "segments", "ended", "touched", "first_n"),
        )
        return {
            **{name: getattr(self, name) for name in plain},
            "options": asdict(self.options),
            "segmenter": self.segmenter.snapshot(),
            "held": [codec.pack(self.held[seq], session) for seq in sorted(self.held)],
            "waiting": [codec.pack(segment, session) for segment in self.waiting],
            "resend": None if self.resend is None else self.resend.snapshot(session),
            "heard": None if self.heard is None else self.heard.snapshot(),
        }

    @classmethod
    def restore(cls, saved: dict[str, Any], now: float, resume_wait_s: float) -> Turn:
        """A turn as another worker left it; its timers begin anew at `now`."""
        body = dict(saved)
        options = core.SegmenterOptions(**body.pop("options"))
        segmenter = core.Segmenter.restore(options, _begun_at(body.pop("segmenter"), now))
        held = [codec.unpack(data, codec.INGRESS) for data in body.pop("held")]
        waiting = [codec.unpack(data, codec.SEGMENTS) for data in body.pop("waiting")]
        resend, heard = body.pop("resend"), body.pop("heard")
        turn = cls(
            **body,
            options=options,
            segmenter=segmenter,
            last_input=now,
            waiting=[segment for segment in waiting if isinstance(segment, m.Segment)],
            held={
                message.seq: message
                for message in held
                if isinstance(message, m.Text | m.Flush | m.End) and message.seq is not None
            },
            resend=None if resend is None else Resend.restore(resend, now + resume_wait_s),
            heard=Heard.restore(heard),
        )
        turn.gap_at = now if turn.held else None
        return turn


def _begun_at(segmenter: dict[str, Any], now: float) -> dict[str, Any]:
    """A snapshot whose timers begin at `now`: they were on another process's clock."""
    since = None if segmenter["since"] is None else now
    return {**segmenter, "heard": now, "since": since}


def note_input(turn: Turn, turns: Iterable[Turn], message: Input, now: float) -> None:
    """Note that the turn has input. If it is published again, gaps may still be filled."""
    turn.last_input = now
    if message.again is not None:
        for each in turns:
            each.gap_at = None if each.gap_at is None else now


def error(
    code: str,
    message: str,
    *,
    retryable: bool = False,
    turn: str | None = None,
    expected: int | None = None,
) -> ForListeners:
    """An `error` event for the session's listeners and publishers; the session goes on."""
    return ForListeners(
        m.ErrorEvent(code=code, message=message, retryable=retryable, turn=turn, expected=expected)
    )


_PLAYED = (
    "played is {turn, n, samples}: a name and two whole numbers; nothing is said of what was heard"
)


def played_of(message: m.Cancel) -> tuple[Played | None, list[Output]]:
    """What the listener had heard, if the cancel says so; and the error if it cannot be read."""
    raw = message.played
    if raw is None:
        return None, []
    turn, n, samples = raw.get("turn"), raw.get("n"), raw.get("samples")
    named = isinstance(turn, str) and NAME.fullmatch(turn)
    if named and type(n) is int and type(samples) is int and min(n, samples) >= 0:
        return Played(str(turn), min(n, MAX_PLAYED), min(samples, MAX_PLAYED)), []
    return None, [error("bad_field", _PLAYED, turn=message.turn)]
