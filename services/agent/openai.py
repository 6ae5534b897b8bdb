"""Words from any server with OpenAI's chat completions: vLLM, llama.cpp, Ollama, OpenAI itself."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from firstword.errors import DecodeError
from firstword.sse import ServerSentEvent, SseDecoder
from services.agent.source import Ask, SourceError
from services.agent.thoughts import Thoughts

CONNECT_S = 10.0
TRIES = 3
MAX_REFUSAL_BYTES = 65_536
_DONE = "[DONE]"
_WORD = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_WHAT_TO_DO = {
    400: "look at its log; a conversation that is too long for it is kept shorter by "
    "FIRSTWORD_AGENT_MEMORY_CHARS",
    401: "set FIRSTWORD_AGENT_OPENAI_KEY to a key that it takes",
    403: "set FIRSTWORD_AGENT_OPENAI_KEY to a key that may do this",
    404: "look at FIRSTWORD_AGENT_OPENAI_URL, which ends in /v1 as a rule, and at "
    "FIRSTWORD_AGENT_MODEL",
    429: "it has too much to do, or your quota is used up",
}


@dataclass(frozen=True, slots=True)
class ChatServer:
    """Where the answers come from, and how they are asked for; `max_tokens` 0: any number."""

    url: str
    key: str = ""
    model: str = ""
    system_prompt: str = ""
    max_tokens: int = 0


def client() -> aiohttp.ClientSession:
    """The connections that all sessions share; to be closed. How long silence may be is Talk's."""
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        connector=aiohttp.TCPConnector(limit=0),
    )


class OpenAISource:
    """Answers with what the server's model writes, its reasoning and tool calls left out."""

    def __init__(self, http: aiohttp.ClientSession, server: ChatServer) -> None:
        self._http = http
        self._server = server

    async def stream(self, ask: Ask) -> AsyncGenerator[str, None]:
        try:
            async with await self._answer(ask) as response:
                if response.status != 200:
                    raise await _refusal(response)
                async for piece in _spoken(_events(response)):
                    yield piece
        except aiohttp.ClientError as error:
            # Not its text: it may hold the URL, and a URL may hold a password.
            raise SourceError(
                "source_unreachable",
                f"the model server cannot be reached, or broke off ({type(error).__name__}): does "
                "it run where FIRSTWORD_AGENT_OPENAI_URL says?",
                retryable=True,
            ) from error

    async def _answer(self, ask: Ask) -> aiohttp.ClientResponse:
        """The server's answer, once its headers are there.

        A server may close a connection that was kept while we ask on it; then it is asked again.
        """
        url = f"{self._server.url.rstrip('/')}/chat/completions"
        key = self._server.key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        for left in reversed(range(TRIES)):
            try:
                return await self._http.post(
                    url, json=self._request(ask), headers=headers, allow_redirects=False
                )
            except aiohttp.ClientConnectorError:
                raise
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _request(self, ask: Ask) -> dict[str, Any]:
        system = self._server.system_prompt
        messages = [{"role": "system", "content": system}] if system else []
        messages += [{"role": said.role, "content": said.text} for said in ask.messages]
        request: dict[str, Any] = {"messages": messages, "stream": True}
        if self._server.model:
            request["model"] = self._server.model
        if self._server.max_tokens:
            request["max_tokens"] = self._server.max_tokens
        return request


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[ServerSentEvent]:
    decoder = SseDecoder()
    async for data in response.content.iter_any():
        for event in decoder.feed(data):
            yield event


async def _spoken(events: AsyncIterator[ServerSentEvent]) -> AsyncIterator[str]:
    """What is to be said. Raises SourceError if the server says so, or stops without an end."""
    thoughts, finished = Thoughts(), False
    try:
        async for event in events:
            if event.data == _DONE:
                finished = True
                break
            chunk = _object(event.data)
            _check(chunk, event.event)
            for choice in chunk.get("choices") or []:
                finished = finished or choice.get("finish_reason") is not None
                if said := thoughts.feed(_text_of(choice.get("delta") or {})):
                    yield said
    except (DecodeError, AttributeError, TypeError) as error:
        raise SourceError(
            "source_garbled", "the model server sent what is no completion"
        ) from error
    if rest := thoughts.end():
        yield rest
    if not finished:
        raise SourceError(
            "source_cut", "the model server stopped in the middle of the answer", retryable=True
        )


def _text_of(delta: Mapping[str, Any]) -> str:
    """The answer's own text: not `tool_calls`, `reasoning_content`, `reasoning` or `refusal`."""
    content = delta.get("content")
    if isinstance(content, list):  # some servers send parts, of which some are thoughts
        return "".join(part["text"] for part in content if part.get("type") == "text")
    return content if isinstance(content, str) else ""


def _check(chunk: Mapping[str, Any], kind: str) -> None:
    """Raises SourceError for an error in the middle of the stream."""
    if chunk.get("error") or kind == "error" or chunk.get("object") == "error":
        named = _name_of(chunk)
        raise SourceError(
            "source_broke", f"the model server failed while it wrote{named}", retryable=True
        )


async def _refusal(response: aiohttp.ClientResponse) -> SourceError:
    body = await response.content.read(MAX_REFUSAL_BYTES)
    try:
        named = _name_of(_object(body.decode("utf-8", "replace")))
    except DecodeError:
        named = ""
    status = response.status
    advice = _WHAT_TO_DO.get(status, "look at its log")
    return SourceError(
        "source_refused",
        f"the model server answers {status}{named}: {advice}",
        retryable=status in (408, 409, 425, 429) or status >= 500,
    )


def _name_of(body: Mapping[str, Any]) -> str:
    """An error's code or type in brackets, if it is one word: its message may quote the prompt."""
    error = body.get("error")
    fields = error if isinstance(error, dict) else body
    code, kind = fields.get("code"), fields.get("type")
    for value in (code, kind) if isinstance(code, str) else (kind, code):
        if isinstance(value, str | int) and _WORD.fullmatch(str(value)):
            return f" ({value})"
    return ""


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError("bad_json", "no JSON") from error
    if not isinstance(value, dict):
        raise DecodeError("bad_json", "no JSON object")
    return value
