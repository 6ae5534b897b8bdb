"""Words from Bedrock, through boto3's own client, from a local ConverseStream."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator

import pytest

pytest.importorskip("boto3", reason="the extra `bedrock` is not installed")

from services.agent import bedrock
from services.agent.bedrock import BedrockModel, BedrockSource
from services.agent.memory import Message
from services.agent.source import Ask, SourceError
from tests.doubles.model_server import (
    ModelServer,
    bedrock_delta,
    bedrock_event,
    bedrock_exception,
    conversed,
)
from tests.support import eventually

ASK = Ask(
    text="Why?",
    session="s",
    turn="t2",
    messages=(Message("user", "Who?"), Message("assistant", "Me."), Message("user", "Why?")),
)
MODEL = BedrockModel("some.model-v1:0", "eu-west-1", patience_s=5)


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield server


async def answer(of: BedrockModel = MODEL) -> list[str]:
    source = BedrockSource(of)
    said = [piece async for piece in source.stream(ASK)]
    await ended()
    await asyncio.to_thread(source._client.close)
    return said


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "bedrock"]


async def ended() -> None:
    await eventually(lambda: not readers(), "no thread reads any more")


async def test_what_the_model_says_comes_as_it_is_said(model: ModelServer) -> None:
    model.body = conversed(["Be", "cause", " größer 🙂."])
    options = BedrockModel("some.model-v1:0", "eu-west-1", "Be short.", 77)
    assert await answer(options) == ["Be", "cause", " größer 🙂."]
    assert model.paths == ["/model/some.model-v1%3A0/converse-stream"]
    assert "eu-west-1/bedrock" in model.headers[0]["Authorization"]
    assert model.requests == [
        {
            "messages": [
                {"role": "user", "content": [{"text": "Who?"}]},
                {"role": "assistant", "content": [{"text": "Me."}]},
                {"role": "user", "content": [{"text": "Why?"}]},
            ],
            "system": [{"text": "Be short."}],
            "inferenceConfig": {"maxTokens": 77},
        }
    ]


async def test_tool_use_and_reasoning_are_not_spoken(model: ModelServer) -> None:
    model.body = [
        bedrock_event("messageStart", role="assistant"),
        bedrock_delta(reasoningContent={"text": "Hm."}),
        bedrock_delta(1, text="<thinking>Hm"),
        bedrock_delta(1, text=".</thinking> Yes"),
        bedrock_delta(2, toolUse={"input": "{}"}),
        bedrock_delta(3, text="."),
        bedrock_event("messageStop", stopReason="max_tokens"),
    ]
    assert "".join(await answer()) == "Yes."
    assert model.requests[0].keys() == {"messages"}


async def test_a_long_answer_is_read_no_faster_than_it_is_taken(model: ModelServer) -> None:
    count = bedrock.PIECES_AHEAD * 3
    model.body = conversed([f"{n} " for n in range(count)])
    source = BedrockSource(MODEL)
    said = []
    async for piece in source.stream(ASK):
        said.append(piece)
        await asyncio.sleep(0)
    assert said == [f"{n} " for n in range(count)]
    await ended()


@pytest.mark.parametrize(
    ("end", "code", "retryable"),
    [
        ([bedrock_exception("throttlingException", "SECRET")], "source_refused", True),
        ([bedrock_exception("modelStreamErrorException", "SECRET")], "source_refused", True),
        ([bedrock_exception("validationException", "SECRET")], "source_refused", False),
        ([], "source_cut", True),
        ([b"\0" * 40], "source_unreachable", True),
    ],
)
async def test_an_error_in_the_middle_comes_after_what_was_said(
    model: ModelServer, end: list[bytes], code: str, retryable: bool
) -> None:
    model.body = [bedrock_delta(text="So far"), *end]
    said: list[str] = []
    with pytest.raises(SourceError) as told:
        async for piece in BedrockSource(MODEL).stream(ASK):
            said.append(piece)  # noqa: PERF401
    assert said == ["So far"]
    assert (told.value.code, told.value.retryable) == (code, retryable)
    assert "SECRET" not in str(told.value)
    await ended()


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "words"),
    [
        (403, "AccessDeniedException", False, "InvokeModelWithResponseStream"),
        (404, "ResourceNotFoundException", False, "FIRSTWORD_AGENT_MODEL"),
        (400, "ValidationException", False, "inference profile"),
        (418, "TeapotException", False, "TeapotException"),
    ],
)
async def test_a_refusal_says_what_to_do(
    model: ModelServer, status: int, kind: str, retryable: bool, words: str
) -> None:
    model.status = status
    model.body = [json.dumps({"__type": kind, "message": "SECRET"}).encode()]
    with pytest.raises(SourceError, match="source_refused") as told:
        await answer()
    assert told.value.retryable is retryable
    assert words in told.value.message
    assert "SECRET" not in str(told.value)
    await ended()


async def test_without_credentials_or_a_server_it_says_so(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://127.0.0.1:1")
    with pytest.raises(SourceError, match="source_unreachable") as told:
        await answer()
    assert told.value.retryable
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(SourceError, match="Unable to locate credentials") as told:
        await answer()
    assert not told.value.retryable
    await ended()


async def test_who_stops_listening_stops_the_model_at_once(model: ModelServer) -> None:
    model.body, model.hangs = [bedrock_delta(text="So far")], True
    pieces = BedrockSource(BedrockModel("m", "eu-west-1", patience_s=600)).stream(ASK)
    assert await anext(pieces) == "So far"
    waiting = asyncio.ensure_future(anext(pieces))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await pieces.aclose()
    await ended()  # far sooner than the model's patience
    await eventually(model.hung_up.is_set, "Bedrock sees the line go down")


async def test_a_thread_that_is_ahead_ends_when_nobody_takes_more(model: ModelServer) -> None:
    model.body = conversed(["x"] * bedrock.PIECES_AHEAD * 3)
    pieces = BedrockSource(MODEL).stream(ASK)
    assert await anext(pieces) == "x"
    await pieces.aclose()
    await ended()
