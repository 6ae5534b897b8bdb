"""Words from a server with OpenAI's chat completions, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from firstword.sse import read_invocation
from services.agent.memory import Message
from services.agent.openai import ChatServer, OpenAISource, client
from services.agent.source import Ask, SourceError
from tests.command import begin, firstword
from tests.doubles.model_server import ModelServer, chunk, completion
from tests.doubles.path import PathDouble, heard
from tests.support import eventually

ASK = Ask(
    text="Why?",
    session="s",
    turn="t2",
    messages=(Message("user", "Who?"), Message("assistant", "Me."), Message("user", "Why?")),
)
BECAUSE = ["Be", "cause", " it ", "is größer 🙂."]


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


async def answer(model: ModelServer, /, *, key: str = "", **server: object) -> list[str]:
    options = ChatServer(url=f"{model.url}/v1/", key=key, **server)  # type: ignore[arg-type]
    async with client() as http:
        return [piece async for piece in OpenAISource(http, options).stream(ASK)]


async def test_what_the_model_writes_comes_as_it_is_written(model: ModelServer) -> None:
    model.body = completion(BECAUSE)
    said = await answer(model, key="k-1", model="m", system_prompt="Be short.", max_tokens=77)
    assert said == BECAUSE
    assert model.paths == ["/v1/chat/completions"]
    assert model.headers[0]["Authorization"] == "Bearer k-1"
    assert model.requests == [
        {
            "model": "m",
            "stream": True,
            "max_tokens": 77,
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "Who?"},
                {"role": "assistant", "content": "Me."},
                {"role": "user", "content": "Why?"},
            ],
        }
    ]


async def test_what_is_not_set_is_not_sent(model: ModelServer) -> None:
    model.body = completion(["Yes."])
    assert await answer(model) == ["Yes."]
    assert "Authorization" not in model.headers[0]
    assert model.requests[0].keys() == {"messages", "stream"}


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_the_transport_may_cut_it_anywhere(model: ModelServer, size: int) -> None:
    whole = b"".join(completion(BECAUSE)).replace(b"\n", b"\r\n")
    model.body = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert await answer(model) == BECAUSE


async def test_tool_calls_and_reasoning_are_not_spoken(model: ModelServer) -> None:
    model.body = [
        b": a comment\n\n",
        b'data: {"choices": []}\n\n',
        chunk({"role": "assistant", "content": None, "reasoning_content": "Hm."}),
        chunk({"reasoning": "Hm."}),
        chunk({"content": "<think>Hm, <b>"}),
        chunk({"content": "</think>\n\n"}),
        chunk({"content": "Yes"}),
        chunk({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}),
        chunk({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "."}]}),
        chunk(finish="tool_calls"),
    ]
    assert "".join(await answer(model)) == "Yes."


async def test_an_answer_that_is_as_long_as_it_may_be_ends_as_any(model: ModelServer) -> None:
    model.body = completion(["And", " so"], finish="length")
    assert await answer(model) == ["And", " so"]


@pytest.mark.parametrize(
    ("body", "code", "retryable", "words"),
    [
        ([b'data: {"error": {"message": "SECRET", "code": 502}}\n\n'], "source_broke", True, "502"),
        ([b'event: error\ndata: {"type": "overloaded"}\n\n'], "source_broke", True, "overloaded"),
        ([b'data: {"object": "error", "message": "SECRET"}\n\n'], "source_broke", True, "wrote"),
        ([b'data: {"error": "SECRET of a prompt"}\n\n'], "source_broke", True, "wrote"),
        ([], "source_cut", True, "middle"),
        ([b"data: {SECRET\n\n"], "source_garbled", False, "completion"),
        ([b"data: [1]\n\n"], "source_garbled", False, "completion"),
        ([b'data: {"choices": ["SECRET"]}\n\n'], "source_garbled", False, "completion"),
        ([b'data: {"choices": 7}\n\n'], "source_garbled", False, "completion"),
    ],
)
async def test_an_error_in_the_middle_comes_after_what_was_said(
    model: ModelServer, body: list[bytes], code: str, retryable: bool, words: str
) -> None:
    model.body = [chunk({"content": "So far"}), *body]
    said: list[str] = []
    async with client() as http:
        source = OpenAISource(http, ChatServer(url=model.url))
        with pytest.raises(SourceError) as told:
            async for piece in source.stream(ASK):
                said.append(piece)  # noqa: PERF401
    assert said == ["So far"]
    assert (told.value.code, told.value.retryable) == (code, retryable)
    assert words in told.value.message
    assert "SECRET" not in str(told.value)


@pytest.mark.parametrize(
    ("status", "body", "retryable", "words"),
    [
        (401, {"error": {"code": "invalid_api_key"}}, False, "(invalid_api_key): set FIRSTWORD"),
        (404, {"error": "SECRET"}, False, "FIRSTWORD_AGENT_MODEL"),
        (400, {"error": {"message": "SECRET", "code": "of a prompt"}}, False, "400"),
        (400, {"error": {"code": 400, "type": "too_long"}}, False, "400 (too_long): look"),
        (429, {"error": {"type": "rate_limit"}}, True, "quota"),
        (500, [], True, "its log"),
        (302, {}, False, "302"),
    ],
)
async def test_a_refusal_says_what_to_do(
    model: ModelServer, status: int, body: object, retryable: bool, words: str
) -> None:
    model.status, model.body = status, [json.dumps(body).encode()]
    with pytest.raises(SourceError, match="source_refused") as told:
        await answer(model)
    assert told.value.retryable is retryable
    assert words in told.value.message
    assert "SECRET" not in str(told.value)


async def test_a_server_that_breaks_off_or_is_not_there(model: ModelServer) -> None:
    model.body, model.breaks_off = [chunk({"content": "So far"})], True
    with pytest.raises(SourceError, match="source_unreachable") as told:
        await answer(model)
    assert told.value.retryable
    async with client() as http:
        nobody = OpenAISource(http, ChatServer(url="http://user:SECRET@127.0.0.1:1"))
        with pytest.raises(SourceError, match="source_unreachable") as told:
            await anext(nobody.stream(ASK))
    assert "SECRET" not in str(told.value)


async def test_a_connection_that_is_closed_as_we_ask_is_not_told(model: ModelServer) -> None:
    model.body, model.drops = completion(["Yes."]), 2
    assert await answer(model) == ["Yes."]
    model.drops = 99
    with pytest.raises(SourceError, match="source_unreachable"):
        await answer(model)


async def test_who_stops_listening_stops_the_model(model: ModelServer) -> None:
    model.body, model.hangs = [chunk({"content": "So far"})], True
    async with client() as http:
        pieces = OpenAISource(http, ChatServer(url=model.url)).stream(ASK)
        assert await anext(pieces) == "So far"
        waiting = asyncio.ensure_future(anext(pieces))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await pieces.aclose()
        await eventually(model.hung_up.is_set, "the server sees the line go down")


def stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()


async def test_the_agent_speaks_what_a_chat_server_writes(
    redis_url: str, model: ModelServer, tmp_path: Path
) -> None:
    """The process, as an operator starts it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = {
        "FIRSTWORD_AGENT_PORT": str(port),
        "FIRSTWORD_AGENT_SOURCE": "openai",
        "FIRSTWORD_AGENT_OPENAI_URL": f"{model.url}/v1",
    }
    model.body = completion(["It ", "works."])
    agent = await begin(url=redis_url, folder=tmp_path, module="services.agent", environ=environ)
    async with (
        PathDouble(redis_url),
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as caller,
        AsyncExitStack() as stack,
    ):
        stack.callback(stop, agent)

        async def ready() -> bool:
            with contextlib.suppress(aiohttp.ClientError):
                async with caller.get("/readyz") as response:
                    return response.status == 200
            return agent.returncode is not None

        await eventually(ready, "the agent is ready", timeout=60)
        body = {"prompt": "Does it?", "session": "kept"}
        async with caller.post("/invocations", json=body) as response:
            answer = await read_invocation(response.content.iter_any())
    _, log = await asyncio.wait_for(agent.communicate(), 20)
    assert agent.returncode == 0, log.decode()
    assert answer.text == heard(answer.pcm) == "It works."
    assert model.requests[0]["messages"][0]["role"] == "system"
    assert model.requests[0]["messages"][-1] == {"role": "user", "content": "Does it?"}
    assert b"Does it" not in log
    assert b"works" not in log


async def test_a_source_that_cannot_be_ends_the_agent_with_a_sentence(tmp_path: Path) -> None:
    environ = {"FIRSTWORD_AGENT_SCRIPT": str(tmp_path / "nowhere.txt")}
    ended = await firstword(url=None, folder=tmp_path, module="services.agent", environ=environ)
    assert ended.status == 2
    assert "nowhere.txt': cannot be read" in ended.err
