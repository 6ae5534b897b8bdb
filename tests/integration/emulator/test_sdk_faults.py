"""What the official client makes of every fault: the traps that programs must expect."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from firstword.emulator.server import Emulator
from firstword.emulator.settings import Settings
from tests.doubles.emulator_containers import AiohttpContainer
from tests.support import eventually

if sys.version_info < (3, 12):
    pytest.skip("SageMaker's official client needs Python 3.12", allow_module_level=True)

from aws_sdk_sagemaker_runtime_http2.models import (
    InternalServerError,
    ModelError,
    ModelStreamError,
    ServiceUnavailableError,
)
from smithy_core.exceptions import CallError

from tests.doubles import emulator_sdk
from tests.doubles.emulator_sdk import Sdk, SdkStream, sdk


@asynccontextmanager
async def echoing(*faults: str) -> AsyncIterator[tuple[Emulator, Sdk]]:
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url), faults) as emulator,
        sdk(emulator) as client,
    ):
        yield emulator, client


async def echoed(stream: SdkStream, text: str) -> None:
    await stream.send(text.encode(), "UTF8")
    assert await stream.receive() == (text.encode(), "UTF8", "COMPLETE")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("424@1", ModelError),
        ("503@1", ServiceUnavailableError),
        ("500@1", InternalServerError),
        ("429@1", CallError),
    ],
)
async def test_a_refusal_is_an_error_of_its_own_and_the_next_stream_opens(
    fault: str, error: type[Exception]
) -> None:
    async with echoing(fault) as (_, client):
        with pytest.raises(error) as caught:
            await client.open()
        if fault == "429@1":
            assert "ThrottlingException" in str(caught.value)
        await echoed(await client.open(), "again")


@pytest.mark.parametrize("fault", ["abort:1", "rst:1"])
async def test_a_broken_stream_looks_like_a_clean_end(fault: str) -> None:
    """Why a program must ask its own protocol whether all has come."""
    async with echoing(fault) as (_, client):
        stream = await client.open()
        await echoed(stream, "one")
        assert await stream.receive() is None


async def test_a_cut_event_is_an_error() -> None:
    async with echoing("cut:2") as (_, client):
        stream = await client.open()
        await echoed(stream, "one")
        await stream.send(b"two" * 1000, "UTF8")
        with pytest.raises(Exception, match=r"(?i)event|checksum"):
            await stream.receive()


async def test_after_goaway_an_open_stream_goes_on_and_no_other_opens() -> None:
    """Why a program needs a client of its own for each connection."""
    async with echoing("goaway@1:1") as (_, client):
        stream = await client.open()
        await echoed(stream, "one")
        await echoed(stream, "two")
        with pytest.raises(Exception, match="GOAWAY"):
            await client.open()


async def test_never_answer_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why opening needs a time limit."""
    monkeypatch.setattr(emulator_sdk, "TIMEOUT_S", 0.5)
    async with echoing("never-answer") as (_, client):
        with pytest.raises(TimeoutError):
            await client.open()


async def test_without_window_sending_waits_for_ever() -> None:
    """Why sending needs a time limit."""
    async with echoing("no-window") as (emulator, client):
        stream = await client.open()

        async def push() -> None:
            for _ in range(200):
                await stream.send(bytes(4096))

        pushing = asyncio.create_task(push())
        await eventually(lambda: sum(call.ins for call in emulator.calls) >= 15, "it fills up")
        assert not pushing.done()
        emulator.heal()
        for _ in range(200):
            assert await stream.receive() == (bytes(4096), "BINARY", "COMPLETE")
        await pushing


async def test_split_and_delayed_parts_arrive_whole() -> None:
    async with echoing("split=3", "delay=5") as (_, client):
        stream = await client.open()
        for text in ("one", "two" * 50, ""):
            await echoed(stream, text)


async def test_a_capped_stream_ends_and_the_next_one_opens() -> None:
    async with echoing("max-duration=1@1") as (_, client):
        stream = await client.open()
        with pytest.raises(ModelStreamError) as caught:
            await stream.receive()
        assert caught.value.error_code == "ModelInvocationTimeExceeded"
        await echoed(await client.open(), "again")
