"""A backend, a server and a shell for the gateway's core: all in memory, one step at a time.

`World` performs the core's actions as the real shell does, against a `Backend` that speaks a pure
function of the text and a `Store` that does what `commit_speech.lua` does. A test decides what
happens next.
"""

from __future__ import annotations

import array
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from firstword import messages as m
from firstword import session_protocol as wire
from firstword.errors import UpstreamError
from firstword.ids import id_key
from services.tts_gateway.actions import Action, Close, Commit, Connect, Disconnect, Limits, Send
from services.tts_gateway.core import Speech

RATE = 8_000
ENTRY = "1000000000{:03}-0"
LOST = UpstreamError("upstream_lost", "the wire broke", retryable=True)


def voice(engine: str, text: str) -> bytes:
    """How an engine says a text: a hundred samples a character, none equal to its neighbours."""
    start = zlib.crc32(f"{engine} {text}".encode()) % 30_000
    return array.array("h", ((start + i) % 32_767 for i in range(100 * len(text)))).tobytes()


def segment(n: int, text: str = "", *, turn: str = "t", first: bool | None = None) -> m.Segment:
    text = text or f"Sentence {n}."
    return m.Segment(
        turn=turn,
        n=n,
        text=f"*{text}*",
        spoken=text,
        start=10 * n,
        end=10 * n + len(text),
        voice="af_heart",
        speed=1.0,
        lang="en-us",
        first=n == 1 if first is None else first,
        last=False,
        opened_at="1000000000000-0",
    )


def hint(n: int, text: str = "", *, turn: str = "t") -> m.Tentative:
    said = segment(n, text, turn=turn)
    return m.Tentative(
        turn=turn, n=n, text=said.spoken, voice=said.voice, speed=said.speed, lang=said.lang
    )


def turn_end(turn: str = "t", segments: int = 1) -> m.TurnEnd:
    return m.TurnEnd(turn=turn, segments=segments, opened_at="1000000000000-0")


def session_open(sample_rate: int = RATE, pace: str = "realtime") -> m.SessionOpen:
    return m.SessionOpen(
        voice="af_heart", speed=1.0, lang="en-us", sample_rate=sample_rate, pace=pace
    )


class Backend:
    """One connection's container: takes client frames, gives one server frame a step."""

    def __init__(self, engine: str = "one", frame_bytes: Iterable[int] = ()) -> None:
        self.engine = engine
        self.asked: list[wire.Synthesize] = []
        self.cancels = 0
        self.pings = 0
        self.plans = True
        """Whether it tells its plans, and so can go on inside a segment."""
        self._sizes = deque(frame_bytes)
        self._waiting: deque[wire.Synthesize] = deque()
        self._frames: deque[str | bytes] = deque()

    def take(self, frame: str) -> None:
        message = wire.decode_client(frame)
        match message:
            case wire.Synthesize():
                running = [r.id for r in self._waiting]
                assert not running, "a synthesis was asked for while another one runs"
                self.asked.append(message)
                self._waiting.append(message)
                self._speak(message)
            case wire.Cancel(id):
                self.cancels += 1
                if any(request.id == id for request in self._waiting):
                    self._waiting.clear()
                    self._frames.clear()
                    self._frames.append(wire.encode_server(wire.Cancelled(id)))
            case wire.Ping():
                self.pings += 1
                self._frames.append(wire.encode_server(wire.Pong()))
            case _:
                raise AssertionError(f"the gateway sent {message}")

    def say(self, *frames: str | bytes) -> None:
        """Put frames of the test's own in front of what is under way."""
        self._frames.extendleft(reversed(frames))

    def forget(self) -> None:
        """Say nothing of what was asked."""
        self._waiting.clear()
        self._frames.clear()

    @property
    def speaking(self) -> bool:
        return bool(self._frames)

    def next_frame(self) -> str | bytes:
        frame = self._frames.popleft()
        if not self._frames:
            self._waiting.clear()
        return frame

    def _speak(self, request: wire.Synthesize) -> None:
        plan = f"{self.engine} {zlib.crc32(request.text.encode())}" if self.plans else None
        pcm = self._audio_of(request.text)
        if request.plan is not None and request.plan == plan:
            pcm = pcm[2 * request.skip_samples :]
        total = len(pcm) // 2
        start = wire.SynthesisStart(request.id, request.sample_rate, plan)
        self._frames.append(wire.encode_server(start))
        while pcm:
            size = self._sizes.popleft() if self._sizes else 1_600
            self._frames.append(pcm[:size])
            pcm = pcm[size:]
        complete = wire.SynthesisComplete(request.id, total, words=((0, 1, 0.0, 0.1),))
        self._frames.append(wire.encode_server(complete))

    def _audio_of(self, text: str) -> bytes:
        return voice(self.engine, text) if any(map(str.isalnum, text)) else b""


class Crash(Exception):
    """The process dies."""


class Store:
    """What the server holds of one session; `commit` is `commit_speech.lua`."""

    def __init__(self) -> None:
        self.fields: dict[str, bytes] = {}
        self.audio: list[tuple[str, m.Audio]] = []
        self.trimmed_to = ""
        self.fate: Callable[[], str] = lambda: "done"
        """Of the next commit: `done`, `lost` (we die before it) or `unheard` (we die after it)."""

    @property
    def events(self) -> list[m.Audio]:
        return [event for _, event in self.audio]

    @property
    def at_rest(self) -> set[str]:
        """The fields that are there, but for what is kept of what was said."""
        return {name for name in self.fields if not name.startswith("said")}

    def commit(self, commit: Commit) -> str | None:
        """The id of the first event; None if the turn is cancelled."""
        fate = self.fate()
        if fate == "lost":
            raise Crash
        if commit.guard and f"cancelled:{commit.guard}" in self.fields:
            return None
        first = self.append(*commit.events)
        for name, value in commit.fields.items():
            if value is None:
                self.fields.pop(name, None)
            else:
                raw = value if isinstance(value, bytes) else value.encode()
                self.fields[name] = first.encode() if value == "@first" else raw
        self.trimmed_to = commit.done_to or self.trimmed_to
        if fate == "unheard":
            raise Crash
        return first

    def append(self, *events: m.Audio) -> str:
        ids = [f"2000000000000-{len(self.audio) + i}" for i in range(len(events))]
        self.audio += zip(ids, events, strict=True)
        return ids[0] if ids else ""

    def cancel(self, turn: str) -> bool:
        """What `commit_text.lua` does for a cancel; False if the turn is over already."""
        over = [e.turn for e in self.events if isinstance(e, m.TurnDone | m.TurnCancelled)]
        if turn in over:
            return False
        self.fields[f"cancelled:{turn}"] = b"1"
        self.append(m.TurnCancelled(turn=turn, sent={}, already_done=False))
        return True


@dataclass(eq=False)
class World:
    """A session from its segments stream to its listeners."""

    entries: list[m.Segments]
    limits: Limits = field(default_factory=Limits)
    store: Store = field(default_factory=Store)
    make_backend: Callable[[], Backend] = Backend
    now: float = 100.0
    backend: Backend | None = None
    backends: list[Backend] = field(default_factory=list)
    connecting: bool = False
    waits: list[float] = field(default_factory=list)
    """How long each wait for a connection was to be."""
    disconnects: int = 0
    closed: bool = False
    done: list[Action] = field(default_factory=list)
    """All actions that were performed."""
    speech: Speech = field(init=False)
    _read: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """This worker is gone; another one goes on with what is stored."""
        self.backend, self.connecting = None, False
        self.speech = Speech("s", self.limits, self.store.fields)
        ids = [ENTRY.format(i) for i in range(len(self.entries))]
        position = id_key(self.speech.position)
        self._read = sum(id_key(entry_id) <= position for entry_id in ids)

    # -- what can happen --------------------------------------------------------------------------

    @property
    def can_begin(self) -> bool:
        return self.speech.idle and self._read < len(self.entries) and not self.closed

    def begin(self) -> None:
        """The next entry."""
        entry_id, message = ENTRY.format(self._read), self.entries[self._read]
        if isinstance(message, m.Segment) and f"cancelled:{message.turn}" in self.store.fields:
            actions = self.speech.skip(entry_id)
        else:
            actions = self.speech.begin(entry_id, message, self.now)
        self._read += 1
        self.perform(actions)

    def connect(self) -> None:
        """The connection that was asked for comes up."""
        assert self.connecting
        fresh = self.backend is None
        if self.backend is None:
            self.backend = self.make_backend()
            self.backends.append(self.backend)
        self.connecting = False
        self.perform(self.speech.connected(fresh, self.now))

    def refuse(self, error: UpstreamError = LOST) -> None:
        """The connection that was asked for cannot be had."""
        self.connecting = False
        self.perform(self.speech.lost(error))

    def frame(self, *, marked: bool = True) -> None:
        """The backend's next frame arrives."""
        assert self.backend is not None
        frame = self.backend.next_frame()
        self.perform(
            self.speech.receive(frame, isinstance(frame, str) if marked else None, self.now)
        )

    def cut(self) -> None:
        """The connection breaks."""
        self.backend = None
        self.perform(self.speech.lost(LOST))

    def ring(self) -> None:
        """The gateway hears of a cancel before its next commit."""
        if self.speech.turn and f"cancelled:{self.speech.turn}" in self.store.fields:
            self.perform(self.speech.cancelled())

    def run(self, until: Callable[[], bool] = lambda: False) -> World:
        """Let everything go well until `until()`, or until there is nothing more to do."""
        while not until():
            if self.connecting:
                self.connect()
            elif self.backend is not None and self.backend.speaking:
                self.frame()
            elif self.can_begin:
                self.begin()
            else:
                break
        return self

    # -- the shell --------------------------------------------------------------------------------

    def perform(self, actions: list[Action]) -> None:
        for action in actions:
            self.done.append(action)
            match action:
                case Commit():
                    first = self.store.commit(action)
                    if first is None:
                        self.perform(self.speech.cancelled())
                        return
                    self.speech.committed(action, first)
                case Send(frame):
                    assert self.backend is not None, "a frame was sent without a connection"
                    self.backend.take(frame)
                case Connect(after_s):
                    self.waits.append(after_s)
                    self.connecting = True
                    if self.backend is not None and not after_s:
                        self.connect()
                case Disconnect():
                    self.backend = None
                    self.disconnects += 1
                case Close():
                    self.closed = True
