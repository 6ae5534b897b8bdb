"""The same code on a cluster of six nodes: a plain URL leads there, and a node may die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.crc import key_slot

from firstword import keys
from firstword import messages as m
from firstword.cli import main
from firstword.client import Firstword, collect
from firstword.errors import FirstwordError
from firstword.ownership import Ownership
from firstword.streams import Streams
from tests.e2e.stack import Stack, tone_pcm, until_done
from tests.support import eventually
from tests.support_cluster import EmbeddedCluster

pytestmark = pytest.mark.streams

SENTENCES = [f"This is sentence number {n}." for n in range(12)]


@pytest.fixture(scope="module")
def shared(binary: str | None) -> Iterator[EmbeddedCluster]:
    """One cluster for the tests that leave it alive."""
    with EmbeddedCluster(binary) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: EmbeddedCluster) -> EmbeddedCluster:
    """The shared one, with nothing in it: no keys, no scripts."""
    shared.flush()
    return shared


@pytest.fixture
async def streams(cluster: EmbeddedCluster) -> AsyncIterator[Streams]:
    made = Streams(cluster.nodes[-1].url)
    yield made
    await made.close()


def one_session_of_each_shard(cluster: EmbeddedCluster) -> list[str]:
    found: dict[int, str] = {}
    number = 0
    while len(found) < len(cluster.primaries()):
        name = f"session-{number}"
        found.setdefault(cluster.primary_of(keys.audio(name)).port, name)
        number += 1
    return list(found.values())


def test_everything_of_a_unit_lies_in_one_slot() -> None:
    """What a script touches together, and what one blocking read follows."""
    session = (keys.segments, keys.audio, keys.text_state, keys.speech_state)
    stage = (keys.workers, keys.draining, keys.free, keys.owned, keys.owners, keys.arrivals)
    ingress = (keys.ingress_stream, keys.ingress_state, keys.ingress_open)
    together = [
        [make("demo") for make in session],
        [*(make("gateway") for make in stage), keys.bell("gateway", "w1")],
        [make("3") for make in ingress],
        [make("door") for make in ingress],
    ]
    for names in together:
        assert len({key_slot(name.encode()) for name in names}) == 1, names


async def test_a_plain_url_of_any_node_leads_to_all(
    cluster: EmbeddedCluster, streams: Streams
) -> None:
    for name in one_session_of_each_shard(cluster):
        stream = keys.audio(name)
        entry_id = await streams.append(stream, {"m": b"x"})
        assert await streams.last_id(stream) == entry_id
        assert [e.id for e in (await streams.wait({stream: "0-0"}))[stream]] == [entry_id]
        assert [e.id for e in await streams.range(stream, "0-0")] == [entry_id]
        await streams.acquire([keys.speech_state(name)], "token", "w1")
        assert (await streams.state(keys.speech_state(name)))["token"] == b"token"
    sizes = [cluster.command(node, "DBSIZE") for node in cluster.primaries()]
    assert sizes == [2, 2, 2], "each session lies on a shard of its own"


def test_the_command_line_finds_the_node_of_a_key(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in (cluster.url, cluster.nodes[-1].url):
        monkeypatch.setenv("FIRSTWORD_REDIS_URL", url)
        for name in one_session_of_each_shard(cluster):
            assert main(["redis", "HSET", keys.speech_state(name), "url", url]) == 0
            assert main(["redis", "HGET", keys.speech_state(name), "url"]) == 0
            assert capsys.readouterr().out.splitlines()[-1] == url


async def test_any_named_node_that_lives_will_do(cluster: EmbeddedCluster) -> None:
    streams = Streams(f"redis://127.0.0.1:1,127.0.0.1:{cluster.nodes[2].port}")
    assert await streams.append(keys.DOOR, {"m": b"x"})
    await streams.close()


async def test_a_database_is_refused(cluster: EmbeddedCluster) -> None:
    async with Firstword(f"redis://127.0.0.1:{cluster.nodes[0].port}/1") as firstword:
        with pytest.raises(FirstwordError, match="database 0 only") as raised:
            await firstword.session().open()
    assert raised.value.code == "bad_url"


async def test_several_servers_are_no_cluster(redis_url: str) -> None:
    async with Firstword(f"{redis_url.removesuffix('/0')},127.0.0.1:1") as firstword:
        with pytest.raises(FirstwordError, match="no node of a cluster") as raised:
            await firstword.session().open()
    assert raised.value.code == "bad_url"


async def test_many_commands_at_once_wait_for_each_other(streams: Streams) -> None:
    stream = keys.audio("demo")
    ids = await asyncio.gather(*(streams.append(stream, {"m": b"x"}) for _ in range(300)))
    assert len(set(ids)) == 300


async def test_what_a_deployment_runs_with_is_known_on_a_cluster(streams: Streams) -> None:
    assert await streams.workers("segmenter") == 0
    assert await streams.record(8, max_queued=50) == 8
    assert await streams.record(4) == 8
    assert not await streams.refuses_text()
    units: list[str] = []
    silent = Ownership(streams, "segmenter", acquired=units.append, lost=units.append)
    beating = asyncio.create_task(silent.run())

    async def lives() -> bool:
        return await streams.workers("segmenter") == 1

    await eventually(lives, "it beats")
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)


async def test_the_whole_path_on_all_shards(cluster: EmbeddedCluster) -> None:
    async with Stack(cluster.url) as stack:

        async def speak(name: str) -> None:
            async with stack.firstword.session(name) as session:
                events = await session.listener()
                turn = await session.say("Hello there. And a tail")
                audio = await collect(events, turn)
                assert audio.pcm == tone_pcm("Hello there.") + tone_pcm("And a tail")
                receipt = await session.cancel(turn)
                assert receipt.already_done
                await session.close()
                async for event in events:
                    if isinstance(event.message, m.Closed):
                        break

        await asyncio.gather(*map(speak, one_session_of_each_shard(cluster)))
        events = await stack.firstword.session("shell").listener()
        line = {"session": "shell", "text": "Through the door.", "end": "1"}
        await stack.firstword.streams.append(keys.DOOR, line)
        spoken = await until_done(events)
    assert [e.text for e in spoken if isinstance(e, m.SegmentStarted)] == ["Through the door."]


@pytest.fixture
def doomed(binary: str | None) -> Iterator[EmbeddedCluster]:
    """A cluster for one test, which may kill its nodes."""
    with EmbeddedCluster(binary) as cluster:
        yield cluster


async def test_a_primary_dies_and_every_word_comes_once_in_order(doomed: EmbeddedCluster) -> None:
    victim = doomed.primary_of(keys.workers("gateway"))
    names = one_session_of_each_shard(doomed)
    async with Stack(doomed.url) as stack:
        dying, replaced = asyncio.Event(), asyncio.Event()
        speaking = [
            asyncio.create_task(_speak_through(stack, name, (dying, replaced))) for name in names
        ]
        await eventually(lambda: _all_begun(stack, names), "every session speaks")
        dying.set()
        await asyncio.to_thread(victim.kill)
        await eventually(lambda: _has_three(doomed), "a replica took over", 60)
        replaced.set()
        heard = await asyncio.gather(*speaking)
    for name, pcm in zip(names, heard, strict=True):
        assert pcm == b"".join(map(tone_pcm, SENTENCES)), name


async def _speak_through(stack: Stack, name: str, moments: tuple[asyncio.Event, ...]) -> bytes:
    """A turn that is written before, between and after these moments, as much each time."""
    share = len(SENTENCES) // (len(moments) + 1)
    async with stack.firstword.session(name, pace="none") as session:
        events = await session.listener()
        for number, sentence in enumerate(SENTENCES):
            if number and number % share == 0:
                await moments[number // share - 1].wait()
            await session.text(f"{sentence} ", "t")
        await session.end("t")
        return (await collect(events, "t")).pcm


async def _has_three(cluster: EmbeddedCluster) -> bool:
    return len(await asyncio.to_thread(cluster.primaries)) == 3


async def _all_begun(stack: Stack, names: list[str]) -> bool:
    streams = stack.firstword.streams
    return all([await streams.last_id(keys.audio(name)) != "0-0" for name in names])
