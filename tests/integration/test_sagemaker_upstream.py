"""The traps of SageMaker's streams and of the SDK that speaks to them, each on the emulator."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from firstword.emulator.signatures import KeyPair
from firstword.errors import SettingsError, UpstreamError
from services.tts_gateway.__main__ import upstream_for
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Link, Upstream
from tests.doubles.container import BackendPeer, WebSocketBackend
from tests.doubles.proxy import Proxy
from tests.doubles.sagemaker import MISSING, SageMaker, emulated, url
from tests.support import eventually

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from services.tts_gateway import sagemaker

REQUEST = '{"type":"synthesize","id":"1.1","text":"A word that nobody may read."}'
NO_ROOM = 256
"""Bytes of window: for fewer, AWS's library begins no further frame."""


@pytest.fixture(autouse=True)
async def nothing_is_said_behind_our_back() -> AsyncIterator[None]:
    """No exception of a task or a future is left for the loop to complain of."""
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    yield
    gc.collect()
    await asyncio.sleep(0)
    assert said == []


@pytest.fixture
async def backend() -> AsyncIterator[WebSocketBackend]:
    async with WebSocketBackend() as double:
        yield double


@pytest.fixture
async def endpoint(backend: WebSocketBackend) -> AsyncIterator[SageMaker]:
    async with emulated(backend.url) as made:
        yield made


async def upstream_of(url: str) -> Upstream:
    return await asyncio.to_thread(upstream_for, GatewaySettings(upstream=url))


@pytest.fixture
async def upstream(endpoint: SageMaker) -> Upstream:
    return await upstream_of(endpoint.url)


@pytest.fixture
async def link(upstream: Upstream) -> AsyncIterator[Link]:
    made = await upstream.connect()
    yield made
    await made.close()


async def peer_of(backend: WebSocketBackend, number: int = 0) -> BackendPeer:
    await eventually(lambda: len(backend.peers) > number, "the container has the connection")
    return backend.peers[number]


async def ends(link: Link) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        while True:
            await link.receive()
    return raised.value


async def refused(upstream: Upstream) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        await upstream.connect()
    return raised.value


# -- a stream that breaks is no stream that has ended ---------------------------------------------


@pytest.mark.parametrize("fault", ["abort", "rst", "rst=0", "rst=8", "cut:2"])
async def test_a_stream_that_breaks_is_told(
    backend: WebSocketBackend, endpoint: SageMaker, link: Link, fault: str
) -> None:
    peer = await peer_of(backend)
    await peer.send(b"\1\2")
    assert await link.receive() == (b"\1\2", False)
    endpoint.emulator.inject(fault)
    await peer.send(b"\3\4")
    error = await ends(link)
    assert (error.code, error.retryable) == ("upstream_lost", True)
    assert "the endpoint ended it" not in error.message
    with pytest.raises(UpstreamError):
        await link.send(REQUEST)


@pytest.mark.parametrize("at_max", [True, False])
async def test_a_stream_whose_time_is_up_ends(backend: WebSocketBackend, at_max: bool) -> None:
    async with emulated(backend.url, max_duration_s=1, cap_is_error=at_max) as made:
        link = await (await upstream_of(made.url)).connect()
        error = await ends(link)
        assert ("ModelInvocationTimeExceeded" in error.message) == at_max
        await link.close()


async def test_what_came_before_the_end_is_not_lost(
    backend: WebSocketBackend, endpoint: SageMaker, link: Link
) -> None:
    peer = await peer_of(backend)
    for n in range(20):
        await peer.send(bytes([n, 0]))
    await peer.finish()
    got = [(await link.receive())[0] for _ in range(20)]
    assert got == [bytes([n, 0]) for n in range(20)]
    assert "1012" in (await ends(link)).message


async def test_a_server_that_goes_takes_no_new_streams_and_that_hurts_nobody(
    backend: WebSocketBackend, endpoint: SageMaker, upstream: Upstream, link: Link
) -> None:
    """GOAWAY: the SDK's pool would offer the connection again and again. Each link has its own."""
    endpoint.emulator.inject("goaway")
    await link.send(REQUEST)
    peer = await peer_of(backend)
    await eventually(lambda: peer.received == [REQUEST], "the open stream goes on")
    endpoint.emulator.heal()
    second = await upstream.connect()
    await second.send(REQUEST)
    other = await peer_of(backend, 1)
    await eventually(lambda: other.received == [REQUEST], "and a new one too")
    await second.close()


async def test_parts_may_come_in_any_pieces(
    backend: WebSocketBackend, endpoint: SageMaker, link: Link
) -> None:
    endpoint.emulator.inject("split=3")
    peer = await peer_of(backend)
    await peer.send('{"text":"Gruß 👋"}')
    await peer.send(bytes(range(250)))
    assert await link.receive() == ('{"text":"Gruß 👋"}', True)
    assert await link.receive() == (bytes(range(250)), False)


# -- opening --------------------------------------------------------------------------------------


async def test_an_endpoint_that_never_answers_is_given_up(
    endpoint: SageMaker, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagemaker, "OPEN_S", 0.5)
    endpoint.emulator.inject("never-answer")
    error = await refused(upstream)
    assert (error.code, error.retryable) == ("upstream_unreachable", True)
    monkeypatch.undo()  # for one that does, this is short on a busy machine
    endpoint.emulator.heal()
    await (await upstream.connect()).close()


async def test_a_connection_that_breaks_before_the_answer_is_told_at_once(
    endpoint: SageMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK would wait for ever; the test would run into its time limit."""
    monkeypatch.setattr(sagemaker, "OPEN_S", 1000)
    endpoint.emulator.inject("never-answer")
    async with Proxy(endpoint.emulator.uri) as proxy:
        to = quote(endpoint.emulator.uri), quote(through(proxy))
        upstream = await upstream_of(endpoint.url.replace(*to))
        connecting = asyncio.create_task(upstream.connect())
        await eventually(lambda: "left unanswered" in "".join(endpoint.told), "it has the request")
        proxy.cut()
        with pytest.raises(UpstreamError) as raised:
            await connecting
    assert raised.value.code == "upstream_unreachable"


def through(proxy: Proxy) -> str:
    """The endpoint's address as the certificate has it, by way of the proxy."""
    return proxy.url.replace("redis://127.0.0.1", "https://localhost")


async def test_a_certificate_that_is_not_trusted_is_named(
    endpoint: SageMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagemaker, "OPEN_S", 1.0)
    async with Proxy(endpoint.emulator.uri) as proxy:  # the TLS library holds on for long
        error = await refused(await upstream_of(url(through(proxy))))
    assert "certificate is not trusted" in error.message


async def test_a_certificate_file_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        await upstream_of(url("https://x", str(tmp_path / "none.pem")))


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("424", "upstream_refused"),
        ("429", "upstream_throttled"),
        ("500", "upstream_unavailable"),
        ("503", "upstream_unavailable"),
    ],
)
async def test_a_refusal_that_may_pass_is_retryable(
    endpoint: SageMaker, upstream: Upstream, fault: str, code: str
) -> None:
    endpoint.emulator.inject(f"{fault}@1")
    error = await refused(upstream)
    assert (error.code, error.retryable) == (code, True)
    assert fault in error.message
    await (await upstream.connect()).close()


async def test_a_container_that_refuses_is_told_with_its_remedies(
    backend: WebSocketBackend, upstream: Upstream
) -> None:
    backend.refuse = True
    error = await refused(upstream)
    assert (error.code, error.retryable) == ("upstream_refused", True)
    assert "bidirectional-streaming=true" in error.message


async def test_an_endpoint_that_is_not_there_is_for_a_person(backend: WebSocketBackend) -> None:
    async with emulated(backend.url, endpoints=frozenset({"other"})) as made:
        error = await refused(await upstream_of(made.url))
    assert (error.code, error.retryable) == ("upstream_rejected", False)
    assert "is there an endpoint speech in us-east-1" in error.message


async def test_a_variant_a_path_and_a_query_arrive(backend: WebSocketBackend) -> None:
    async with emulated(backend.url, variant="blue") as made:
        more = "&variant=blue&path=invocations-bidirectional-stream&query=a%3Db"
        link = await (await upstream_of(made.url + more)).connect()
        await link.close()
        error = await refused(await upstream_of(made.url + "&variant=green"))
    assert "variant green" in error.message
    assert "open: /invocations-bidirectional-stream?a=b" in made.told[0]


async def test_a_broken_file_of_aws_is_an_error_and_no_hang(
    endpoint: SageMaker, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("neither a section nor a value\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    error = await refused(upstream)
    assert str(tmp_path) in error.message


# -- credentials ----------------------------------------------------------------------------------


async def test_keys_that_are_not_valid_are_for_a_person(
    endpoint: SageMaker, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of somebody else")
    error = await refused(upstream)
    assert (error.code, error.retryable) == ("upstream_forbidden", False)


async def test_a_session_token_is_signed_too(backend: WebSocketBackend) -> None:
    async with emulated(backend.url, key=KeyPair("A", "S", "a token")) as made:
        await (await (await upstream_of(made.url)).connect()).close()


async def test_without_keys_it_says_so_and_does_not_hang(
    endpoint: SageMaker, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = await refused(upstream)
    assert (error.code, error.retryable) == ("upstream_no_credentials", False)
    error = await refused(await upstream_of(endpoint.url + "&profile=nobody"))
    assert "nobody" in error.message


async def test_keys_are_the_same_for_the_life_of_a_stream(
    backend: WebSocketBackend,
    endpoint: SageMaker,
    link: Link,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SDK asks at each event; keys of another kind would break the chain of signatures."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "new")
    await link.send(REQUEST)
    peer = await peer_of(backend)
    await eventually(lambda: peer.received == [REQUEST], "it is still taken")


# -- one writer, one reader -----------------------------------------------------------------------


async def test_many_who_send_at_once_do_not_break_the_signatures(
    backend: WebSocketBackend, link: Link
) -> None:
    frames = [f'{{"type":"ping","n":{n}}}' for n in range(300)]
    await asyncio.gather(*map(link.send, frames))
    peer = await peer_of(backend)
    await eventually(lambda: peer.received == frames, "all of them, in order")


async def test_who_stops_waiting_loses_nothing(backend: WebSocketBackend, link: Link) -> None:
    """A receive that is cancelled inside the SDK is the end of its stream."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(link.receive(), 0.05)
    peer = await peer_of(backend)
    await peer.send(b"\1\2")
    assert await link.receive() == (b"\1\2", False)
    sending = asyncio.create_task(link.send(REQUEST))
    await asyncio.sleep(0)
    sending.cancel()
    await link.send(REQUEST)
    await eventually(lambda: peer.received[-1:] == [REQUEST], "the chain is whole")


async def test_a_far_end_that_takes_nothing_is_left(
    endpoint: SageMaker, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a send nor the close waits for ever, and the connection is freed."""
    monkeypatch.setattr(sagemaker, "SEND_S", 0.5)
    endpoint.emulator.inject("no-window")
    link = await upstream.connect()
    with pytest.raises(UpstreamError, match="takes nothing"):
        for _ in range(100):
            await link.send("x" * 20_000)
    await ends(link)
    await link.close()
    await eventually(lambda: not endpoint.emulator.calls, "the emulator is rid of it")


async def test_who_waits_to_send_hears_of_the_end_at_once(
    endpoint: SageMaker, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagemaker, "SEND_S", 1000)
    endpoint.emulator.inject("no-window")
    link = await upstream.connect()
    [call] = endpoint.emulator.calls

    async def fill() -> None:
        while True:
            await link.send("x" * 20_000)

    filling = asyncio.create_task(fill())
    await eventually(lambda: call.window <= NO_ROOM, "there is no window left")
    endpoint.emulator.inject("abort")
    with pytest.raises(UpstreamError):
        await filling
    await link.close()


async def test_a_close_that_the_container_answers_with_an_error_is_a_close(
    backend: WebSocketBackend, endpoint: SageMaker, upstream: Upstream
) -> None:
    link = await upstream.connect()
    waiting = asyncio.create_task(ends(link))
    peer = await peer_of(backend)
    closing = asyncio.create_task(link.close())
    await peer.closed.wait()
    await peer.finish()
    await closing
    assert (await waiting).code == "upstream_lost"
    assert not endpoint.emulator.calls


# -- the socket -----------------------------------------------------------------------------------


async def test_the_socket_sends_at_once_and_looks_after_itself(
    endpoint: SageMaker, link: Link
) -> None:
    port = int(endpoint.emulator.uri.rpartition(":")[2])
    options = await asyncio.to_thread(socket_options, port)
    assert options == {"nodelay": 1, "keepalive": 1, "idle": 60, "interval": 10, "probes": 3}


def socket_options(port: int) -> dict[str, int]:
    """Of the one socket of this process that leads to a port."""
    tcp = socket.IPPROTO_TCP
    for name in os.listdir("/dev/fd"):
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as sock:
                if sock.family in (socket.AF_INET, socket.AF_INET6):
                    if sock.getpeername()[1] == port:
                        return {
                            "nodelay": sock.getsockopt(tcp, socket.TCP_NODELAY),
                            "keepalive": sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                            "idle": sock.getsockopt(tcp, socket.TCP_KEEPIDLE),
                            "interval": sock.getsockopt(tcp, socket.TCP_KEEPINTVL),
                            "probes": sock.getsockopt(tcp, socket.TCP_KEEPCNT),
                        }
        except OSError:
            continue
    raise AssertionError("there is no such socket")


async def test_many_links_share_a_thread(endpoint: SageMaker, upstream: Upstream) -> None:
    first = await upstream.connect()
    before = len(os.listdir("/proc/self/task"))
    links = await asyncio.gather(*(upstream.connect() for _ in range(10)))
    assert len(os.listdir("/proc/self/task")) <= before + 10  # of the loop's own pool, at most
    ports = {id(link) for link in links}
    assert len(ports) == 10
    for link in (first, *links):
        await link.close()


async def test_what_is_said_is_in_no_log(
    backend: WebSocketBackend, upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    link = await upstream.connect()
    await link.send(REQUEST)
    peer = await peer_of(backend)
    await peer.send(REQUEST)
    await link.receive()
    await link.close()
    theirs = ("websockets", "hpack")  # of the emulator, in this process by chance
    ours = [record for record in caplog.records if not record.name.startswith(theirs)]
    assert any(record.name.startswith("botocore") for record in ours)
    assert not any("nobody may read" in record.getMessage() for record in ours)
