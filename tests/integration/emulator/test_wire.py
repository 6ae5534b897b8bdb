"""The emulator seen by a client that does HTTP/2 by hand: frames, windows, and every wrong turn."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import WSCloseCode, web
from h2.settings import SettingCodes

from firstword.emulator.bridge import Frame, Opcode
from firstword.emulator.call import Call
from firstword.emulator.eventstream import Message, encode
from firstword.emulator.server import Emulator
from firstword.emulator.settings import Settings
from firstword.emulator.signatures import KeyPair, Request
from firstword.errors import FirstwordError
from tests.doubles.emulator_containers import AiohttpContainer, FrameContainer
from tests.doubles.emulator_raw import RawStream, raw_client, trusting
from tests.doubles.emulator_signer import Signer, part
from tests.support import eventually

MEGABYTE = 1 << 20


async def message(stream: RawStream, number: int = 1) -> Message:
    await eventually(lambda: len(stream.messages) >= number, f"message {number} comes")
    return stream.messages[number - 1]


async def ended(stream: RawStream) -> RawStream:
    await eventually(lambda: stream.ended, "the response ends")
    return stream


async def test_a_part_goes_through_and_comes_back() -> None:
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        assert stream.headers["content-type"] == "application/vnd.amazon.eventstream"
        assert stream.headers["x-amzn-invoked-production-variant"] == "AllTraffic"
        await stream.send("Grüße".encode())
        got = await message(stream)
        assert got.payload == "Grüße".encode()
        assert got.headers == {
            ":message-type": "event",
            ":event-type": "PayloadPart",
            ":content-type": "application/octet-stream",
            "DataType": "UTF8",
            "CompletionState": "COMPLETE",
        }
        ((path, request_id),) = container.upgrades
        assert path == "/invocations-bidirectional-stream"
        assert request_id == stream.headers["x-amzn-requestid"]
        await stream.send_bytes(stream.signer.end(), end=True)
        await ended(stream)
        assert len(stream.messages) == 1  # our own end is no error
        await eventually(lambda: container.close_codes == [1000], "the container is told")


@pytest.mark.parametrize("signed_end", [True, False])
async def test_either_end_of_the_request_is_a_half_close(signed_end: bool) -> None:
    """Older clients end without the signed empty event; what the container still says arrives."""

    async def answer_late(socket: web.WebSocketResponse) -> None:
        await socket.receive()
        await socket.send_bytes(b"last")
        await socket.receive()

    async with (
        AiohttpContainer(answer_late) as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        await stream.send(b"go")
        if signed_end:
            await stream.send_bytes(stream.signer.end())
        else:
            await stream.send_bytes(b"", end=True)
        await ended(stream)
        assert [got.payload for got in stream.messages] == [b"last"]


async def test_the_response_is_not_over_before_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The official client would fail to end a request whose stream is over, and print so."""
    monkeypatch.setattr("firstword.emulator.call.REQUEST_END_S", 60)
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        await stream.send_bytes(stream.signer.end())
        await eventually(lambda: container.close_codes == [1000], "the container is told")
        await (await client.open()).opened()  # by now its answer is there, too
        assert not stream.ended
        await stream.send_bytes(b"", end=True)
        await ended(stream)


async def test_a_container_that_does_not_answer_the_close_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("firstword.emulator.call.CLOSE_TIMEOUT_S", 0.1)
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        container.peers[0].hears.clear()
        await stream.send(b"wakes the reader, which then is deaf")
        await stream.send_bytes(stream.signer.end(), end=True)
        await ended(stream)
        assert stream.messages == []


async def test_an_error_that_crosses_the_clients_end_is_told() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        (peer,) = container.peers
        peer.hears.clear()
        await stream.send(b"wakes the reader, which then is deaf")
        await eventually(lambda: peer.frames, "it is deaf now")
        await stream.send_bytes(stream.signer.end(), end=True)
        peer.send_raw(b"\x88\x02\x03\xf3")
        await ended(stream)
        assert json.loads(stream.messages[0].payload)["ErrorCode"] == "1011"


# -- what is wrong inside a stream ----------------------------------------------------------------


def unsigned(signer: Signer) -> bytes:
    return encode(part(b"x"))


def repeated(signer: Signer) -> bytes:
    return signer.event(part(b"x")) * 2


def no_part(signer: Signer) -> bytes:
    return signer.event(Message({":message-type": "event", ":event-type": "Hello"}))


def garbage_inside(signer: Signer) -> bytes:
    return signer.wrap(b"garbage")


def damaged(signer: Signer) -> bytes:
    return signer.event(part(b"x"))[:-1] + b"x"


def after_the_end(signer: Signer) -> bytes:
    return signer.end() + signer.event(part(b"x"))


@pytest.mark.parametrize(
    ("make", "code", "why"),
    [
        (unsigned, "InvalidSignatureException", "has no :date"),
        (repeated, "InvalidSignatureException", "event 2 does not match"),
        (no_part, "ValidationException", "must be a PayloadPart"),
        (garbage_inside, "SerializationException", "not exactly one whole event"),
        (damaged, "SerializationException", "CRC"),
        (after_the_end, "InvalidSignatureException", "came after"),
    ],
)
async def test_a_wrong_event_ends_the_stream_with_its_reason(
    make: Any, code: str, why: str
) -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        await stream.send_bytes(make(stream.signer))
        await ended(stream)
        assert stream.messages[-1].headers[":message-type"] == "error"
        assert stream.messages[-1].headers[":error-code"] == code
        assert why in str(stream.messages[-1].headers[":error-message"])
        await eventually(container.peers[0].gone.is_set, "the container is let go")
        again = await (await client.open()).opened()  # the connection is as good as before
        assert again.status == 200


async def test_a_request_that_ends_inside_an_event_is_told_so() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        await stream.send_bytes(stream.signer.event(part(b"half"))[:20], end=True)
        await ended(stream)
        assert stream.messages[-1].headers[":error-code"] == "SerializationException"
        assert container.peers[0].frames == []


# -- refusals before it ---------------------------------------------------------------------------


def stale(emulator: Emulator, authority: str) -> Request:
    at = datetime.now(UTC) - timedelta(minutes=10)
    return Signer(emulator.settings.key, at=at).request(host=authority)


def elsewhere(emulator: Emulator, authority: str) -> Request:
    return Signer(emulator.settings.key).request(path="/endpoints/demo/invocations", host=authority)


def fetched(emulator: Emulator, authority: str) -> Request:
    return replace(Signer(emulator.settings.key).request(host=authority), method="GET")


def nameless(emulator: Emulator, authority: str) -> Request:
    return replace(Signer(emulator.settings.key).request(host=authority), headers=[])


@pytest.mark.parametrize(
    ("make", "status", "code"),
    [
        (stale, 403, "InvalidSignatureException"),
        (elsewhere, 404, "UnknownOperationException"),
        (fetched, 403, "InvalidSignatureException"),
        (nameless, 403, "MissingAuthenticationTokenException"),
    ],
)
async def test_a_request_that_nobody_would_take(make: Any, status: int, code: str) -> None:
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await client.open(request=make(emulator, client.authority))
        await ended(stream)
        assert (stream.status, stream.headers["x-amzn-errortype"]) == (status, code)
        assert json.loads(stream.body)["ErrorCode"] == code
        assert container.upgrades == []


async def test_a_client_without_http2_is_shown_the_door() -> None:
    lines: list[str] = []
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url), tell=lines.append) as emulator,
    ):
        parts = urlsplit(emulator.uri)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            parts.port,
            ssl=trusting(emulator, ["http/1.1"]),
            server_hostname=parts.hostname,
        )
        assert await reader.read() == b""
        writer.close()
        assert any("ALPN" in line for line in lines)


async def test_a_client_that_speaks_nonsense_loses_its_connection() -> None:
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url)) as emulator,
    ):
        parts = urlsplit(emulator.uri)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            parts.port,
            ssl=trusting(emulator, ["h2"]),
            server_hostname=parts.hostname,
        )
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 9)
        await reader.read()  # its GOAWAY, and the end
        writer.close()
        async with raw_client(emulator) as client:
            assert (await (await client.open()).opened()).status == 200


async def test_addresses_that_are_none_are_told_at_once() -> None:
    for url in ("http://127.0.0.1:1", "ws://", "ws://h:1/path", "ws://h:x", "ws://h?a=b", ""):
        with pytest.raises(FirstwordError, match=r"ws://127\.0\.0\.1:8080"):
            Emulator(Settings(url))


# -- windows --------------------------------------------------------------------------------------


async def test_a_client_that_does_not_read_holds_up_the_container_and_nobody_else() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url, ping_s=0.05)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        stream.reads = False
        peer = container.peers[0]
        sent = 0
        frame = Frame(Opcode.BINARY, bytes(MEGABYTE // 4))
        while not peer.unsent_bytes or sent < 16 * MEGABYTE:
            if peer.unsent_bytes:
                break
            peer.send_raw(b"\x82\x7f" + len(frame.data).to_bytes(8, "big") + frame.data)
            sent += len(frame.data)
            await asyncio.sleep(0)
        # What is under way fits into two sockets and one window.
        await eventually(lambda: len(stream.body) >= 65_535, "its window fills")
        assert len(stream.body) == 65_535
        other = await (await client.open()).opened()
        await eventually(lambda: container.peers[1].pings > 7, "more than five pings")
        assert not stream.ended  # its pongs lie unread: that is no reason to call it dead
        await container.peers[1].send(Frame(Opcode.TEXT, b"beside it"))
        assert (await message(other)).payload == b"beside it"
        stream.read_on()
        await eventually(
            lambda: sum(len(got.payload) for got in stream.messages) == sent, "all arrives"
        )
        assert not stream.ended


async def test_a_container_that_does_not_read_holds_up_the_client_and_nobody_else() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        other = await (await client.open()).opened()
        peer = container.peers[0]
        peer.hears.clear()
        sent = 0

        async def push() -> None:
            nonlocal sent
            while sent < 24 * MEGABYTE:
                data = bytes(MEGABYTE // 16)
                await stream.send(data, None)
                sent += len(data)

        pushing = asyncio.create_task(push())
        await eventually(
            lambda: stream.window() == 0 and sent > 0 and emulator.calls, "no window is left"
        )
        await other.send(b"beside it")
        await eventually(
            lambda: container.peers[1].frames == [Frame(Opcode.TEXT, b"beside it")],
            "the other stream goes on",
        )
        peer.hears.set()
        await eventually(lambda: sent >= 24 * MEGABYTE, "all is taken", timeout=60)
        await pushing
        await eventually(lambda: peer.received_bytes == sent, "all arrives", timeout=60)


async def test_a_client_may_make_its_windows_larger_halfway() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        client.settings({SettingCodes.INITIAL_WINDOW_SIZE: 100})
        stream = await (await client.open()).opened()
        stream.reads = False
        await container.peers[0].send(Frame(Opcode.BINARY, bytes(1000)))
        await eventually(lambda: len(stream.body) == 100, "the small window fills")
        client.settings({SettingCodes.INITIAL_WINDOW_SIZE: 65_535})
        assert (await message(stream)).payload == bytes(1000)


# -- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["cancel", "abort"])
async def test_a_client_that_vanishes_takes_its_container_connection_along(how: str) -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        if how == "cancel":
            stream.cancel()
        else:
            client.abort()
        await eventually(container.peers[0].gone.is_set, "the container is let go")
        assert container.peers[0].close_code == WSCloseCode.GOING_AWAY
        await eventually(lambda: not emulator.calls, "nothing is left of it")


@pytest.mark.parametrize("how", ["cancel", "abort"])
async def test_a_client_that_vanishes_during_the_upgrade_is_forgotten(how: str) -> None:
    lines: list[str] = []
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url, open_timeout_s=2), tell=lines.append) as emulator,
        raw_client(emulator) as client,
    ):
        container.answers = False
        stream = await client.open()
        await eventually(lambda: container.connections, "the upgrade is asked for")
        if how == "cancel":
            stream.cancel()
        else:
            client.abort()
        await eventually(lambda: "gone" in "".join(lines), "it is noticed")
        container.answers = True
        async with raw_client(emulator) as another:
            assert (await (await another.open()).opened()).status == 200


async def test_what_comes_after_the_answer_is_dropped_and_the_connection_lives() -> None:
    async with (
        FrameContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        stream = await (await client.open()).opened()
        container.peers[0].close(1011, "enough")
        await ended(stream)
        for _ in range(20):  # more than one window
            await stream.send_bytes(bytes(16_384))
        assert (await (await client.open()).opened()).status == 200


async def test_stopping_the_emulator_ends_everything() -> None:
    async with FrameContainer() as container, contextlib.AsyncExitStack() as stack:
        emulator = Emulator(Settings(container.url), ["slow-open=60000@2", "never-answer@3"])
        await stack.enter_async_context(emulator)
        client = await stack.enter_async_context(raw_client(emulator))
        await (await client.open()).opened()
        await client.open()
        await client.open()
        await emulator.stop()
        await client.lost.wait()
        assert not emulator.calls
        await eventually(container.peers[0].gone.is_set, "the container is let go")


async def test_a_fault_of_our_own_is_told_and_costs_one_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_call: Call) -> str:
        raise RuntimeError("a fault of our own")

    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url)) as emulator,
        raw_client(emulator) as client,
    ):
        with monkeypatch.context() as patched:
            patched.setattr(Call, "run", fail)
            stream = await client.open()
            await eventually(lambda: stream.reset == 2, "the stream is reset")
        assert "a fault of our own" in str(told)
        assert (await (await client.open()).opened()).status == 200


async def test_a_session_token_is_asked_for() -> None:
    key = KeyPair("A", "b", "token")
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url, key=key)) as emulator,
        raw_client(emulator) as client,
    ):
        assert (await (await client.open()).opened()).status == 200
        refused = await client.open(Signer(KeyPair("A", "b")))
        assert (await ended(refused)).status == 403
