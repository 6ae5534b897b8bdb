"""What redis-py does to its users in silence, and does not do to ours."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
import redis

from firstword import codec, keys
from firstword import messages as m
from firstword.client import Firstword, collect
from firstword.embedded import EmbeddedServer
from firstword.ids import START
from firstword.session import Session
from firstword.streams import CONNECTIONS, Streams
from tests.doubles.proxy import Proxy
from tests.e2e.stack import Stack, tone_pcm
from tests.support import eventually

pytestmark = pytest.mark.streams

STREAM = keys.audio("demo")
SOON_S = 8.0
"""Far below the minute that redis-py takes by default to notice a dead connection."""


@pytest.fixture
async def proxy(redis_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(redis_url) as made:
        yield made


@pytest.fixture
async def through(proxy: Proxy) -> AsyncIterator[Streams]:
    """A client whose wire can be cut."""
    made = Streams(proxy.url)
    yield made
    await made.close()


async def ids(streams: Streams) -> list[str]:
    return [entry.id for entry in await streams.range(STREAM, START)]


# -- a reply that is lost -------------------------------------------------------------------------


async def test_an_append_whose_reply_is_lost_is_told_and_not_repeated(
    streams: Streams, through: Streams, proxy: Proxy
) -> None:
    await through.append(STREAM, {"m": b"1"})
    proxy.lose_reply_to(lambda request: b"XADD" in request)
    with pytest.raises(redis.ConnectionError):
        await through.append(STREAM, {"m": b"2"})
    assert proxy.lost == 1
    assert len(await ids(streams)) == 2, "once, although nobody was told"
    await through.append(STREAM, {"m": b"3"})
    assert len(await ids(streams)) == 3, "and the client goes on"


async def test_a_script_whose_reply_is_lost_is_repeated_and_changes_nothing(
    streams: Streams, through: Streams, proxy: Proxy
) -> None:
    key_list = [keys.speech_state("demo"), STREAM, keys.segments("demo")]
    await through.acquire(key_list, "token", "w1")
    event = codec.pack(m.Closed(reason="closed"), "demo")
    first = await through.script("commit_speech", key_list, ["token", 1, "", "", "", "", event])
    proxy.lose_reply_to(lambda request: b"token" in request)
    again = await through.script("commit_speech", key_list, ["token", 2, "", "", "", "", event])
    assert proxy.lost == 1
    assert first[0] == 1
    assert again[0] == 0, "its own first attempt had been done already"
    assert [entry.encode() for entry in await ids(streams)] == [first[1], again[1]]


async def test_a_piece_published_twice_is_spoken_once(redis_url: str, proxy: Proxy) -> None:
    async with Stack(redis_url) as stack, Firstword(proxy.url) as publisher:
        events = await stack.firstword.session("demo").listener()
        session: Session = publisher.session("demo")
        await session.text("This is said ", "t")
        proxy.lose_reply_to(lambda request: b"XADD" in request)
        await session.text("once.", "t")
        await session.end("t")
        assert proxy.lost == 1
        assert (await collect(events, "t")).pcm == tone_pcm("This is said once.")


# -- a wire that is dead and does not say so ------------------------------------------------------


async def test_connections_that_died_silently_are_noticed(through: Streams, proxy: Proxy) -> None:
    await through.append(STREAM, {"m": b"1"})
    await through.last_id(STREAM)
    await through.wait({STREAM: START})
    proxy.go_dark()
    async with asyncio.timeout(SOON_S):
        last, append, wait = await asyncio.gather(
            through.last_id(STREAM),
            through.append(STREAM, {"m": b"2"}),
            through.wait({STREAM: START}),
            return_exceptions=True,
        )
    assert isinstance(last, str), "what may be repeated was, on a new connection"
    assert isinstance(append, redis.TimeoutError)
    assert isinstance(wait, redis.TimeoutError)
    assert (await through.wait({STREAM: START}))[STREAM], "and the next one is served"


async def test_a_host_that_is_gone_is_noticed(through: Streams, proxy: Proxy) -> None:
    await through.append(STREAM, {"m": b"1"})
    await through.wait({STREAM: START})
    proxy.go_dark(new_too=True)
    async with asyncio.timeout(SOON_S):
        outcomes = await asyncio.gather(
            through.last_id(STREAM),
            through.append(STREAM, {"m": b"2"}),
            through.wait({STREAM: START}),
            return_exceptions=True,
        )
    assert [type(outcome) for outcome in outcomes] == [redis.TimeoutError] * 3


# -- connections ----------------------------------------------------------------------------------


async def test_blocked_reads_leave_commands_their_connections(redis_url: str) -> None:
    streams = Streams(redis_url, readers=4)
    reads = [asyncio.create_task(streams.wait({STREAM: "$"})) for _ in range(6)]
    await eventually(lambda: _blocked(streams, 4), "all that may read are blocked")
    entry_id = await streams.append(STREAM, {"m": b"x"})
    assert await streams.last_id(STREAM) == entry_id
    found = [await read for read in reads]
    assert sum(STREAM in each for each in found) == 4, "the others waited for a connection"
    await streams.close()


async def _blocked(streams: Streams, wanted: int) -> bool:
    [info] = await streams.commands.everywhere("INFO", "clients")
    return int(info["blocked_clients"]) == wanted


async def test_more_commands_than_connections_wait_and_do_not_fail(streams: Streams) -> None:
    many = 4 * CONNECTIONS
    appended = await asyncio.gather(*(streams.append(STREAM, {"m": b"x"}) for _ in range(many)))
    assert sorted(appended) == sorted(await ids(streams))
    [info] = await streams.commands.everywhere("INFO", "clients")
    assert info["connected_clients"] <= CONNECTIONS + 2


async def test_reads_that_are_cancelled_lose_nothing(streams: Streams) -> None:
    """A claim would be lost with its reader; a cursor is not."""
    written: list[str] = []
    read: list[str] = []
    cursor = START
    for number in range(60):
        reading = asyncio.create_task(streams.wait({STREAM: cursor}))
        for _ in range(number % 4):
            await asyncio.sleep(0)  # cancelled before it is sent, on the way, or when it came
        written.append(await streams.append(STREAM, {"m": b"x"}))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            for entry in (await reading).get(STREAM, []):
                read.append(entry.id)
                cursor = entry.id
    read += [entry.id for entry in await streams.range(STREAM, cursor)]
    assert read == written


# -- a server that changes ------------------------------------------------------------------------


async def test_a_primary_that_became_a_replica_is_left(
    make_server: Callable[..., EmbeddedServer],
) -> None:
    """As behind an address that moves in a failover, while the old connections stay open."""
    quick = ("--repl-diskless-sync-delay", "0")
    old, new = await asyncio.to_thread(lambda: [make_server(extra_args=quick) for _ in range(2)])
    async with Proxy(old.url) as proxy, Firstword(proxy.url) as firstword:
        streams = firstword.streams
        events = await firstword.session("demo").listener()
        first = await streams.append(STREAM, {"m": _event("first")})
        assert (await anext(events)).id == first
        with redis.Redis(port=new.port, decode_responses=True) as link:
            link.replicaof("127.0.0.1", str(old.port))
            await eventually(
                lambda: link.info("replication")["master_link_status"] == "up", "it replicates"
            )
            link.replicaof("NO", "ONE")
        waiting = asyncio.ensure_future(anext(events))
        with redis.Redis(port=old.port) as link:
            link.replicaof("127.0.0.1", str(new.port))
        proxy.lead_to(new.url)
        with pytest.raises(redis.ReadOnlyError):
            await streams.append(STREAM, {"m": _event("refused")})
        second = await streams.append(STREAM, {"m": _event("second")})
        assert (await waiting).id == second
        assert await streams.last_id(STREAM) == second


def _event(reason: str) -> bytes:
    return codec.pack(m.TurnDone(turn=reason, segments=0, samples=0, reason="complete"), "demo")


async def test_a_server_that_restarts_learns_the_scripts_again(
    make_server: Callable[..., EmbeddedServer],
) -> None:
    server = await asyncio.to_thread(make_server)
    streams = Streams(server.url)
    for _ in range(2):
        await streams.ring("gateway", "w1", "demo")
        await asyncio.to_thread(server.restart)
    await streams.ring("gateway", "w1", "demo")
    assert len(await streams.range(keys.bell("gateway", "w1"), START)) == 1
    await streams.close()
