"""The segmenter of one turn: text in pieces in, segments out as soon as they are certain.

No clock: `now` comes from the caller and `timer()` says when `idle()` wants to be called. What has
been decided is never looked at again, and the work per character is constant. `scanner.py` finds
the ends, `rules.py` holds the decision, `speakable.py` makes of a segment what is said.
"""

from __future__ import annotations

from typing import Any, Final

from .characters import ALNUM
from .cuts import weight
from .events import Event, Mode, Revoke, Segment, SegmenterOptions, SkipCode, Tentative
from .repair import repair
from .scanner import Piece, Scanner
from .speakable import announcement, speakable

__all__ = [
    "Event",
    "Mode",
    "Revoke",
    "Segment",
    "Segmenter",
    "SegmenterOptions",
    "SkipCode",
    "Tentative",
]

PREFIX_LIMIT: Final = 1_000  # unspeakable characters that are kept for the next segment
TENTATIVE_LIMIT: Final = 1_000  # characters; a longer sentence is not announced again and again
DOUBT_FACTOR: Final = 4  # a mark that may well not end a sentence waits for so many stalls


class Segmenter:
    """Segments one turn. Not thread safe; one instance a turn.

    `push`, `idle` and `flush` return events in order. In safe mode and without the timers, the
    segments do not depend on how the text is cut into pushes.
    """

    __slots__ = (
        "_announced",
        "_at",
        "_first",
        "_heard",
        "_held",
        "_options",
        "_prefix",
        "_scanner",
        "_since",
    )

    def __init__(self, options: SegmenterOptions) -> None:
        self._options = options
        self._scanner = Scanner(
            options.lang,
            eager=options.mode == "eager",
            max_chars=options.max_chars,
            first_clause=options.first_clause,
        )
        self._at = 0  # offset in the turn of the first character that is not in a segment
        self._prefix = ""  # goes out with the next piece: too short, or nothing to say
        self._held = ""  # an unfinished character
        self._first = True
        self._announced = ""  # what the last tentative event said, "" if it is settled
        self._heard = 0.0
        self._since: float | None = None  # when the text that is held began to wait

    def push(self, text: str, now: float) -> list[Event]:
        """Take the next piece of text: any size, cut anywhere. `now`: seconds, monotonic."""
        self._heard = now
        if self._held or not text.isascii():
            text, self._held = repair(self._held + text, final=False)
        if not text:
            return []
        if self._since is None:
            self._since = now
        pieces = self._scanner.scan(text)
        if not pieces and not self._scanner.undecided and not self._announced:
            return []
        return self._events(pieces, now)

    def idle(self, now: float) -> list[Event]:
        """The time of `timer()` has come: commit what is tentative, cut what waits too long."""
        pieces: list[Piece] = []
        stall = self._stall_at()
        if stall is not None and now >= stall:
            pieces += self._scanner.commit_pending()
        events = self._events(pieces, now)
        deadline = self._deadline()
        if deadline is not None and now >= deadline:
            self._since = now
            events += self._events(self._scanner.cut(), now)
        return events

    def timer(self) -> float | None:
        """When to call `idle`, on the clock of `now`; `None` if nothing waits for time."""
        times = [at for at in (self._stall_at(), self._deadline()) if at is not None]
        return min(times, default=None)

    def flush(self, now: float) -> list[Event]:
        """Everything held leaves, whatever it ends in; the turn may go on afterwards."""
        text, self._held = repair(self._held, final=True)
        pieces = self._scanner.scan(text) if text else []
        events = self._events(pieces + self._scanner.finish(), now)
        events += self._emit_prefix()
        self._since = None
        return events

    @property
    def holding(self) -> bool:
        """Is there text that is not yet in a segment?"""
        return bool(self._held or self._prefix) or not self._scanner.blank

    # --- from pieces to segments ----------------------------------------------------------

    def _events(self, pieces: list[Piece], now: float) -> list[Event]:
        events: list[Event] = []
        for piece in pieces:
            events += self._segment(piece)
        if events:
            self._since = now
        if self._announced and (events or not self._scanner.undecided):
            events = self._settle(events)
        return events + self._tentative()

    def _segment(self, piece: Piece) -> list[Event]:
        """The segments that `piece` completes: none while it is too short or says nothing."""
        if piece.code and self._options.skip_code != "read":
            return self._emit_prefix() + self._unread(piece)
        events = [] if self._fits(piece.text) else self._emit_prefix()
        raw = self._prefix + piece.text
        self._prefix = ""
        said = self._speak(raw)
        if self._says(said) and not self._too_short(raw):
            return events + self._emit(raw, said)
        self._keep(raw, said)
        return events

    def _unread(self, piece: Piece) -> list[Event]:
        """A fence that is not read: announced with its first piece, or passed over."""
        if self._options.skip_code == "announce" and not piece.continued:
            return self._emit(piece.text, announcement(self._scanner.lang))
        self._at += len(piece.text)
        return []

    def _emit_prefix(self) -> list[Event]:
        prefix, self._prefix = self._prefix, ""
        return self._emit(prefix, self._speak(prefix))

    def _fits(self, text: str) -> bool:
        limit = self._options.max_chars
        return not limit or len((self._prefix + text).strip()) <= limit

    def _too_short(self, raw: str) -> bool:
        options = self._options
        exempt = self._first and not options.merge_first
        return options.min_chars > 0 and not exempt and weight(raw.strip()) < options.min_chars

    def _keep(self, raw: str, said: str) -> None:
        """Text for the next segment; white space and a long stretch of nothing are let go."""
        if not raw.strip() or (len(raw) > PREFIX_LIMIT and not self._says(said)):
            self._at += len(raw)
        else:
            self._prefix = raw

    def _emit(self, raw: str, said: str) -> list[Event]:
        start = self._at
        self._at += len(raw)
        if not self._says(said):
            return []
        self._first = False
        text = raw.strip()
        start += len(raw) - len(raw.lstrip())
        return [Segment(text, said, start, start + len(text))]

    @staticmethod
    def _speak(raw: str) -> str:
        return speakable(raw) if ALNUM.search(raw) else ""

    @staticmethod
    def _says(said: str) -> bool:
        return ALNUM.search(said) is not None

    # --- tentative segments ---------------------------------------------------------------

    def _tentative(self) -> list[Event]:
        pending = self._scanner.pending()
        if pending is None or pending.doubtful or self._scanner.size > TENTATIVE_LIMIT:
            return []
        raw = self._prefix + self._scanner.open_text(pending)
        said = self._speak(raw)
        if said == self._announced or not self._says(said) or self._too_short(raw):
            return []
        revoke: list[Event] = [Revoke()] if self._announced else []
        self._announced = said
        text = raw.strip()
        start = self._at + len(raw) - len(raw.lstrip())
        return [*revoke, Tentative(said, start, start + len(text))]

    def _settle(self, events: list[Event]) -> list[Event]:
        """Take the announced segment back unless it is the first that comes now."""
        first = events[0] if events else None
        kept = isinstance(first, Segment) and first.spoken == self._announced
        self._announced = ""
        return events if kept else [Revoke(), *events]

    # --- time -----------------------------------------------------------------------------

    def _stall_at(self) -> float | None:
        stall = self._options.stall
        if not stall:
            return None
        pending = self._scanner.pending()
        if pending is None:
            return None
        return self._heard + stall * (DOUBT_FACTOR if pending.doubtful else 1)

    def _deadline(self) -> float | None:
        wait = self._options.max_wait
        if not wait or self._since is None or not self.holding:
            return None
        return self._since + wait

    # --- state ----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything that decides what comes next, as plain values (msgpack will take them)."""
        return {
            "at": self._at,
            "prefix": self._prefix,
            "held": self._held.encode("utf-16-le", "surrogatepass").hex(),
            "first": self._first,
            "announced": self._announced,
            "heard": self._heard,
            "since": self._since,
            "scanner": self._scanner.snapshot(),
        }

    @classmethod
    def restore(cls, options: SegmenterOptions, snapshot: dict[str, Any]) -> Segmenter:
        """A segmenter that goes on exactly where the one of `snapshot` was."""
        new = cls(options)
        new._at = snapshot["at"]
        new._prefix = snapshot["prefix"]
        new._held = bytes.fromhex(snapshot["held"]).decode("utf-16-le", "surrogatepass")
        new._first = snapshot["first"]
        new._announced = snapshot["announced"]
        new._heard = snapshot["heard"]
        new._since = snapshot["since"]
        new._scanner.restore(snapshot["scanner"])
        return new
