"""What a container must keep to, over a plain WebSocket and as SageMaker carries it.

Everything goes through the links that the gateway uses, so the far side of both is the same.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from firstword.emulator import container as emulated_container
from firstword.errors import UpstreamError
from firstword.session_protocol import (
    MAX_FRAME_BYTES,
    Cancel,
    Cancelled,
    Close,
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
from services.inference.service import GOODBYE_S
from services.inference.settings import InferenceSettings
from services.tts_gateway.__main__ import upstream_for
from services.tts_gateway.settings import GatewaySettings
from services.tts_gateway.upstream import Link, Upstream
from tests.doubles.broken_container import BrokenContainer, Manners
from tests.doubles.gateway_rig import Container, HeldTone, spoken
from tests.doubles.inference_client import PATH
from tests.doubles.sagemaker import MISSING, emulated
from tests.support import eventually

TEXT = "The rain had stopped, and nobody noticed it at first."
WAYS = [
    "straight",
    pytest.param("sagemaker", marks=pytest.mark.skipif(bool(MISSING), reason=MISSING)),
]


@dataclass
class Rig:
    """A container whose engine holds back all but the first piece until `tone.go` is set."""

    container: Container
    tone: HeldTone
    upstream: Upstream


async def upstream_of(url: str) -> Upstream:
    return await asyncio.to_thread(upstream_for, GatewaySettings(upstream=url))


@pytest.fixture(params=WAYS)
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    tone = HeldTone()
    async with Container(tone) as container:
        if request.param == "straight":
            upstream = await upstream_of(container.url)
            yield Rig(container, tone, upstream)
            await upstream.close()
            return
        # Pings as quick as the loop allows, so that one that stays away is noticed within a test.
        async with emulated(container.url, ping_s=0.05, ping_misses=20) as sagemaker:
            upstream = await upstream_of(sagemaker.url)
            yield Rig(container, tone, upstream)
            await upstream.close()


@pytest.fixture
async def link(rig: Rig) -> AsyncIterator[Link]:
    made = await rig.upstream.connect()
    yield made
    await made.close()


def ask(id: str, text: str = TEXT) -> str:
    return encode_client(Synthesize(id, text))


async def message(link: Link) -> ServerMessage | bytes:
    async with asyncio.timeout(30):
        return decode_server(*await link.receive())


async def speech(link: Link, id: str) -> bytes:
    """All audio of a synthesis, up to its end."""
    start = await message(link)
    assert isinstance(start, SynthesisStart) and start.id == id
    pcm = b""
    while isinstance(came := await message(link), bytes):
        pcm += came
    assert isinstance(came, SynthesisComplete) and came.samples == len(pcm) // 2
    return pcm


# -- frames ---------------------------------------------------------------------------------------


async def test_text_and_binary_frames_are_spoken(rig: Rig, link: Link) -> None:
    rig.tone.go.set()
    await link.send(ask("1"))
    assert await speech(link, "1") == spoken(TEXT)
    await link.send(ask("2").encode())
    assert await speech(link, "2") == spoken(TEXT)


async def test_control_comes_as_text_and_audio_as_binary(rig: Rig, link: Link) -> None:
    rig.tone.go.set()
    await link.send(ask("1"))
    came = [await link.receive()]
    while not isinstance(decode_server(*came[-1]), SynthesisComplete):
        came.append(await link.receive())
    kinds = [text for _, text in came]
    assert kinds == [True, *[False] * (len(kinds) - 2), True]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ('{"type": "synthesize"', "bad_json"),
        (b"\xff\xfe\xfd", "bad_utf8"),
        (b'{"text": "\xc3"}', "bad_utf8"),
        ('{"type": "sing"}', "unknown_type"),
        ("[]", "bad_message"),
        ('{"text": "' + "x" * (MAX_FRAME_BYTES - 12) + '"}', "text_too_long"),
        ('{"text": "' + "x" * (MAX_FRAME_BYTES - 11) + '"}', "frame_too_large"),
        (b'{"text": "' + b"x" * (3 << 20) + b'"}', "frame_too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
async def test_a_bad_frame_is_answered_and_the_session_speaks_on(
    rig: Rig, link: Link, frame: str | bytes, code: str
) -> None:
    rig.tone.go.set()
    await link.send(frame)
    error = await message(link)
    assert isinstance(error, Error) and (error.code, error.retryable) == (code, False)
    await link.send(ask("1"))
    assert await speech(link, "1") == spoken(TEXT)


# -- while it speaks ------------------------------------------------------------------------------


async def test_pings_and_cancels_are_read_while_it_speaks(rig: Rig, link: Link) -> None:
    await link.send(ask("1"))
    assert isinstance(await message(link), SynthesisStart)
    assert isinstance(await message(link), bytes)  # and the rest is held back
    await link.send(encode_client(Ping()))
    while isinstance(came := await message(link), bytes):
        pass
    assert came == Pong()
    await link.send(encode_client(Cancel("1")).encode())
    came = await message(link)
    assert isinstance(came, Cancelled) and came.id == "1"


async def test_a_connection_is_taken_and_served_while_another_speaks(rig: Rig, link: Link) -> None:
    await link.send(ask("1"))
    assert isinstance(await message(link), SynthesisStart)
    began = time.monotonic()
    second = await rig.upstream.connect()
    await second.send(encode_client(Ping()))
    assert await message(second) == Pong()
    sys.stdout.write(f"connected and answered in {(time.monotonic() - began) * 1000:.0f} ms\n")
    assert not rig.tone.go.is_set(), "the first one speaks still"
    await second.close()


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
class TestPingsOfSageMaker:
    @pytest.fixture
    def pings(self, monkeypatch: pytest.MonkeyPatch) -> list[None]:
        """One for each that was sent."""
        sent: list[None] = []
        ping = emulated_container.Container.ping

        def counted(container: Any) -> None:
            sent.append(None)
            ping(container)

        monkeypatch.setattr(emulated_container.Container, "ping", counted)
        return sent

    async def test_are_answered_while_it_speaks(self, pings: list[None]) -> None:
        tone = HeldTone()
        async with (
            Container(tone) as container,
            emulated(container.url, ping_s=0.1, ping_misses=5) as sagemaker,
        ):
            upstream = await upstream_of(sagemaker.url)
            link = await upstream.connect()
            await link.send(ask("1"))
            assert isinstance(await message(link), SynthesisStart)
            before = len(pings)
            await eventually(lambda: len(pings) > before + 10, "twice as many as may be missed")
            tone.go.set()
            while isinstance(came := await message(link), bytes):
                pass
            assert isinstance(came, SynthesisComplete)
            await link.close()
            await upstream.close()

    async def test_end_the_stream_of_a_container_that_reads_nothing_meanwhile(self) -> None:
        async with (
            BrokenContainer(Manners(work_s=30, inline=True)) as container,
            emulated(container.url, ping_s=0.05, ping_misses=5) as sagemaker,
        ):
            upstream = await upstream_of(sagemaker.url)
            link = await upstream.connect()
            await link.send(ask("1"))
            with pytest.raises(UpstreamError):
                while True:
                    await message(link)
            await link.close()
            await upstream.close()


# -- the end --------------------------------------------------------------------------------------


async def test_close_ends_the_session_after_what_is_queued(rig: Rig, link: Link) -> None:
    rig.tone.go.set()
    await link.send(ask("1"))
    await link.send(encode_client(Close()))
    assert await speech(link, "1") == spoken(TEXT)
    with pytest.raises(UpstreamError):
        await message(link)
    await eventually(lambda: not rig.container.open_connections, "the connection is gone")


async def test_a_frame_beyond_all_measure_ends_its_connection_and_no_other(rig: Rig) -> None:
    """More than 4 MiB. The container stops reading at once, so the sender may see a broken wire."""
    rig.tone.go.set()
    first, second = await rig.upstream.connect(), await rig.upstream.connect()
    with pytest.raises(UpstreamError) as raised:
        await first.send("x" * (5 << 20))
        while True:
            await message(first)
    assert raised.value.retryable
    await second.send(ask("1"))
    assert await speech(second, "1") == spoken(TEXT)
    for link in (first, second):
        await link.close()


# -- the process ----------------------------------------------------------------------------------


def test_it_listens_on_8080_and_ends_within_the_30_seconds_that_it_has() -> None:
    settings = InferenceSettings()
    assert settings.port == 8080
    assert settings.drain_s + GOODBYE_S < 30 - 2, "a margin for everything else"


@pytest.mark.parametrize("hangs", [False, True], ids=["obeys", "hangs"])
async def test_sigterm_during_a_synthesis_that_takes_too_long_says_so_and_ends(hangs: bool) -> None:
    """It gets `drain_s`, is stopped then, and its client told to go elsewhere.

    An engine that hangs obeys no stop: the process ends all the same, with another status.
    """
    environ = {
        **os.environ,
        "FIRSTWORD_INFERENCE_HOST": "127.0.0.2" if sys.platform == "linux" else "127.0.0.1",
        "FIRSTWORD_INFERENCE_PORT": "0",
        "FIRSTWORD_INFERENCE_DRAIN_S": "0.3",
        "FIRSTWORD_TONE_LATENCY_MS": "60000",
        "FIRSTWORD_TONE_HANG": str(int(hangs)),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.doubles.tone_inference", "serve"),
        env=environ,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        address = ""
        while not address:
            line = await asyncio.wait_for(process.stdout.readline(), 30)
            address = line.decode().partition('"http": "')[2].partition('"')[0]
        assert address.startswith(environ["FIRSTWORD_INFERENCE_HOST"] + ":")
        upstream = await upstream_of(f"ws://{address}{PATH}")
        link = await upstream.connect()
        await link.send(ask("1"))
        await link.send(encode_client(Ping()))
        while await message(link) != Pong():
            pass
        process.send_signal(signal.SIGTERM)
        if not hangs:
            while isinstance(came := await message(link), bytes | SynthesisStart):
                pass
            assert isinstance(came, Error)
            assert (came.id, came.code, came.retryable) == ("1", "draining", True)
        with pytest.raises(UpstreamError) as raised:
            while True:
                await message(link)
        assert raised.value.retryable
        await link.close()
        await upstream.close()
        assert await asyncio.wait_for(process.wait(), 20) == int(hangs)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
