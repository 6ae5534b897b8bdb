"""The OpenAI-compatible upstream on real sockets: what the contract of upstreams leaves open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from firstword.errors import UpstreamError
from firstword.session_protocol import (
    Cancel,
    Cancelled,
    Error,
    Ping,
    Pong,
    ServerMessage,
    SynthesisComplete,
    SynthesisStart,
    Synthesize,
    decode_server,
    encode_client,
)
from services.tts_gateway.openai import OpenAIUpstream
from services.tts_gateway.upstream import Link
from tests.doubles.openai_speech import OpenAISpeech, SpeechPeer
from tests.support import eventually

PCM = bytes(range(200)) * 50


@asynccontextmanager
async def linked(server: OpenAISpeech, key: str = "") -> AsyncIterator[Link]:
    upstream = OpenAIUpstream(server.url, key)
    link = await upstream.connect()
    yield link
    await link.close()
    await upstream.close()


async def ask(link: Link, id: str, text: str = "Hello.") -> None:
    await link.send(encode_client(Synthesize(id, text)))


async def message(link: Link) -> ServerMessage | bytes:
    return decode_server(*await link.receive())


async def speak(peer: SpeechPeer) -> None:
    await peer.send(PCM)
    await peer.finish()


async def test_the_key_goes_to_the_server_with_every_request() -> None:
    async with OpenAISpeech(speak) as server, linked(server, " sk-1\n") as link:
        await ask(link, "1")
        assert await message(link) == SynthesisStart("1")
        assert server.logins == ["Bearer sk-1"] * 2


async def test_no_key_no_header() -> None:
    async with OpenAISpeech(speak) as server, linked(server):
        assert server.logins == [""]


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (401, "not_permitted", False),
        (403, "not_permitted", False),
        (502, "upstream_unreachable", True),
        (503, "upstream_unreachable", True),
    ],
)
async def test_a_server_that_lets_nobody_in_is_told_at_once(
    status: int, code: str, retryable: bool
) -> None:
    async with OpenAISpeech(speak) as server:
        server.models_status = status
        upstream = OpenAIUpstream(server.url)
        with pytest.raises(UpstreamError) as raised:
            await upstream.connect()
        await upstream.close()
    assert (raised.value.code, raised.value.retryable) == (code, retryable)


async def test_a_server_without_a_list_of_models_is_good_enough() -> None:
    async with OpenAISpeech(speak) as server:
        server.models_status = 404
        async with linked(server) as link:
            await ask(link, "1")
            assert await message(link) == SynthesisStart("1")


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    async def elsewhere(peer: SpeechPeer) -> None:
        peer.status, peer.headers = 307, {"Location": "http://127.0.0.1:1/"}
        await peer.finish()

    async with OpenAISpeech(elsewhere) as server, linked(server, "sk-1") as link:
        await ask(link, "1")
        error = await message(link)
    assert isinstance(error, Error) and error.code == "bad_answer"
    assert "307" in error.message


async def test_a_cancel_closes_the_answer_and_the_link_speaks_on() -> None:
    async with OpenAISpeech() as server, linked(server) as link:
        await ask(link, "1")
        await eventually(lambda: server.requests, "the request arrived")
        await server.requests[0].send(PCM)
        assert await message(link) == SynthesisStart("1")
        assert await message(link) == PCM
        await link.send(encode_client(Ping()))
        assert await message(link) == Pong()
        await link.send(encode_client(Cancel("1")))
        assert await message(link) == Cancelled("1", len(PCM) // 2)
        await server.requests[0].closed.wait()
        await ask(link, "2")
        await eventually(lambda: len(server.requests) == 2, "the next request arrived")
        await server.requests[1].send(PCM[:8])
        await server.requests[1].finish()
        said = [await message(link) for _ in range(3)]
        assert said[1:] == [PCM[:8], SynthesisComplete("2", 4, 4 / 24_000)]


@pytest.mark.parametrize("early", [True, False])
async def test_an_answer_that_is_of_no_use_is_left_and_the_next_one_read(early: bool) -> None:
    """Whether the type tells, before anything of the body comes, or the body."""

    async def wrong_once(peer: SpeechPeer) -> None:
        if len(server.requests) > 1:
            await speak(peer)
            return
        stereo = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0\1\0\0\0\1\0\0\0\2\0\x10\0"
        peer.headers = {"Content-Type": "audio/mpeg" if early else "audio/wav"}
        await peer.send(b"" if early else stereo)  # and no end

    async with OpenAISpeech(wrong_once) as server, linked(server) as link:
        await ask(link, "1")
        await ask(link, "2")
        error = await message(link)
        assert isinstance(error, Error) and (error.id, error.code) == ("1", "unsupported_audio")
        assert await message(link) == SynthesisStart("2")
        await server.requests[0].closed.wait()


async def test_a_body_that_breaks_off_is_no_end() -> None:
    async with OpenAISpeech() as server, linked(server) as link:
        await ask(link, "1")
        await eventually(lambda: server.requests, "the request arrived")
        await server.requests[0].send(PCM)
        assert await message(link) == SynthesisStart("1")
        assert await message(link) == PCM
        server.requests[0].abort()
        with pytest.raises(UpstreamError) as raised:
            await link.receive()
    assert (raised.value.code, raised.value.retryable) == ("upstream_lost", True)


async def test_a_server_that_is_gone_by_then_is_unreachable() -> None:
    async with OpenAISpeech() as server:
        upstream = OpenAIUpstream(server.url)
        link = await upstream.connect()
    await ask(link, "1")
    with pytest.raises(UpstreamError) as raised:
        await link.receive()
    assert raised.value.code == "upstream_unreachable"
    await link.close()
    await upstream.close()


async def test_a_closed_link_leaves_no_request_behind() -> None:
    async with OpenAISpeech() as server:
        async with linked(server) as link:
            await ask(link, "1")
            await eventually(lambda: server.requests, "the request arrived")
        await server.requests[0].closed.wait()
