"""The agent in AgentCore's runtime: its own server in a process, a Strands agent with a model of
our own, and our reader. No AWS, no network."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

pytest.importorskip("bedrock_agentcore", reason="the extra `agentcore` is not installed")

from bedrock_agentcore import RequestContext
from starlette.responses import StreamingResponse

from firstword import messages as m
from firstword import server_errors
from firstword.sse import Invocation, SseDecoder, read_invocation
from services.agent.agentcore import RuntimeAgent
from services.agent.settings import AgentSettings
from tests.command import firstword
from tests.doubles.path import PathDouble, heard
from tests.doubles.proxy import Proxy
from tests.doubles.strands_model import SECRET
from tests.support import eventually

ROOT = Path(__file__).parents[2]
MODULE = "services.agent.agentcore"
SESSION_HEADER = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
STRANDS = {
    "FIRSTWORD_AGENT_SOURCE": "strands",
    "FIRSTWORD_AGENT_STRANDS": "tests.doubles.strands_model:make",
}


@asynccontextmanager
async def runtime(
    redis_url: str, tmp_path: Path, **environ: str
) -> AsyncIterator[aiohttp.ClientSession]:
    """The runtime's server, and a caller to ask it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = {
        "FIRSTWORD_REDIS_URL": redis_url,
        "FIRSTWORD_AGENT_AGENTCORE_PORT": str(port),
        "PYTHONPATH": str(ROOT),
        "OTEL_SDK_DISABLED": "true",
        **STRANDS,
        **environ,
    }
    log = tmp_path / "runtime.log"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", MODULE),
            env={**os.environ, **given},
            stdout=out,
            stderr=out,
        )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as caller:

            async def healthy() -> bool:
                if process.returncode is not None:
                    return True
                with contextlib.suppress(aiohttp.ClientError):
                    async with caller.get("/ping") as response:
                        return response.status == 200
                return False

            await eventually(healthy, "the runtime answers", timeout=60)
            assert process.returncode is None, log.read_text()
            yield caller
        process.terminate()
        async with asyncio.timeout(20):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    said = log.read_text()
    assert SECRET not in said
    assert "Traceback" not in said
    assert "I heard" not in said


async def invoke(
    caller: aiohttp.ClientSession, *, session: str | None = None, **body: Any
) -> Invocation:
    headers = {} if session is None else {SESSION_HEADER: session}
    async with caller.post("/invocations", json=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        return await read_invocation(response.content.iter_any())


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    async with PathDouble(redis_url) as double:
        yield double


@pytest.mark.timeout(180)
async def test_invocations_stream_and_sessions_do_not_mix(
    redis_url: str, path: PathDouble, tmp_path: Path
) -> None:
    async with runtime(redis_url, tmp_path) as caller:
        await one_turn(caller)
        await many_sessions(caller)
        await a_conversation(caller)
        await a_whole_reply_at_once(caller, path)
        await a_text_as_it_is(caller)
        await a_model_that_breaks(caller)
        await who_hangs_up_cancels(caller, path)
        await what_cannot_be(caller)


async def one_turn(caller: aiohttp.ClientSession) -> None:
    """Types in order, as docs/AGENT.md tells them."""
    decoder, kinds = SseDecoder(), []
    async with caller.post("/invocations", json={"prompt": "hello"}) as response:
        assert response.content_type == "text/event-stream"
        async for data in response.content.iter_any():
            kinds += [json.loads(event.data)["type"] for event in decoder.feed(data)]
    assert kinds[0] == "agent_start"
    assert kinds[-2:] == ["audio_stream_end", "agent_end"]
    assert set(kinds[1:-2]) == {"text_delta", "audio_stream_start", "audio_chunk"}
    assert kinds.count("text_delta") > 5


async def many_sessions(caller: aiohttp.ClientSession) -> None:
    names = [f"runtime-session-of-at-least-33-characters-{n}" for n in range(12)]
    asking = [invoke(caller, session=name, prompt=f"prompt {name}") for name in names]
    for name, answer in zip(names, await asyncio.gather(*asking), strict=True):
        assert answer.session == name
        assert answer.text.startswith(f"I heard prompt {name} as message 1.")
        assert answer.errors == []
        assert heard(answer.pcm) == answer.text
        assert answer.reason == "complete"


async def a_conversation(caller: aiohttp.ClientSession) -> None:
    for turn in range(3):
        answer = await invoke(caller, session="a-conversation", prompt="again")
        assert f"as message {2 * turn + 1}." in answer.text


async def a_whole_reply_at_once(caller: aiohttp.ClientSession, path: PathDouble) -> None:
    answer = await invoke(caller, prompt="hello", mode="batch", voice="am_adam")
    assert heard(answer.pcm) == answer.text
    (piece,) = [message for message in path.of(answer.session) if isinstance(message, m.Text)]
    assert (piece.text, piece.voice) == (answer.text, "am_adam")
    await eventually(
        lambda: isinstance(path.of(answer.session)[-1], m.Close), "its own session is closed"
    )


async def a_text_as_it_is(caller: aiohttp.ClientSession) -> None:
    answer = await invoke(caller, text="Said as it is.", tokens_per_second=0)
    assert heard(answer.pcm) == answer.text == "Said as it is."


async def a_model_that_breaks(caller: aiohttp.ClientSession) -> None:
    answer = await invoke(caller, prompt="fail")
    assert [error.code for error in answer.errors] == ["source_failed"]
    assert heard(answer.pcm) == answer.text == "Well. "
    assert answer.reason == "complete"


async def who_hangs_up_cancels(caller: aiohttp.ClientSession, path: PathDouble) -> None:
    """At once, though the model is silent. Its first word is told before it is done."""
    headers = {SESSION_HEADER: "hung-up"}
    async with caller.post("/invocations", json={"prompt": "hang"}, headers=headers) as response:
        answer, decoder = Invocation(), SseDecoder()
        async for data in response.content.iter_any():
            for event in decoder.feed(data):
                answer.feed(event)
            if answer.text:
                break
    await eventually(
        lambda: any(isinstance(message, m.Cancel) for message in path.of("hung-up")),
        "the turn is cancelled",
    )
    again = await invoke(caller, session="hung-up", prompt="again")
    assert again.text.startswith("I heard hang\n\nagain as message 1.")  # it was never answered


async def what_cannot_be(caller: aiohttp.ClientSession) -> None:
    for body in ({}, {"prompt": ""}, ["prompt"], {"prompt": "x", "session": "no spaces here"}):
        async with caller.post("/invocations", json=body) as response:
            assert response.status == 400
            assert (await response.json())["type"] == "error"


async def test_what_is_being_said_is_cancelled_when_the_runtime_ends(
    redis_url: str, path: PathDouble
) -> None:
    """In this test's loop in place of the runtime's."""
    settings = AgentSettings(
        redis_url=redis_url, source="strands", strands_agent=STRANDS["FIRSTWORD_AGENT_STRANDS"]
    )
    agent = await asyncio.to_thread(RuntimeAgent, settings)
    response = await agent.invoke(
        {"prompt": "hang"}, RequestContext(session_id="cut", request_headers=None, request=None)
    )
    assert isinstance(response, StreamingResponse)
    answer, decoder = Invocation(), SseDecoder()
    async for data in response.body_iterator:
        assert isinstance(data, bytes)
        for event in decoder.feed(data):
            answer.feed(event)
        if answer.text:
            break
    await agent.close()
    assert any(isinstance(message, m.Cancel) for message in path.of("cut"))


@pytest.mark.timeout(180)
async def test_a_server_that_is_away_is_told(tmp_path: Path) -> None:
    async with runtime("redis://127.0.0.1:1", tmp_path) as caller:
        answer = await invoke(caller, prompt="hello")
    assert [error.code for error in answer.errors] == ["unreachable"]
    assert answer.reason == "failed"


async def test_a_server_that_is_known_to_be_away_is_told_without_a_wait(
    redis_url: str, path: PathDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever tries as long as for a server that may come back does so for this test's life."""
    monkeypatch.setattr(server_errors, "PATIENCE_S", 1e6)
    async with Proxy(redis_url) as proxy:
        proxy.go_dark(new_too=True)
        agent = await asyncio.to_thread(RuntimeAgent, AgentSettings(redis_url=proxy.url))
        answer = await said_by(agent, "Hello.")
        assert [error.code for error in answer.errors] == ["unreachable"]

        async def speaks() -> bool:
            return heard((await said_by(agent, "Hello.")).pcm) == "Hello."

        proxy.go_dark(new_too=False)
        await eventually(speaks, "it is asked whenever somebody comes")
        await agent.close()


async def said_by(agent: RuntimeAgent, text: str) -> Invocation:
    """Its answer, in this test's loop in place of the runtime's."""
    context = RequestContext(session_id="again", request_headers=None, request=None)
    response = await agent.invoke({"text": text, "tokens_per_second": 0}, context)
    assert isinstance(response, StreamingResponse)
    answer, decoder = Invocation(), SseDecoder()
    async for data in response.body_iterator:
        assert isinstance(data, bytes)
        for event in decoder.feed(data):
            answer.feed(event)
    return answer


async def test_wrong_settings_end_it(tmp_path: Path) -> None:
    wrong = {**STRANDS, "FIRSTWORD_AGENT_STRANDS": "tests.nowhere:make", "PYTHONPATH": str(ROOT)}
    ended = await firstword(url=None, folder=tmp_path, module=MODULE, environ=wrong)
    assert ended.status == 2
    assert "FIRSTWORD_AGENT_STRANDS='tests.nowhere:make'" in ended.err
