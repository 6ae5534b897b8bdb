"""Where listening starts, what it does when entries are gone, and that it never stalls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from firstword import codec, keys, listener
from firstword import messages as m
from firstword.client import Event, Firstword, Listener
from firstword.embedded import EmbeddedServer
from firstword.errors import FirstwordError, StateLost
from firstword.ids import id_after
from firstword.streams import Streams

pytestmark = pytest.mark.streams

STARTED = m.TurnStarted(turn="t", voice="af_heart", sample_rate=24_000)


@pytest.fixture
async def firstword(redis_url: str) -> AsyncIterator[Firstword]:
    async with Firstword(redis_url) as connected:
        yield connected


@pytest.fixture
def streams(firstword: Firstword) -> Streams:
    return firstword.streams


async def put(streams: Streams, message: m.Audio) -> str:
    return await streams.append(keys.audio("s"), {"m": codec.pack(message, "s")})


def done(n: int) -> m.SegmentDone:
    return m.SegmentDone(turn="t", n=n, samples=1)


def started(n: int) -> m.SegmentStarted:
    return m.SegmentStarted(turn="t", n=n, text="x", start=10 * n, end=10 * n + 9)


def chunk(n: int) -> m.AudioChunk:
    return m.AudioChunk(turn="t", n=n, offset=0, data=b"\0\1\0\1")


async def resumes(streams: Streams) -> list[m.Resume]:
    """What listeners said to have, in order."""
    found = [
        message
        for entry in await streams.range(keys.DOOR, "0-0")
        for message in codec.decode_ingress(entry.fields)
    ]
    return [message for message in found if isinstance(message, m.Resume)]


async def take(events: AsyncIterator[Event], count: int) -> list[Event]:
    return [await anext(events) for _ in range(count)]


async def trim(streams: Streams, first: str) -> None:
    """What the gateway does when audio is older than it keeps."""
    await streams.commands.xtrim(keys.audio("s"), minid=first, approximate=False)
    await streams.commands.hset(keys.speech_state("s"), "kept_from", first)


async def test_a_listener_without_a_position_starts_at_what_comes_next(
    firstword: Firstword, streams: Streams
) -> None:
    await put(streams, done(0))
    events = await firstword.session("s").listener()
    entry_id = await put(streams, done(1))
    assert await take(events, 1) == [Event(entry_id, done(1))]
    assert events.position == entry_id


async def test_a_listener_of_a_new_session_hears_its_first_event(
    firstword: Firstword, streams: Streams
) -> None:
    events = await firstword.session("s").listener()
    await put(streams, done(0))
    assert (await anext(events)).message == done(0)


async def test_in_the_middle_of_a_turn_it_starts_at_the_turn(
    firstword: Firstword, streams: Streams
) -> None:
    await put(streams, done(0))
    opened = await put(streams, STARTED)
    await streams.commands.hset(keys.speech_state("s"), "turn_at", opened)
    await put(streams, done(1))
    events = firstword.session("s").listen()
    assert [event.message for event in await take(events, 2)] == [STARTED, done(1)]


async def test_in_an_entered_session_it_starts_at_the_entry_every_time(
    firstword: Firstword, streams: Streams
) -> None:
    await put(streams, done(0))
    async with firstword.session("s") as session:
        await put(streams, done(1))
        for _ in range(2):
            assert (await anext(session.listen())).message == done(1)


async def test_from_an_id_the_same_events_come_again(
    firstword: Firstword, streams: Streams
) -> None:
    ids = [await put(streams, done(n)) for n in range(4)]
    session = firstword.session("s")
    for n in range(3):
        again = await take(session.listen(ids[n]), 3 - n)
        assert [event.id for event in again] == ids[n + 1 :]
    milliseconds = str(int(ids[0].split("-")[0]) - 1)  # without the part after the dash
    assert [event.id for event in await take(session.listen(milliseconds), 4)] == ids


async def test_it_ends_after_closed(firstword: Firstword, streams: Streams) -> None:
    await put(streams, done(0))
    await put(streams, m.Closed(reason="closed"))
    await put(streams, done(1))
    heard = [event.message async for event in firstword.session("s").listen("0-0")]
    assert heard == [done(0), m.Closed(reason="closed")]


async def test_what_cannot_be_read_is_skipped(firstword: Firstword, streams: Streams) -> None:
    await streams.append(keys.audio("s"), {"m": b"\xc1"})
    await streams.append(keys.audio("s"), {"something": "else"})
    later = codec.pack(done(0), "s").replace(b"segment_done", b"segment_sung")
    await streams.append(keys.audio("s"), {"m": later})
    await put(streams, done(1))
    assert (await anext(firstword.session("s").listen("0-0"))).message == done(1)


# -- what is gone ---------------------------------------------------------------------------------


async def test_older_than_kept_begins_with_a_gap(firstword: Firstword, streams: Streams) -> None:
    ids = [await put(streams, done(n)) for n in range(5)]
    await trim(streams, ids[3])
    events = firstword.session("s").listen(ids[1])
    gap, following, last = await take(events, 3)
    assert gap.message == m.Gap(first=ids[3])
    assert (following.id, last.id) == (ids[3], ids[4])
    resumed = await take(firstword.session("s").listen(gap.id), 2)
    assert [event.id for event in resumed] == [ids[3], ids[4]]


async def test_a_gap_up_to_the_end_is_told_once(firstword: Firstword, streams: Streams) -> None:
    first = await put(streams, done(0))
    last = await put(streams, done(1))
    await trim(streams, id_after(last))
    events = firstword.session("s").listen(first)
    assert (await anext(events)).message == m.Gap(first=id_after(last))
    await put(streams, done(2))
    assert (await anext(events)).message == done(2)


async def test_nothing_missed_is_no_gap(firstword: Firstword, streams: Streams) -> None:
    ids = [await put(streams, done(n)) for n in range(3)]
    await trim(streams, ids[1])
    events = firstword.session("s").listen(ids[1])
    assert (await anext(events)).id == ids[2]


async def test_a_listener_that_falls_behind_is_told(firstword: Firstword, streams: Streams) -> None:
    events = await firstword.session("s").listener()
    for n in range(listener.COUNT):
        await put(streams, done(n))
    await anext(events)  # a full batch is in hand
    missed = await put(streams, done(1000))
    kept = await put(streams, done(1001))
    await trim(streams, kept)
    await take(events, listener.COUNT - 1)
    gap = await anext(events)
    assert gap.message == m.Gap(first=kept)
    assert gap.id >= missed
    assert (await anext(events)).id == kept


async def test_a_position_the_server_never_had_is_state_lost(
    firstword: Firstword, streams: Streams
) -> None:
    last = await put(streams, done(0))
    with pytest.raises(StateLost) as raised:
        await anext(firstword.session("s").listen(id_after(last)))
    assert raised.value.code == "state_lost"


async def test_a_session_the_server_never_had_is_state_lost(firstword: Firstword) -> None:
    with pytest.raises(StateLost):
        await anext(firstword.session("s").listen("1700000000000-0"))


async def test_a_server_that_forgot_everything_is_noticed_while_idle(
    firstword: Firstword, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "CHECK_S", 0)
    events = await _heard_one(firstword, streams)
    await streams.commands.flushall()
    assert (await anext(events)).message == m.STATE_LOST
    await put(streams, done(5))
    assert (await anext(events)).message == done(5)


async def test_a_server_that_restarts_empty_is_noticed(
    make_server: Callable[..., EmbeddedServer],
) -> None:
    server = await asyncio.to_thread(make_server)
    async with Firstword(server.url) as firstword:
        events = await _heard_one(firstword, firstword.streams)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.to_thread(server.restart)
        lost = await waiting
        assert (lost.id, lost.message) == ("0-0", m.STATE_LOST)


async def test_a_listener_that_had_heard_nothing_goes_on(
    firstword: Firstword, streams: Streams
) -> None:
    await put(streams, done(0))
    events = await firstword.session("s").listener()
    await streams.commands.flushall()
    assert (await anext(events)).message == m.STATE_LOST
    await put(streams, done(1))
    assert (await anext(events)).message == done(1)


async def test_a_stream_that_went_back_goes_on_from_what_it_still_has(
    firstword: Firstword, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "CHECK_S", 0)
    events = await firstword.session("s").listener()
    await put(streams, STARTED)
    await take(events, 1)
    kept = await put(streams, started(1))
    await take(events, 1)
    await put(streams, done(1))
    await take(events, 1)
    copy = await streams.commands.xrange(keys.audio("s"))
    await streams.commands.delete(keys.audio("s"))
    for entry_id, fields in copy[:2]:
        await streams.commands.xadd(keys.audio("s"), fields, id=entry_id)
    lost = await anext(events)
    assert (lost.id, lost.message) == (kept, m.STATE_LOST)
    await put(streams, done(1))  # said again, and heard before
    await put(streams, started(2))
    assert (await anext(events)).message == started(2)


async def test_what_was_heard_is_told_once_for_each_turn(
    firstword: Firstword, streams: Streams
) -> None:
    events = await firstword.session("s").listener()
    over = m.TurnDone(turn="u", segments=0, samples=0, reason="complete")
    before: list[m.Audio] = [over, STARTED, started(1), chunk(1)]
    for message in before:
        await put(streams, message)
    await take(events, 4)
    # Two processes noticed; what comes then is known.
    after: list[m.Audio] = [m.STATE_LOST, m.STATE_LOST, over, chunk(1)]
    for message in after:
        await put(streams, message)
    assert (await anext(events)).message == m.STATE_LOST
    await put(streams, done(1))
    assert (await anext(events)).message == done(1)
    assert await resumes(streams) == [
        m.Resume(session="s", turn="u", start=0, samples=0),
        m.Resume(session="s", turn="t", start=10, samples=2, end=19),
    ]
    await put(streams, m.STATE_LOST)
    assert (await anext(events)).message == m.STATE_LOST
    assert (await resumes(streams))[-1] == m.Resume(session="s", turn="t", start=19, samples=0)


async def test_a_loss_that_was_noticed_and_is_then_told_is_one(
    firstword: Firstword, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "CHECK_S", 0)
    events = await _heard_one(firstword, streams)
    await streams.commands.flushall()
    assert (await anext(events)).message == m.STATE_LOST
    await put(streams, m.STATE_LOST)
    await put(streams, done(7))
    assert (await anext(events)).message == done(7)


async def test_numbers_that_begin_anew_betray_a_loss_that_nobody_told(streams: Streams) -> None:
    events = Listener(streams, "s", "0-0")
    sent: list[m.Audio] = [STARTED, started(4), started(5)]
    other = m.SegmentStarted(turn="u", n=1, text="x", start=0, end=9)
    after = m.SegmentStarted(turn="u", n=2, text="x", start=10, end=19)
    for message in (*sent, started(4), other, after):
        await put(streams, message)
    heard = [event.message for event in await take(events, 6)]
    assert heard == [*sent, m.STATE_LOST, other, after]


async def test_who_cannot_say_what_it_has_listens_on(streams: Streams) -> None:
    async def refuse(_resume: m.Resume) -> None:
        raise FirstwordError("unreachable", "the server is away again", retryable=True)

    events = Listener(streams, "s", "0-0", tell=refuse)
    sent: list[m.Audio] = [STARTED, m.STATE_LOST, done(1)]
    for message in sent:
        await put(streams, message)
    heard = [event.message for event in await take(events, 3)]
    assert heard == sent


async def test_audio_that_was_trimmed_is_no_lost_state(
    firstword: Firstword, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "CHECK_S", 0)
    events = await _heard_one(firstword, streams)
    kept = await put(streams, done(1))
    await take(events, 1)
    await put(streams, done(2))
    await trim(streams, id_after(kept))
    assert (await anext(events)).message == done(2)


async def test_a_server_that_refuses_us_ends_it(firstword: Firstword, streams: Streams) -> None:
    await streams.commands.set(keys.audio("s"), "not a stream")
    with pytest.raises(FirstwordError) as raised:
        await anext(firstword.session("s").listen("0-0"))
    assert raised.value.code == "refused"


async def _heard_one(firstword: Firstword, streams: Streams) -> Listener:
    events = await firstword.session("s").listener()
    await put(streams, done(0))
    await anext(events)
    return events
