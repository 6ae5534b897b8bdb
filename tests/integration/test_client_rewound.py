"""A server that goes back by a moment, under a real segmenter: what a publisher had is not missed.

As after a failover to a late replica: what was written last is gone, and nobody says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from firstword import codec, keys, watch
from firstword import messages as m
from firstword.client import Firstword, Session
from firstword.embedded import EmbeddedServer
from firstword.ids import id_key
from firstword.streams import Streams
from firstword.watch import Published
from services.segmenter.service import SegmenterService
from services.segmenter.settings import SegmenterSettings
from tests.support import eventually

pytestmark = pytest.mark.streams

Server = Callable[..., EmbeddedServer]


@pytest.fixture
def server(make_server: Server, monkeypatch: pytest.MonkeyPatch) -> EmbeddedServer:
    monkeypatch.setattr(watch, "LOOK_S", 60)  # each test looks when the moment has come
    return make_server()


@pytest.fixture
async def firstword(server: EmbeddedServer) -> AsyncIterator[Firstword]:
    """A client of a segmenter that runs."""
    stop = asyncio.Event()
    service = SegmenterService(SegmenterSettings(redis_url=server.url, http_port=0))
    serving = asyncio.create_task(service.run(stop))
    async with Firstword(server.url) as connected:
        await eventually(connected.partitions, "the segmenter has joined")
        yield connected
        stop.set()
        await serving


async def seems_taken(streams: Streams, published: Published) -> bool:
    """Whether the segmenter stored something at or after this entry id."""
    position = await streams.commands.hget(keys.text_state("s"), "position")
    return position is not None and id_key(position.decode()) >= id_key(published.entry_id)


async def said(streams: Streams) -> list[str]:
    entries = await streams.range(keys.segments("s"), "0-0")
    made = [codec.unpack(entry.fields[b"m"], codec.SEGMENTS) for entry in entries]
    return [each.text for each in made if isinstance(each, m.Segment)]


async def until_said(streams: Streams, *texts: str) -> None:
    async def as_wanted() -> bool:
        found = await said(streams)
        assert found == list(texts)
        return True

    await eventually(as_wanted, "all is cut into segments, once and in order")


async def lose_the_end_of_a_turn(session: Session, server: EmbeddedServer) -> None:
    """The server has the beginning of turn `t`; its end is gone, and all seems to be read, for a
    listener said afterwards what it has heard."""
    streams = session._firstword.streams
    await session.text("It was said. ", "t")
    await eventually(lambda: said(streams), "the beginning is stored")
    await streams.commands.save()
    await session.text("And this is the end.", "t")
    await session.end("t")
    lost = session._publisher.last
    assert lost is not None
    await eventually(lambda: seems_taken(streams, lost), "the end is stored too")
    await asyncio.to_thread(server.restart)
    resume = m.Resume(session="s", turn="t", start=0, samples=0)
    told = await session._publisher.aside(resume)
    await eventually(lambda: seems_taken(streams, told), "the listener's word is stored")
    assert await seems_taken(streams, lost), "its entry id tells nothing"
    assert await said(streams) == ["It was said."]


async def test_an_end_that_is_lost_is_missed_although_later_entries_were_read(
    firstword: Firstword, server: EmbeddedServer
) -> None:
    session = firstword.session("s")
    await lose_the_end_of_a_turn(session, server)
    await session._publisher._watcher()._look()
    await until_said(firstword.streams, "It was said.", "And this is the end.")


async def test_it_is_missed_before_another_turn_begins(
    firstword: Firstword, server: EmbeddedServer
) -> None:
    session = firstword.session("s")
    await lose_the_end_of_a_turn(session, server)
    await session.say("Another turn.", turn="u")
    await until_said(firstword.streams, "It was said.", "And this is the end.", "Another turn.")


async def test_a_turn_that_was_spoken_and_is_open_again_holds_up_nothing(
    firstword: Firstword, server: EmbeddedServer
) -> None:
    """Its end was heard, so its publisher need not keep it; without that the server would wait."""
    session, streams = firstword.session("s"), firstword.streams
    await session.text("It was said. ", "t")
    await eventually(lambda: said(streams), "the beginning is stored")
    await streams.commands.save()
    await session.end("t")
    done = m.TurnDone(turn="t", segments=1, samples=0, reason="complete")
    await streams.tell("s", done)
    await session._publisher._watcher()._look()
    assert session._publisher._outbox.empty
    await asyncio.to_thread(server.restart)
    await session.say("Another turn.", turn="u")
    await session._publisher._watcher()._look()
    await until_said(streams, "It was said.", "Another turn.")


async def test_a_turn_that_was_stopped_and_is_open_again_is_stopped_again(
    firstword: Firstword, server: EmbeddedServer
) -> None:
    session, streams = firstword.session("s"), firstword.streams
    await session.text("It was said. And", "t")
    await eventually(lambda: said(streams), "the beginning is stored")
    await streams.commands.save()
    await session.cancel("t")
    await asyncio.to_thread(server.restart)
    await session.say("Another turn.", turn="u")
    await session._publisher._watcher()._look()
    await until_said(streams, "It was said.", "Another turn.")


async def test_a_cancel_that_is_lost_is_made_again_although_later_entries_were_read(
    firstword: Firstword, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LOOK_S", 0.02)
    session, streams = firstword.session("s"), firstword.streams
    await session.text("It was said. ", "t")
    await eventually(lambda: said(streams), "the beginning is stored")
    cancel = m.Cancel(session="s", turn="t")
    lost = Published(keys.ingress_of("s", await firstword.partitions()), "0-1", cancel)
    assert await seems_taken(streams, lost), "its entry id tells nothing"
    receipts = await session.listener()
    seeing_to_it = asyncio.create_task(session._publisher.see_to(lost))
    assert isinstance((await anext(receipts)).message, m.TurnCancelled)
    await session.cancel("u")
    seeing_to_it.cancel()
    found = [
        codec.unpack(entry.fields[b"m"], codec.AUDIO)
        for entry in await streams.range(keys.audio("s"), "0-0")
    ]
    assert [each.turn for each in found if isinstance(each, m.TurnCancelled)] == ["t", "u"]
