"""A model behind HTTP, as two services offer one: OpenAI's chat completions and Bedrock's
ConverseStream. What it answers is the bytes that a test gives it, piece by piece."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from firstword.emulator.eventstream import Message, encode
from firstword.runtime import HttpServer
from tests.doubles.served import Served


class ModelServer(Served):
    """On loopback. `body` is what it writes; then it ends, waits (`hangs`) or breaks off."""

    def __init__(self) -> None:
        self.body: list[bytes] = []
        self.status = 200
        self.hangs = False
        self.breaks_off = False
        self.drops = 0
        """So many requests find their connection closed."""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.hung_up = asyncio.Event()
        app = web.Application()
        app.router.add_post("/{path:.*}", self._answer)
        self._http = HttpServer(app, "127.0.0.1", 0, cancel_when_gone=True)

    @property
    def url(self) -> str:
        return f"http://{self._http.address}"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        self.headers.append(dict(request.headers))
        self.paths.append(request.raw_path)
        if self.drops and request.transport is not None:
            self.drops -= 1
            request.transport.abort()
        bedrock = request.path.endswith("converse-stream")
        kind = "application/vnd.amazon.eventstream" if bedrock else "text/event-stream"
        if self.status != 200:
            kind = "application/json"
        response = web.StreamResponse(status=self.status, headers={"Content-Type": kind})
        try:
            await response.prepare(request)
            for piece in self.body:
                await response.write(piece)
            if self.hangs:
                await asyncio.sleep(3600)
            if self.breaks_off and request.transport is not None:
                request.transport.abort()
        except (asyncio.CancelledError, ConnectionError):
            self.hung_up.set()
            raise
        return response


# -- OpenAI's chat completions --------------------------------------------------------------------


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None) -> bytes:
    """One chunk of a completion."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    body = {"object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


def completion(pieces: Iterable[str], finish: str = "stop") -> list[bytes]:
    """A whole completion."""
    said = [chunk({"content": piece}) for piece in pieces]
    return [chunk({"role": "assistant"}), *said, chunk(finish=finish), b"data: [DONE]\n\n"]


# -- Bedrock's ConverseStream ---------------------------------------------------------------------


def bedrock_event(kind: str, **body: Any) -> bytes:
    """One event of a conversation."""
    return _event({":message-type": "event", ":event-type": kind}, body)


def bedrock_exception(kind: str, message: str) -> bytes:
    """An error in the middle of it."""
    return _event({":message-type": "exception", ":exception-type": kind}, {"message": message})


def bedrock_delta(block: int = 0, **delta: Any) -> bytes:
    """A piece of what the model says, or of something else."""
    return bedrock_event("contentBlockDelta", contentBlockIndex=block, delta=delta)


def conversed(pieces: Iterable[str], reason: str = "end_turn") -> list[bytes]:
    """A whole answer."""
    return [
        bedrock_event("messageStart", role="assistant"),
        *[bedrock_delta(text=piece) for piece in pieces],
        bedrock_event("contentBlockStop", contentBlockIndex=0),
        bedrock_event("messageStop", stopReason=reason),
        bedrock_event("metadata", usage={"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}),
    ]


def _event(headers: dict[str, str], body: dict[str, Any]) -> bytes:
    payload = json.dumps(body).encode()
    return encode(Message({**headers, ":content-type": "application/json"}, payload))
