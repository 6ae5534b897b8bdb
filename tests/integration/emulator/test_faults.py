"""Every fault as it looks on the wire: which stream it meets, and at which moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hyperframe.frame import RstStreamFrame

from firstword.emulator.bridge import Frame, Opcode
from firstword.emulator.eventstream import encode
from firstword.emulator.faults import FaultError
from firstword.emulator.server import Emulator
from firstword.emulator.settings import Settings
from tests.doubles.emulator_containers import AiohttpContainer, FrameContainer
from tests.doubles.emulator_raw import RawClient, RawStream, raw_client
from tests.support import eventually

PCM = Frame(Opcode.BINARY, bytes(range(256)) * 4)


@asynccontextmanager
async def echoing(*faults: str) -> AsyncIterator[tuple[Emulator, RawClient]]:
    """An emulator with faults before an echo, and a client."""
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url), faults) as emulator,
        raw_client(emulator) as client,
    ):
        yield emulator, client


async def echoed(stream: RawStream, text: str) -> None:
    """One part there and back."""
    before = len(stream.messages)
    await stream.send(text.encode())
    await eventually(lambda: len(stream.messages) > before, f"{text!r} comes back")
    assert stream.messages[-1].payload == text.encode()


async def statuses(client: RawClient, count: int) -> list[int]:
    return [(await (await client.open()).opened()).status for _ in range(count)]


@pytest.mark.parametrize("status", [424, 429, 500, 503])
async def test_refusals_meet_the_streams_they_name(status: int) -> None:
    async with echoing(f"{status}@2-3") as (_, client):
        assert await statuses(client, 4) == [200, status, status, 200]


async def test_never_answer() -> None:
    async with echoing("never-answer@1") as (emulator, client):
        first = await client.open()
        assert await statuses(client, 1) == [200]
        assert first.status == 0
        first.cancel()
        emulator.heal()
        assert await statuses(client, 1) == [200]


async def test_slow_open() -> None:
    async with echoing("slow-open=300@1") as (_, client):
        first = await client.open()
        assert await statuses(client, 1) == [200]
        assert first.status == 0  # the second overtook it
        await first.opened()


async def test_abort_after_the_second_part_out() -> None:
    async with echoing("abort@1:2") as (emulator, client):
        stream = await (await client.open()).opened()
        await echoed(stream, "one")
        await stream.send(b"two")
        await client.lost.wait()
        assert not stream.ended
        async with raw_client(emulator) as another:
            again = await (await another.open()).opened()
            for number in range(4):
                await echoed(again, str(number))


async def test_abort_after_the_second_part_in() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url), ["abort:in2"]) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        await stream.send(b"one")
        await eventually(lambda: len(container.peers[0].frames) == 1, "the first arrives")
        assert not client.lost.is_set()
        await stream.send(b"two")
        await client.lost.wait()
        await eventually(container.peers[0].gone.is_set, "the container is let go")
        assert [frame.data for frame in container.peers[0].frames] == [b"one", b"two"]


@pytest.mark.parametrize(("fault", "code"), [("rst:1", 2), ("rst=8:1", 8)])
async def test_rst_breaks_one_stream_and_leaves_the_connection(fault: str, code: int) -> None:
    async with echoing(fault) as (_, client):
        other = await (await client.open()).opened()
        stream = await (await client.open()).opened()
        await stream.send(b"x")
        await eventually(lambda: stream.reset == code, "the stream is reset")
        assert not client.lost.is_set()
        assert other.reset is None


async def test_goaway_lets_open_streams_go_on_and_refuses_new_ones() -> None:
    async with echoing("goaway@1:1") as (_, client):
        stream = await (await client.open()).opened()
        await echoed(stream, "one")
        await eventually(lambda: client.goaway is not None, "GOAWAY comes")
        assert client.goaway is not None
        assert client.goaway.error_code == 0
        assert client.goaway.last_stream_id == 1


async def test_a_stream_that_crosses_the_goaway_is_refused() -> None:
    async with echoing() as (emulator, client):
        await (await client.open()).opened()
        emulator.inject("goaway")
        await client.open()
        refused = RstStreamFrame(3, error_code=7).serialize()
        await eventually(lambda: refused in client.wire, "it may be tried elsewhere")


async def test_cut_ends_in_the_middle_of_an_event() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url), ["cut@1:2"]) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        (peer,) = container.peers
        await peer.send(PCM, PCM, PCM)
        await client.lost.wait()
        (whole,) = stream.messages
        size = len(encode(whole))
        assert len(stream.body) == size + size // 2


async def test_no_window_starves_the_client_until_healed() -> None:
    async with echoing("no-window:in1") as (emulator, client):
        stream = await (await client.open()).opened()
        await echoed(stream, "x" * 30_000)
        await echoed(stream, "x" * 30_000)
        assert stream.window() < 10_000
        emulator.heal()
        await eventually(lambda: stream.window() > 60_000, "the window comes back")
        await echoed(stream, "x" * 30_000)


@pytest.mark.parametrize("fault", ["split", "split=5", "split=5:1"])
async def test_split_sends_an_event_in_many_frames(fault: str) -> None:
    async with echoing(fault) as (_, client):
        stream = await (await client.open()).opened()
        await echoed(stream, "one")
        assert {len(piece) for piece in stream.pieces[:-1]} == {5}
        before = len(stream.pieces)
        await echoed(stream, "two")
        assert (len(stream.pieces) == before + 1) == fault.endswith(":1")


async def test_delay_holds_up_one_part_and_those_behind_it() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url), ["delay=300@1:1"]) as emulator,
        raw_client(emulator) as client,
    ):
        slow = await (await client.open()).opened()
        quick = await (await client.open()).opened()
        for peer in container.peers:
            await peer.send(PCM, PCM)
        await eventually(lambda: len(quick.messages) == 2, "the other is not held up")
        assert slow.messages == []
        await eventually(lambda: len(slow.messages) == 2, "it comes late")


async def test_max_duration_of_one_stream() -> None:
    async with echoing("max-duration=0.1@2") as (_, client):
        first = await (await client.open()).opened()
        second = await (await client.open()).opened()
        await eventually(lambda: second.ended, "the second reaches its end")
        assert second.messages[-1].headers[":exception-type"] == "ModelStreamError"
        await echoed(first, "still here")


# -- at run time ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["abort", "rst", "goaway"])
async def test_an_open_stream_is_struck_as_soon_as_a_fault_is_switched_on(fault: str) -> None:
    async with echoing() as (emulator, client):
        stream = await (await client.open()).opened()
        await echoed(stream, "one")
        emulator.inject(fault)
        signs = {
            "abort": client.lost.is_set,
            "rst": lambda: stream.reset == 2,
            "goaway": lambda: client.goaway is not None,
        }
        await eventually(signs[fault], f"{fault} strikes")


async def test_streams_are_counted_from_the_moment_of_switching_on() -> None:
    async with echoing() as (emulator, client):
        assert await statuses(client, 2) == [200, 200]
        emulator.inject("429@2")
        assert await statuses(client, 3) == [200, 429, 200]


async def test_a_fault_that_cannot_be_read_changes_nothing() -> None:
    async with echoing() as (emulator, client):
        with pytest.raises(FaultError):
            emulator.inject("explode")
        assert await statuses(client, 1) == [200]


async def test_a_client_that_takes_nothing_is_reset_when_its_stream_must_end() -> None:
    """An event that is half sent cannot be followed by another."""
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url), ["max-duration=1"]) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        stream.reads = False
        await container.peers[0].send(Frame(Opcode.BINARY, bytes(100_000)))
        await eventually(lambda: stream.reset == 2, "it is reset")
        assert stream.messages == []
