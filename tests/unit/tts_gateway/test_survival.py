"""Whatever breaks, whenever it breaks: each sample once, in order, and each segment one end.

Hypothesis decides what happens next (frames, broken connections, other engines, dying workers
before and after a commit, cancels heard or not) until it has had enough; then all goes well.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from firstword import messages as m
from services.tts_gateway.actions import Limits
from tests.doubles.ear import Ear
from tests.unit.tts_gateway.world import (
    Backend,
    Crash,
    World,
    hint,
    segment,
    session_open,
    turn_end,
    voice,
)

TEXTS = ["Yes.", "…", "A sentence of some length.", "x" * 90]
ENGINES = ["one", "two"]
STEPS = ["frame"] * 6 + ["begin"] * 3 + ["connect"] * 3
TROUBLE = ["cut", "refuse", "restart", "hang", "cancel", "ring"]


@st.composite
def scripts(draw: st.DrawFn) -> list[m.Segments]:
    """A session of a few turns, with hints that come true and hints that do not."""
    entries: list[m.Segments] = [session_open()]
    n = 0
    for turn in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        count = draw(st.integers(0, 3))
        for i in range(count):
            n += 1
            text = draw(st.sampled_from(TEXTS))
            announced = draw(st.sampled_from([None, text, "Something else."]))
            if announced is not None:
                entries.append(hint(n, announced, turn=turn))
            entries.append(segment(n, text, turn=turn, first=i == 0))
        entries.append(turn_end(turn, count))
    return entries


class Chaos:
    """A world in which `choose` says what happens next."""

    def __init__(self, data: st.DataObject, entries: list[m.Segments], engines: int) -> None:
        self._data = data
        self._engines = ENGINES[:engines]
        self._calm = False
        limits = Limits(attempts=data.draw(st.integers(1, 3), label="attempts"))
        self.world = World(entries, limits=limits, make_backend=self._backend)
        self.world.store.fate = self._fate

    def _backend(self) -> Backend:
        sizes = st.lists(st.integers(1, 3_000).map(lambda n: 2 * n), max_size=4)
        engine = self._data.draw(st.sampled_from(self._engines), label="engine")
        return Backend(engine, self._data.draw(sizes, label="frames"))

    def _fate(self) -> str:
        if self._calm:
            return "done"
        fates = ["done"] * 8 + ["lost", "unheard"]
        return self._data.draw(st.sampled_from(fates), label="commit")

    def run(self, steps: int, kinds: list[str]) -> Ear:
        for _ in range(steps):
            step = self._data.draw(st.sampled_from(kinds), label="step")
            try:
                self._do(step)
            except Crash:
                self.world.restart()
        self._calm = True
        self.world.run()
        return Ear(self.world.store.events)

    def _do(self, step: str) -> None:
        world = self.world
        connected = world.backend is not None
        match step:
            case "frame" if world.backend is not None and world.backend.speaking:
                world.frame(marked=self._data.draw(st.booleans(), label="marked"))
            case "begin" if world.can_begin:
                world.begin()
            case "connect" if world.connecting:
                world.connect()
            case "cut" if connected:
                world.cut()
            case "refuse" if world.connecting and not connected:
                world.refuse()
            case "restart":
                world.restart()
            case "hang" if world.speech.timer() is not None:
                world.perform(world.speech.expired(world.now))
            case "cancel":
                world.store.cancel(self._data.draw(st.sampled_from("abc"), label="turn"))
            case "ring":
                world.ring()
            case _:  # cannot happen now
                pass


@settings(max_examples=150, deadline=None)
@given(st.data(), scripts(), st.integers(1, 2), st.integers(0, 60))
def test_every_sample_once_and_every_segment_one_end(
    data: st.DataObject, entries: list[m.Segments], engines: int, steps: int
) -> None:
    chaos = Chaos(data, entries, engines)
    ear = chaos.run(
        steps, STEPS + TROUBLE
    )  # which refuses gaps, repetitions and anything after a turn's end

    for entry in entries:
        if isinstance(entry, m.TurnEnd):
            cancelled = isinstance(ear.turn_ends[entry.turn], m.TurnCancelled)
            assert cancelled or isinstance(ear.turn_ends[entry.turn], m.TurnDone)
        if not isinstance(entry, m.Segment):
            continue
        out = bytes(ear.segments.get(entry.n, b""))
        spoken = [voice(engine, entry.spoken) for engine in ENGINES[:engines]]
        if entry.spoken == "…":
            spoken = [b""]
        cut_short = isinstance(ear.turn_ends[entry.turn], m.TurnCancelled)
        if ear.ends.get(entry.n) == "done":
            assert out in spoken
        else:
            assert cut_short or entry.n in ear.ends, "a segment without an end"
            assert any(whole.startswith(out) for whole in spoken)

    state = chaos.world.store.at_rest
    late = {f"cancelled:{turn}" for turn in "abc"}  # of a turn that never was
    assert state - late <= {"position", "settings", "done_turn"}


@settings(max_examples=60, deadline=None)
@given(st.data(), scripts(), st.integers(0, 40))
def test_listeners_never_notice_that_workers_die(
    data: st.DataObject, entries: list[m.Segments], steps: int
) -> None:
    """However many, before or after a commit, where the engine can repeat what it said."""
    chaos = Chaos(data, entries, engines=1)
    chaos.run(steps, [*STEPS, "restart"])
    untroubled = World(entries).run()
    assert joined(chaos.world.store.events) == joined(untroubled.store.events)


def joined(events: list[m.Audio]) -> list[m.Audio | bytes]:
    """What listeners hear: the same events, the audio between two of them in one piece."""
    out: list[m.Audio | bytes] = []
    for event in events:
        if not isinstance(event, m.AudioChunk):
            out.append(event)
        elif isinstance(out[-1], bytes):
            out[-1] += event.data
        else:
            out.append(event.data)
    return out
