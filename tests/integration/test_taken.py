"""What a segmenter has taken stands where publishers can read it, stored in the same step."""

from __future__ import annotations

import pytest

from firstword import keys
from firstword import messages as m
from firstword.outbox import NO_MORE, TAKEN_FIELDS, Taken
from firstword.streams import Streams
from services.segmenter.store import Held, commit, load
from services.segmenter.turns import Defaults, Output

pytestmark = pytest.mark.streams


async def held_by(streams: Streams, token: str = "mine") -> Held:
    return await load(streams, "demo", token, "w1", Defaults(), 0.0)


async def take(streams: Streams, held: Held, entry_id: str, *messages: m.Ingress) -> list[Output]:
    """One entry through the session core, as the reader does it."""
    outputs = held.session.handle(entry_id, messages, 0.0)
    held.note(entry_id, 0.0)
    await commit(streams, held, outputs)
    return outputs


async def told(streams: Streams) -> Taken:
    state = await streams.state(keys.text_state("demo"))
    return Taken.read([state.get(name) for name in TAKEN_FIELDS])


def text(turn: str, seq: int, text: str = "One") -> m.Text:
    return m.Text(session="demo", text=text, turn=turn, seq=seq)


async def test_publishers_see_what_was_taken(streams: Streams) -> None:
    held = await held_by(streams)
    assert await told(streams) == Taken({}, frozenset(), frozenset())
    await take(streams, held, "5-1", text("a", 0))
    assert (await told(streams)).turns == {"a": 1}
    await take(streams, held, "5-2", text("b", 0), m.End(session="demo", turn="b", seq=1))
    await take(streams, held, "5-3", text("a", 2))
    assert (await told(streams)).turns == {"a": 1, "b": NO_MORE}, "a has a gap, b waits for a"
    held.cancels.append("5-4")
    await take(streams, held, "5-4", m.Cancel(session="demo", turn="b"))
    assert await told(streams) == Taken({"a": 1}, frozenset("b"), frozenset({"5-4"}))


async def test_it_is_written_when_it_changes(streams: Streams) -> None:
    held = await held_by(streams)
    await take(streams, held, "5-1", text("a", 0), m.End(session="demo", turn="a", seq=1))
    await streams.commands.hset(keys.text_state("demo"), "finished", b"as it was")
    await take(streams, held, "5-2", text("b", 0))
    assert (await streams.state(keys.text_state("demo")))["finished"] == b"as it was"


async def test_a_successor_knows_it(streams: Streams) -> None:
    held = await held_by(streams)
    held.cancels.append("5-1")
    await take(streams, held, "5-1", text("a", 0), m.End(session="demo", turn="a", seq=1))
    successor = await held_by(streams, "second")
    assert list(successor.cancels) == ["5-1"]
    before = await told(streams)
    await take(streams, successor, "5-2", text("a", 2, "late"))
    assert await told(streams) == before
