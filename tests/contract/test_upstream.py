"""What every upstream promises the gateway, whatever carries its frames.

An adapter joins by one line in `ADAPTERS`: how to make a far end under the test's hand and an
upstream that connects to it. Most carry frames as they are (`CARRIERS`); one that translates them
into requests of another protocol keeps all other promises, and says in `Rig.carries` that its far
end sees requests.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest
from aiohttp import web

from firstword.errors import UpstreamError
from firstword.runtime import HttpServer
from firstword.session_protocol import MAX_SERVER_FRAME_BYTES, Close, Frame, encode_client
from services.tts_gateway.__main__ import upstream_for
from services.tts_gateway.openai import OpenAIUpstream
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Link, Upstream
from services.tts_gateway.websocket import WebSocketUpstream
from tests.doubles.container import BackendDouble, BackendPeer, WebSocketBackend
from tests.doubles.openai_speech import OpenAISpeech
from tests.doubles.sagemaker import MISSING as SDK_MISSING
from tests.doubles.sagemaker import emulated
from tests.doubles.sagemaker import url as sagemaker_url
from tests.support import eventually

REQUEST = '{"type":"synthesize","id":"1.1","text":"Guten Tag, ein Gruß 👋"}'


@dataclass(frozen=True)
class Rig:
    """An upstream and the far end that it connects to."""

    upstream: Upstream
    backend: BackendDouble
    says_text: bool
    """Whether its transport tells text from binary."""
    carries: bool = True
    """Whether frames go as they are. Else the far end sees a request for each synthesis, and its
    first one is the peer."""


@asynccontextmanager
async def websocket() -> AsyncIterator[Rig]:
    async with WebSocketBackend() as backend:
        upstream = WebSocketUpstream(backend.url)
        yield Rig(upstream, backend, says_text=True)
        await upstream.close()


@asynccontextmanager
async def openai() -> AsyncIterator[Rig]:
    async with OpenAISpeech() as backend:
        upstream = OpenAIUpstream(backend.url)
        yield Rig(upstream, backend, says_text=True, carries=False)
        await upstream.close()


@asynccontextmanager
async def sagemaker() -> AsyncIterator[Rig]:
    async with WebSocketBackend() as backend, emulated(backend.url) as made:
        upstream = await asyncio.to_thread(upstream_for, GatewaySettings(upstream=made.url))
        yield Rig(upstream, backend, says_text=True)
        await upstream.close()


def sagemaker_nowhere() -> Upstream:
    return upstream_for(GatewaySettings(upstream=sagemaker_url("https://127.0.0.1:1")))


def openai_nowhere() -> Upstream:
    return OpenAIUpstream("openai+http://127.0.0.1:1/v1")


def websocket_nowhere() -> Upstream:
    return WebSocketUpstream("ws://127.0.0.1:1/invocations-bidirectional-stream")


ADAPTERS: dict[str, Callable[[], AbstractAsyncContextManager[Rig]]] = {
    "websocket": websocket,
    "openai": openai,
    "sagemaker": sagemaker,
}
CARRIERS = [name for name in ADAPTERS if name != "openai"]
NOWHERE: dict[str, Callable[[], Upstream]] = {
    "websocket": websocket_nowhere,
    "openai": openai_nowhere,
    "sagemaker": sagemaker_nowhere,
}


@pytest.fixture(autouse=True)
def adapter_is_there(request: pytest.FixtureRequest) -> None:
    """One of them needs what is not there on each Python that we support."""
    params = getattr(request.node, "callspec", None)
    if SDK_MISSING and params is not None and "sagemaker" in params.params.values():
        pytest.skip(SDK_MISSING)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks for more than that there are some."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")


@pytest.fixture(params=ADAPTERS)
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    async with ADAPTERS[request.param]() as made:
        assert made.carries == (request.param in CARRIERS)
        yield made


def on_carriers(test: Callable[..., object]) -> Callable[..., object]:
    """A promise about frames as they are on the wire: for adapters that do not translate them."""
    marked: Callable[..., object] = pytest.mark.parametrize("rig", CARRIERS, indirect=True)(test)
    return marked


@pytest.fixture
async def link(rig: Rig) -> AsyncIterator[Link]:
    made = await rig.upstream.connect()
    yield made
    await made.close()


async def peer_of(rig: Rig, number: int = 0) -> BackendPeer:
    await eventually(lambda: len(rig.backend.peers) > number, "the far end has the connection")
    return rig.backend.peers[number]


async def far_end(rig: Rig, link: Link, number: int = 0) -> BackendPeer:
    """The far end of a link, in the middle of a synthesis where there is none before."""
    if not rig.carries:
        await link.send(REQUEST)
    return await peer_of(rig, number)


async def next_audio(link: Link) -> Frame:
    """The next frame that is not control."""
    while True:
        frame, _ = await link.receive()
        if isinstance(frame, bytes) and not frame.startswith(b"{"):
            return frame


async def ends(link: Link) -> UpstreamError:
    """The error with which a link ends."""
    with pytest.raises(UpstreamError) as raised:
        while True:
            await link.receive()
    return raised.value


# -- frames ---------------------------------------------------------------------------------------


@on_carriers
async def test_frames_go_out_whole_and_in_order(rig: Rig, link: Link) -> None:
    frames: list[str | bytes] = [REQUEST, REQUEST.encode()]
    frames += [json.dumps({"type": "ping", "pad": "x" * n}) for n in (0, 1, 200_000)]
    for frame in frames:
        await link.send(frame)
    peer = await peer_of(rig)
    await eventually(lambda: peer.received == frames, "all frames arrived")


@on_carriers
async def test_frames_come_in_whole_in_order_and_of_their_kind(rig: Rig, link: Link) -> None:
    peer = await peer_of(rig)
    frames: list[str | bytes] = [
        '{"type":"pong"}',
        b"\1\2\3\4",
        b"{}",
        '{"text":"Gruß 👋"}',
        bytes(500_000),
    ]
    for frame in frames:
        await peer.send(frame)
    for frame in frames:
        got, is_text = await link.receive()
        if rig.says_text:
            assert (got, is_text) == (frame, isinstance(frame, str))
        else:
            assert (got if isinstance(got, bytes) else got.encode()) == (
                frame if isinstance(frame, bytes) else frame.encode()
            )
            assert is_text is None


async def test_links_are_apart(rig: Rig) -> None:
    links = [await rig.upstream.connect() for _ in range(5)]
    for number, link in enumerate(links):
        await link.send(REQUEST.replace("Guten Tag", f"Nummer {number}."))
    await eventually(
        lambda: sum(len(peer.received) for peer in rig.backend.peers) == 5, "all frames arrived"
    )
    for peer in rig.backend.peers:
        said = re.search(r"Nummer (\d)\.", str(peer.received[0]))
        assert said is not None
        await peer.send(bytes([int(said[1]), 1] * 8))
    for number, link in enumerate(links):
        assert await next_audio(link) == bytes([number, 1] * 8)
    for link in links:
        await link.close()


async def test_a_link_sends_while_it_waits_for_frames(rig: Rig, link: Link) -> None:
    waiting = asyncio.create_task(next_audio(link))
    await link.send(REQUEST)
    peer = await peer_of(rig)
    await eventually(lambda: "ein Gruß 👋" in str(peer.received), "the frame arrived")
    await peer.send(b"\0\0\1\1")
    assert await waiting == b"\0\0\1\1"


# -- the end --------------------------------------------------------------------------------------


@on_carriers
async def test_an_end_in_order_is_told_to_who_waits(rig: Rig, link: Link) -> None:
    peer = await peer_of(rig)
    await peer.send(b"\5\6")
    await peer.finish()
    assert (await link.receive())[0] == b"\5\6"  # what came before is not lost
    error = await ends(link)
    assert error.retryable
    assert error.code == "upstream_lost"


async def test_a_broken_wire_is_told_to_who_waits(rig: Rig, link: Link) -> None:
    (await far_end(rig, link)).abort()
    error = await ends(link)
    assert error.retryable


async def test_a_link_that_has_ended_stays_so(rig: Rig, link: Link) -> None:
    (await far_end(rig, link)).abort()
    await ends(link)
    await ends(link)
    with pytest.raises(UpstreamError) as raised:
        await link.send(REQUEST)
    assert raised.value.retryable


async def test_closing_says_goodbye_and_frees_both_ends(rig: Rig) -> None:
    link = await rig.upstream.connect()
    waiting = asyncio.create_task(ends(link))
    peer = await far_end(rig, link)
    await link.close()
    await peer.closed.wait()
    if rig.carries:  # a request has no goodbye: its connection ends
        assert peer.received[-1:] == [encode_client(Close())]
    await waiting


async def test_closing_a_link_that_is_gone_or_closed_is_nothing(rig: Rig) -> None:
    link = await rig.upstream.connect()
    (await far_end(rig, link)).abort()
    await ends(link)
    await link.close()
    await link.close()
    unused = await rig.upstream.connect()
    await unused.close()
    await ends(unused)


@on_carriers
async def test_a_frame_too_large_to_be_read_ends_the_link(rig: Rig, link: Link) -> None:
    peer = await peer_of(rig)
    await peer.send(bytes(MAX_SERVER_FRAME_BYTES + 1))
    assert (await ends(link)).retryable


async def test_one_link_that_ends_leaves_the_others(rig: Rig) -> None:
    first, second = await rig.upstream.connect(), await rig.upstream.connect()
    (await far_end(rig, first)).abort()
    await ends(first)
    await second.send(REQUEST)
    peer = await peer_of(rig, 1)
    await eventually(lambda: "ein Gruß 👋" in str(peer.received), "the frame arrived")
    await peer.send(b"\1\2\3\4")
    assert await next_audio(second) == b"\1\2\3\4"
    await second.close()


# -- no link --------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", NOWHERE)
@pytest.mark.usefixtures("keys")
async def test_a_backend_that_is_not_there_is_told_with_what_to_do(adapter: str) -> None:
    upstream = NOWHERE[adapter]()
    with pytest.raises(UpstreamError) as raised:
        await upstream.connect()
    assert raised.value.code == "upstream_unreachable"
    assert raised.value.retryable
    assert "?" in raised.value.message
    await upstream.close()


async def test_a_look_finds_who_is_there_and_gives_no_work(rig: Rig) -> None:
    await rig.upstream.look()
    assert not any("synthesize" in str(f) for peer in rig.backend.peers for f in peer.received)
    assert not any(getattr(peer, "body", None) for peer in rig.backend.peers)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("adapter", NOWHERE)
async def test_a_look_at_nobody_says_what_to_do(adapter: str) -> None:
    upstream = await asyncio.to_thread(NOWHERE[adapter])
    with pytest.raises(UpstreamError) as raised:
        await upstream.look()
    assert raised.value.retryable
    await upstream.close()


async def test_a_look_at_a_container_that_is_not_well_tells_its_reason() -> None:
    async def ping(_request: web.Request) -> web.Response:
        return web.json_response({"reason": "the engine is loading"}, status=503)

    app = web.Application()
    app.router.add_get("/ping", ping)
    http = HttpServer(app, "127.0.0.1", 0)
    await http.start()
    upstream = WebSocketUpstream(f"ws://{http.address}/invocations-bidirectional-stream")
    with pytest.raises(UpstreamError, match=r"503.*the engine is loading"):
        await upstream.look()
    await upstream.close()
    await http.stop()


@pytest.mark.parametrize("adapter", NOWHERE)
async def test_an_upstream_that_was_never_used_closes(adapter: str) -> None:
    await NOWHERE[adapter]().close()


async def test_a_refused_websocket_is_told_apart_from_none() -> None:
    async with WebSocketBackend() as backend:
        backend.refuse = True
        upstream = WebSocketUpstream(backend.url)
        with pytest.raises(UpstreamError, match="503") as raised:
            await upstream.connect()
        assert raised.value.retryable
        await upstream.close()


async def test_a_websocket_whose_peer_reads_nothing_is_freed_all_the_same() -> None:
    """The wire is full: neither `close` nor the closing handshake gets through."""
    accepted: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(handshake(await reader.readuntil(b"\r\n\r\n")))
        await accepted.put((reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    upstream = WebSocketUpstream(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/x")
    link = await upstream.connect()
    reader, writer = await accepted.get()
    filling = asyncio.create_task(fill(link))
    transport = reader._transport  # type: ignore[attr-defined]
    await eventually(lambda: not transport.is_reading(), "the peer reads no more")
    await link.close()
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(10):  # for ever, if the socket were still open
            while await reader.read(1 << 20):
                pass
    with pytest.raises(UpstreamError):
        await filling
    writer.close()
    server.close()
    await upstream.close()


async def fill(link: Link) -> None:
    while True:
        await link.send("x" * 500_000)


def handshake(request: bytes) -> bytes:
    """The answer that accepts a WebSocket."""
    key = re.search(rb"(?i)sec-websocket-key: (\S+)", request)
    assert key is not None
    digest = hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    return head + b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n"
