"""The official client through the emulator to real WebSocket servers: every mapping and refusal."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
from aiohttp import web

from firstword.emulator.bridge import Frame, Opcode
from firstword.emulator.server import Emulator
from firstword.emulator.settings import Settings
from firstword.emulator.signatures import KeyPair
from tests.doubles.emulator_containers import AiohttpContainer, FrameContainer
from tests.support import eventually

if sys.version_info < (3, 12):
    pytest.skip("SageMaker's official client needs Python 3.12", allow_module_level=True)

from aws_sdk_sagemaker_runtime_http2.models import (
    InputValidationError,
    ModelError,
    ModelStreamError,
)
from smithy_core.exceptions import CallError

from tests.doubles.emulator_sdk import SdkStream, sdk

ID, SECRET = "EMULATORACCESSKEY", "emulator-secret-access-key"
TEXT, BINARY, CONTINUATION = Opcode.TEXT, Opcode.BINARY, Opcode.CONTINUATION


async def model_error(stream: SdkStream) -> tuple[str, str]:
    with pytest.raises(ModelStreamError) as caught:
        await stream.receive()
    return caught.value.error_code or "", caught.value.message


@pytest.mark.parametrize(
    ("data", "data_type", "back"),
    [
        ("Grüße".encode(), "UTF8", "UTF8"),
        (b"\x00\xff", "BINARY", "BINARY"),
        (b"\x00\xff", None, "BINARY"),
        (b"", "UTF8", "UTF8"),
        (os.urandom(4_000_000), "BINARY", "BINARY"),
    ],
    ids=["text", "binary", "default", "empty", "4 MB"],
)
async def test_a_part_is_one_frame_there_and_back(
    data: bytes, data_type: str | None, back: str
) -> None:
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        sdk(emulator) as client,
    ):
        stream = await client.open()
        assert stream.output.invoked_production_variant == "AllTraffic"
        await stream.send(data, data_type)
        assert await stream.receive() == (data, back, "COMPLETE")
        await stream.end()
        assert await stream.receive() is None
        await eventually(lambda: container.close_codes == [1000], "the container sees 1000")


async def test_partial_parts_are_fragments_and_fragments_partial_parts() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        sdk(emulator) as client,
    ):
        stream = await client.open()
        await stream.send(b"a", "UTF8", "PARTIAL")
        await stream.send(b"b", "UTF8", "PARTIAL")
        await stream.send(b"c", "UTF8", "COMPLETE")
        await stream.send(b"d")
        there = [
            Frame(TEXT, b"a", False),
            Frame(CONTINUATION, b"b", False),
            Frame(CONTINUATION, b"c"),
            Frame(BINARY, b"d"),
        ]
        (peer,) = container.peers
        await eventually(lambda: peer.frames == there, "the frames come as they were sent")
        await peer.send(
            Frame(BINARY, b"1", False),
            Frame(CONTINUATION, b"2", False),
            Frame(CONTINUATION, b"3"),
            Frame(TEXT, b"4"),
        )
        assert [await stream.receive() for _ in range(4)] == [
            (b"1", "BINARY", "PARTIAL"),
            (b"2", "BINARY", "PARTIAL"),
            (b"3", "BINARY", "COMPLETE"),
            (b"4", "UTF8", "COMPLETE"),
        ]


async def test_bytes_are_not_looked_into() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        sdk(emulator) as client,
    ):
        stream = await client.open()
        await stream.send(b"\xff\xfe", "UTF8")
        (peer,) = container.peers
        await eventually(lambda: peer.frames == [Frame(TEXT, b"\xff\xfe")], "it comes unread")
        await peer.send(Frame(TEXT, b"\xfe\xff"))
        assert await stream.receive() == (b"\xfe\xff", "UTF8", "COMPLETE")


async def test_path_query_and_request_id_reach_the_container() -> None:
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        sdk(emulator) as client,
    ):
        await client.open(model_invocation_path="v1/speak", model_query_string="a=1&b=%20")
        await client.open(target_variant="AllTraffic")
        assert [path for path, _ in container.upgrades] == [
            "/v1/speak?a=1&b=%20",
            "/invocations-bidirectional-stream",
        ]
        ids = {request_id for _, request_id in container.upgrades}
        assert len(ids) == 2 and "" not in ids


@pytest.mark.parametrize("connections", ["one", "many"])
async def test_forty_streams_at_once_keep_apart(connections: str) -> None:
    """The client makes a connection for each stream that is opened before the first one stands."""
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        sdk(emulator) as client,
    ):

        async def talk(stream: SdkStream, name: str) -> None:
            for number in range(5):
                data = f"{name}.{number}".encode() * 2000
                await stream.send(data, "UTF8")
                assert await stream.receive() == (data, "UTF8", "COMPLETE")
            await stream.end()
            assert await stream.receive() is None

        if connections == "many":
            streams = await asyncio.gather(*(client.open() for _ in range(40)))
        else:
            streams = [await client.open() for _ in range(40)]
        assert len(emulator.calls) == 40
        await asyncio.gather(*(talk(it, f"s{index}") for index, it in enumerate(streams)))
        await eventually(lambda: container.close_codes == [1000] * 40, "all see their end")


# -- the container's end --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason", "told"),
    [
        (1011, "out of memory", ("1011", "out of memory")),
        (1013, "", ("1013", "container closed with 1013")),
        (1000, "done", ("1000", "done")),
    ],
)
async def test_a_close_is_a_model_stream_error(
    code: int, reason: str, told: tuple[str, str]
) -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        sdk(emulator) as client,
    ):
        stream = await client.open()
        (peer,) = container.peers
        await peer.send(Frame(TEXT, b"last"))
        peer.close(code, reason)
        assert await stream.receive() == (b"last", "UTF8", "COMPLETE")
        assert await model_error(stream) == told
        await eventually(lambda: peer.close_code == code, "the close is answered")


async def test_a_normal_close_can_be_a_plain_end() -> None:
    async with FrameContainer() as container:
        settings = Settings(container.url, normal_close_is_error=False)
        async with Emulator(settings) as emulator, sdk(emulator) as client:
            stream = await client.open()
            container.peers[0].close(1000)
            assert await stream.receive() is None


@pytest.mark.parametrize(
    ("death", "code"),
    [
        ("abort", "1006"),
        ("nonsense", "1002"),
        ("huge", "1009"),
        ("half", "1006"),
        ("nameless", "1005"),
    ],
)
async def test_a_container_that_dies_or_breaks_the_protocol_is_told(death: str, code: str) -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        sdk(emulator) as client,
    ):
        stream = await client.open()
        (peer,) = container.peers
        if death == "abort":
            peer.abort()
        elif death == "nonsense":
            peer.send_raw(b"\xff\xff\xff")
        elif death == "huge":
            peer.send_raw(b"\x82\x7f" + (1 << 40).to_bytes(8, "big"))
        elif death == "nameless":
            peer.send_raw(b"\x88\x00")
        else:
            peer.send_raw(b"\x82\x05ab")
            peer.abort()
        assert (await model_error(stream))[0] == code


async def test_pings_keep_a_stream_alive_and_five_without_answer_end_it() -> None:
    async with FrameContainer() as container:
        settings = Settings(container.url, ping_s=0.05)
        async with Emulator(settings) as emulator, sdk(emulator) as client:
            stream = await client.open()
            (peer,) = container.peers
            await eventually(lambda: peer.pings > 10, "pings come")
            await peer.send(Frame(TEXT, b"still here"))
            assert await stream.receive() == (b"still here", "UTF8", "COMPLETE")
            peer.hears.clear()
            code, message = await model_error(stream)
            assert (code, "5 pings" in message) == ("1006", True)


async def test_a_container_that_answers_every_ping_in_time_lives() -> None:
    async with FrameContainer() as container:
        settings = Settings(container.url, ping_s=0.6, ping_misses=1)
        async with Emulator(settings) as emulator, sdk(emulator) as client:
            await client.open()
            (peer,) = container.peers
            await eventually(lambda: peer.pings > 2, "pings come and are answered")
            assert emulator.calls


@pytest.mark.parametrize("error", [True, False])
async def test_a_stream_lives_no_longer_than_its_cap(error: bool) -> None:
    async with AiohttpContainer() as container:
        settings = Settings(container.url, max_duration_s=1, cap_is_error=error)
        async with Emulator(settings) as emulator, sdk(emulator) as client:
            stream = await client.open()
            if error:
                code, message = await model_error(stream)
                assert (code, "1 s" in message) == ("ModelInvocationTimeExceeded", True)
            else:
                assert await stream.receive() is None
            await eventually(lambda: container.close_codes == [1001], "the container is told")


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"model_invocation_path": "/leading"},
        {"model_invocation_path": "x" * 101},
        {"model_query_string": "x"},
        {"target_variant": "Another"},
        {"endpoint": "unknown"},
    ],
    ids=lambda options: next(iter(options)),
)
async def test_a_wrong_request_is_an_input_validation_error(options: dict[str, str]) -> None:
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url, endpoints=frozenset({"demo"}))) as emulator,
        sdk(emulator) as client,
    ):
        with pytest.raises(InputValidationError):
            await client.open(**options)
        assert container.upgrades == []
        assert await client.open()  # the connection is as good as before


@pytest.mark.parametrize(
    ("key", "region", "name", "why"),
    [
        (KeyPair(ID, "wrong"), None, "InvalidSignatureException", "wrong secret"),
        (KeyPair("WHO", SECRET), None, "UnrecognizedClientException", "no access key WHO"),
        (KeyPair(ID, SECRET, "x"), None, "UnrecognizedClientException", "session token"),
        (None, "eu-west-1", "InvalidSignatureException", "eu-west-1"),
    ],
    ids=["secret", "key", "token", "region"],
)
async def test_wrong_credentials_are_refused_with_the_reason(
    key: KeyPair | None, region: str | None, name: str, why: str
) -> None:
    """The client tells the error's name alone; the emulator says why."""
    lines: list[str] = []
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url), tell=lines.append) as emulator,
        sdk(emulator, key=key, region=region) as client,
    ):
        with pytest.raises(CallError, match=rf"403.*{name}"):
            await client.open()
        assert any(why in line for line in lines)
        assert container.upgrades == []


async def test_temporary_credentials_are_taken() -> None:
    key = KeyPair("TEMPORARY", "secret", "token")
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url, key=key)) as emulator,
        sdk(emulator) as client,
    ):
        stream = await client.open()
        await stream.send(b"x")
        assert await stream.receive() == (b"x", "BINARY", "COMPLETE")


async def test_a_container_that_refuses_is_424_and_its_words_stay_inside() -> None:
    lines: list[str] = []
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url), tell=lines.append) as emulator,
        sdk(emulator) as client,
    ):
        container.refuse = web.HTTPServiceUnavailable(text="secret words")
        with pytest.raises(ModelError) as caught:
            await client.open()
        assert caught.value.message == "Failed to establish WebSocket connection"
        assert any("503" in line for line in lines)
        container.refuse = None
        assert await client.open()


async def test_a_container_that_is_away_or_silent_is_424() -> None:
    async with FrameContainer() as container:
        settings = Settings(container.url, open_timeout_s=0.2)
        async with Emulator(settings) as emulator, sdk(emulator) as client:
            container.answers = False
            with pytest.raises(ModelError):
                await client.open()
            container.hang_up = True
            with pytest.raises(ModelError):
                await client.open()
    away = Emulator(settings)
    async with away, sdk(away) as client:
        with pytest.raises(ModelError):
            await client.open()
