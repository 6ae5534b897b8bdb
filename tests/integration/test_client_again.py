"""A publisher keeps its open turns: what the server lost or missed is published again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import TypeGuard

import msgpack
import pytest

from firstword import codec, keys, watch
from firstword import messages as m
from firstword.client import Firstword, Session, TurnCut
from firstword.errors import FirstwordError
from firstword.messages import STATE_LOST
from firstword.streams import Streams
from tests.doubles.proxy import Proxy
from tests.support import eventually

pytestmark = pytest.mark.streams

DONE = m.TurnDone(turn="t", segments=1, samples=0, reason="complete")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_S", 0.02)


@pytest.fixture
async def firstword(redis_url: str) -> AsyncIterator[Firstword]:
    async with Firstword(redis_url) as connected:
        yield connected


@pytest.fixture
def streams(firstword: Firstword) -> Streams:
    return firstword.streams


async def put(streams: Streams, *messages: m.Audio) -> None:
    for message in messages:
        await streams.append(keys.audio("s"), {"m": codec.pack(message, "s")})


async def published(streams: Streams) -> list[m.Ingress]:
    """All that stands at the door."""
    entries = await streams.range(keys.DOOR, "0-0")
    return [message for entry in entries for message in codec.decode_ingress(entry.fields)]


async def until_published(streams: Streams, count: int) -> list[m.Ingress]:
    async def enough() -> bool:
        return len(await published(streams)) >= count

    await eventually(enough, f"{count} messages at the door")
    found = await published(streams)
    assert len(found) == count
    return found


async def forget_all(streams: Streams) -> None:
    await streams.commands.flushall()


async def idle(firstword: Firstword) -> None:
    await eventually(lambda: not firstword._attending, "nothing is looked after any more")


async def say(session: Session, *pieces: str, end: bool = True) -> None:
    for piece in pieces:
        await session.text(piece, "t")
    if end:
        await session.end("t")


# -- what is published again ----------------------------------------------------------------------


async def test_a_gap_is_filled_from_where_it_begins(firstword: Firstword, streams: Streams) -> None:
    session = firstword.session("s")
    await say(session, "One. ", "Two. ", "Three.")
    told = "publish again from seq 2"
    await put(streams, m.ErrorEvent(code="gap", message=told, retryable=True, turn="t", expected=2))
    again = (await until_published(streams, 6))[4:]
    assert again == [
        m.Text(session="s", turn="t", seq=2, text="Three."),
        m.End(session="s", turn="t", seq=3),
    ]


async def test_after_a_loss_that_is_told_all_that_is_open_comes_again(
    firstword: Firstword, streams: Streams
) -> None:
    async with firstword.session("s", voice="am_adam") as session:
        await say(session, "One. ", "Two.")
        await session.text("Next", "u")
        await put(streams, m.SegmentStarted(turn="t", n=4, text="One.", start=0, end=4))
        await put(streams, STATE_LOST)
        again = (await until_published(streams, 10))[5:]
        assert again == [
            m.Open(session="s", voice="am_adam"),
            m.Text(session="s", turn="t", seq=0, text="One. ", again=4),
            m.Text(session="s", turn="t", seq=1, text="Two.", again=4),
            m.End(session="s", turn="t", seq=2, again=4),
            m.Text(session="s", turn="u", seq=0, text="Next", again=5),
        ]
        await session.end("u")
        assert (await published(streams))[-1] == m.End(session="s", turn="u", seq=1)


async def test_a_close_comes_again_behind_the_turns_it_was_behind(
    firstword: Firstword, streams: Streams
) -> None:
    """Else what is published again would open the session again, for good."""
    async with firstword.session("s") as session:
        await say(session, "One.")
        await session.close()
        await put(streams, STATE_LOST)
        again = (await until_published(streams, 8))[4:]
        assert again == [
            m.Open(session="s"),
            m.Text(session="s", turn="t", seq=0, text="One.", again=1),
            m.End(session="s", turn="t", seq=1, again=1),
            m.Close(session="s"),
        ]
        await session.text("More", "u")
        await put(streams, STATE_LOST)
        again = (await until_published(streams, 13))[9:]
        assert m.Close(session="s") not in again, "it was opened again"


async def test_a_loss_that_nobody_tells_is_noticed(firstword: Firstword, streams: Streams) -> None:
    session = firstword.session("s")
    await say(session, "One. ", "Two.")
    await forget_all(streams)
    found = await until_published(streams, 3)
    assert [getattr(message, "again", None) for message in found] == [1, 1, 1]
    assert [getattr(message, "seq", None) for message in found] == [0, 1, 2]


async def test_a_loss_that_a_new_turn_would_hide_is_noticed_before_it_begins(
    firstword: Firstword, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the new turn would be spoken first, and the lost one never missed."""
    monkeypatch.setattr(watch, "LOOK_S", 60)
    async with firstword.session("s") as session:
        await say(session, "One.")
        await forget_all(streams)
        await session.text("Two.", "u")
    found = await published(streams)
    assert [(getattr(each, "turn", None), getattr(each, "again", None)) for each in found] == [
        (None, None),
        ("t", 1),
        ("t", 1),
        ("u", None),
    ]


async def test_a_server_that_was_away_gets_what_it_lost_before_anything_new(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LOOK_S", 60)
    async with (
        Firstword(redis_url) as other,
        Proxy(redis_url) as proxy,
        Firstword(proxy.url) as firstword,
    ):
        session = firstword.session("s")
        await say(session, "One. ", end=False)
        await forget_all(other.streams)
        proxy.lose_reply_to(lambda request: b"XADD" in request)
        await say(session, "Two. ", end=False)
        seqs = [(each.seq, each.again) for each in await published(other.streams) if is_text(each)]
    assert seqs == [(1, None), (0, 1), (1, None)]


def is_text(message: m.Ingress) -> TypeGuard[m.Text]:
    return isinstance(message, m.Text)


async def take(streams: Streams, **fields: object) -> None:
    """As if a segmenter had taken what stands at the door, and told this of it."""
    for name, value in fields.items():
        await streams.commands.hset(keys.text_state("s"), name, msgpack.packb(value))
    await streams.commands.xtrim(keys.DOOR, maxlen=0, approximate=False)


@pytest.mark.parametrize("told", [{"taken": {"t": 2}}, {"taken": {"t": -1}}, {"finished": ["t"]}])
async def test_what_the_segmenter_has_taken_is_not_lost(
    firstword: Firstword, streams: Streams, told: dict[str, object]
) -> None:
    session = firstword.session("s")
    await say(session, "One.")
    await take(streams, **told)
    await put(streams, STATE_LOST)  # asks for it
    await until_published(streams, 2)
    await take(streams, **told)
    await session._publisher._watcher()._look()
    assert await published(streams) == [], "the next look does not"


async def test_what_the_segmenter_lacks_is_missed(firstword: Firstword, streams: Streams) -> None:
    session = firstword.session("s")
    await say(session, "One.")
    await take(streams, taken={"t": 1})
    found = await until_published(streams, 2)
    assert [getattr(each, "seq", None) for each in found] == [0, 1]


async def test_an_entry_id_that_is_anothers_now_tells_nothing(
    firstword: Firstword, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that went back, with a clock that is behind, gives it again."""
    monkeypatch.setattr(watch, "LOOK_S", 60)
    session = firstword.session("s")
    await say(session, "One.")
    last = await streams.last_id(keys.DOOR)
    await forget_all(streams)
    await streams.commands.xadd(keys.DOOR, {"session": "s", "text": "x"}, id=last)
    await session._publisher._watcher()._look()
    assert len(await published(streams)) == 3


async def test_what_was_cancelled_is_not_said_again(firstword: Firstword, streams: Streams) -> None:
    session = firstword.session("s")
    await say(session, "One.")
    await session.text("Two", "u")
    with pytest.raises(FirstwordError, match="no_receipt"):
        await session.cancel("t", timeout_s=0.01)
    await forget_all(streams)
    [again] = await until_published(streams, 1)
    assert again == m.Text(session="s", turn="u", seq=0, text="Two", again=1)
    with pytest.raises(FirstwordError, match="no_receipt"):
        await session.cancel(timeout_s=0.01)
    await idle(firstword)


async def test_what_is_owed_is_paid_although_the_server_goes_away_again(redis_url: str) -> None:
    async with (
        Firstword(redis_url) as other,
        Proxy(redis_url) as proxy,
        Firstword(proxy.url) as firstword,
    ):
        session = firstword.session("s")
        await say(session, "One. ", "Two. ", "Three.")
        await forget_all(other.streams)
        proxy.lose_reply_to(lambda request: b"Two. " in request)

        async def all_again() -> bool:
            texts = [each.text for each in await published(other.streams) if is_text(each)]
            return texts[-3:] == ["One. ", "Two. ", "Three."] or texts[-2:] == ["Two. ", "Three."]

        await eventually(all_again, "all of it is there again")
        assert proxy.lost == 1


async def test_a_call_that_is_given_up_may_be_asked_for(redis_url: str) -> None:
    """It was most likely sent; where it was not, its number would be missing for ever."""
    async with Proxy(redis_url) as proxy, Firstword(proxy.url) as firstword:
        session = firstword.session("s")
        await session.text("a", "t")
        proxy.hold_reply_to(lambda request: b"XADD" in request)
        call = asyncio.create_task(session.text("b", "t"))
        await eventually(lambda: proxy.lost, "b is sent")
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        async with Firstword(redis_url) as other:
            error = m.ErrorEvent(code="gap", message="x", retryable=True, turn="t", expected=1)
            await put(other.streams, error)
            again = (await until_published(other.streams, 3))[2]
        assert again == m.Text(session="s", turn="t", seq=1, text="b")


# -- looking after --------------------------------------------------------------------------------


async def test_only_open_turns_are_looked_after(firstword: Firstword, streams: Streams) -> None:
    async with firstword.session("s") as session:
        assert not firstword._attending
        for _ in range(2):
            await session.say("Hello.", turn="t")
            assert len(firstword._attending) == 1
            await put(streams, DONE)
            await idle(firstword)
            session._publisher._over.clear()


async def test_what_cannot_be_read_is_passed_over(firstword: Firstword, streams: Streams) -> None:
    session = firstword.session("s")
    await say(session, "One.")
    await streams.append(keys.audio("s"), {"m": b"\xc1"})
    later = codec.pack(DONE, "s").replace(b"turn_done", b"turn_sung")
    await streams.append(keys.audio("s"), {"m": later})
    await put(streams, m.Closed(reason="closed"))
    await idle(firstword)


async def test_many_events_are_all_read(firstword: Firstword, streams: Streams) -> None:
    session = firstword.session("s")
    await say(session, "One.")
    for n in range(watch.COUNT + 1):
        await put(streams, m.SegmentDone(turn="x", n=n, samples=0))
    await put(streams, DONE)
    await idle(firstword)


async def test_trouble_in_the_looking_ends_neither_it_nor_the_publishing(
    firstword: Firstword, streams: Streams
) -> None:
    session = firstword.session("s")
    await streams.commands.set(keys.audio("s"), "no stream")
    await say(session, "One. ", end=False)

    async def failed_looks() -> bool:
        info = await streams.commands.info("commandstats")
        return int(info.get("cmdstat_xrange", {}).get("failed_calls", 0)) >= 2

    await streams.commands.config_resetstat()
    await eventually(failed_looks, "two looks have failed")
    await say(session, "Two.")
    await streams.commands.delete(keys.audio("s"))
    await put(streams, STATE_LOST)
    await until_published(streams, 6)
    await put(streams, DONE)
    await idle(firstword)


async def test_leaving_stops_the_looking(redis_url: str) -> None:
    async with Firstword(redis_url) as firstword:
        await firstword.session("s").say("Hello.")
        [task] = firstword._attending
    assert task.cancelled()


# -- turns that the server ends -------------------------------------------------------------------


def ended(reason: str) -> m.Audio:
    return m.TurnDone(turn="t", segments=1, samples=0, reason=reason)


def refused(code: str) -> m.Audio:
    return m.ErrorEvent(code=code, message="x", retryable=True, turn="t")


@pytest.mark.parametrize(
    ("event", "reason", "retryable"),
    [
        (ended("abandoned"), "abandoned", False),
        (ended("overloaded"), "overloaded", True),
        (refused("overloaded"), "overloaded", True),
        (refused("server_full"), "server_full", True),
    ],
)
async def test_a_turn_that_the_server_ended_takes_no_more(
    firstword: Firstword, streams: Streams, event: m.Audio, reason: str, retryable: bool
) -> None:
    session = firstword.session("s")
    await say(session, "One.", end=False)
    await put(streams, event)
    await eventually(lambda: not session._publisher._next_seq, "the turn takes no more")
    with pytest.raises(TurnCut, match="another turn") as raised:
        await session.text("Two.", "t")
    assert (raised.value.code, raised.value.retryable) == (reason, retryable)
    with pytest.raises(TurnCut):
        await session.say("Two.", turn="t")


async def test_a_turn_that_another_cancelled_ends_its_stream_quietly(
    firstword: Firstword, streams: Streams
) -> None:
    session = firstword.session("s")

    async def endless() -> AsyncIterator[str]:
        while True:
            yield "And "
            await asyncio.sleep(0.001)

    speaking = asyncio.create_task(session.stream(endless(), turn="t"))
    await eventually(lambda: firstword._attending, "it is published")
    await put(streams, m.TurnCancelled(turn="t", sent={}, already_done=False))
    assert await speaking == "t"


# -- cancels --------------------------------------------------------------------------------------


async def test_a_cancel_that_was_lost_is_published_again(
    firstword: Firstword, streams: Streams
) -> None:
    session = firstword.session("s")
    cancelling = asyncio.create_task(session.cancel("t"))
    await until_published(streams, 1)
    await forget_all(streams)
    await put(streams, STATE_LOST)
    await until_published(streams, 1)
    receipt = m.TurnCancelled(turn="t", sent={}, already_done=True)
    await put(streams, receipt)
    assert await cancelling == receipt


async def test_a_cancel_that_was_taken_is_published_once(
    firstword: Firstword, streams: Streams
) -> None:
    session = firstword.session("s")
    cancelling = asyncio.create_task(session.cancel("t"))
    await until_published(streams, 1)
    await take(streams, cancels=[await streams.last_id(keys.DOOR)])
    await streams.commands.config_resetstat()
    await eventually(partial(looked_twice, streams), "it was looked for twice")
    await put(streams, m.TurnCancelled(turn="t", sent={}, already_done=True))
    await cancelling
    assert await published(streams) == []


async def looked_twice(streams: Streams) -> bool:
    info = await streams.commands.info("commandstats")
    return bool(info.get("cmdstat_hmget", {}).get("calls", 0) >= 2)


async def test_a_cancel_is_seen_to_while_the_server_is_away(
    firstword: Firstword, streams: Streams
) -> None:
    session = firstword.session("s")
    cancelling = asyncio.create_task(session.cancel("t"))
    await until_published(streams, 1)
    await streams.commands.delete(keys.DOOR)
    await streams.commands.set(keys.text_state("s"), "refuses every question")
    await streams.commands.config_resetstat()

    async def refused_twice() -> bool:
        info = await streams.commands.info("commandstats")
        return bool(info.get("cmdstat_hmget", {}).get("failed_calls", 0) >= 2)

    await eventually(refused_twice, "two looks have failed")
    await streams.commands.delete(keys.text_state("s"))
    await until_published(streams, 1)
    await put(streams, m.TurnCancelled(turn="t", sent={}, already_done=True))
    await cancelling
