"""`POST /invocations`: one request, its audio as the response."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from aiohttp import web

from firstword import telemetry
from firstword.session_protocol import FrameError, Synthesize, decode_client
from services.inference.audio import wav_header
from services.inference.core import refusal
from services.inference.speaker import Output, Speaker, Started
from services.inference.synthesizer import Stop, Stopped, SynthesisError

FORMATS: Final = {"wav": "audio/wav", "pcm": "audio/pcm"}
STATUS: Final = {"text_too_long": 413, "frame_too_large": 413}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A synthesis and how its audio is wanted."""

    request: Synthesize
    stream: bool
    format: str

    @property
    def content_type(self) -> str:
        rate = self.request.sample_rate
        suffix = f";rate={rate};channels=1" if self.format == "pcm" else ""
        return FORMATS[self.format] + suffix

    def header(self, data_bytes: int | None) -> bytes:
        return wav_header(self.request.sample_rate, data_bytes) if self.format == "wav" else b""


def read_invocation(body: bytes, max_text_chars: int) -> Invocation:
    """Read and check a body. Raises SynthesisError or FrameError, each with its code."""
    request = decode_client(body)
    if not isinstance(request, Synthesize):
        raise SynthesisError("bad_message", "only `synthesize` can be invoked")
    refused = refusal(request, max_text_chars)
    if refused is not None:
        raise SynthesisError(refused.code, refused.message)
    fields = json.loads(body)
    stream, form = fields.get("stream", True), fields.get("format", "wav")
    if not isinstance(stream, bool):
        raise SynthesisError("bad_field", "`stream` must be true or false")
    if not isinstance(form, str) or form not in FORMATS:
        message = f"`format` must be one of {', '.join(FORMATS)}"
        raise SynthesisError("unsupported_format", message)
    if fields.get("transport", "binary") != "binary":
        raise SynthesisError("unsupported_transport", "`transport` must be binary")
    return Invocation(request, stream, form)


class Invocations:
    """The handler, and what runs in it."""

    def __init__(self, speaker: Speaker, max_text_chars: int, draining: Callable[[], bool]) -> None:
        self._speaker = speaker
        self._max_text_chars = max_text_chars
        self._draining = draining
        self._stops: set[Stop] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def handle(self, http: web.Request) -> web.StreamResponse:
        stop = Stop()
        self._stops.add(stop)
        self._idle.clear()
        try:
            return await self._answer(http, stop)
        except Stopped:
            return _refused("draining", "this container is going; try elsewhere", 503)
        except (SynthesisError, FrameError) as error:
            status = 503 if error.retryable else STATUS.get(error.code, 400)
            retry_after_ms = error.retry_after_ms if isinstance(error, SynthesisError) else None
            return _refused(error.code, error.message, status, retry_after_ms)
        except Exception as error:
            # The message of an unknown error may hold text: only its kind is told.
            telemetry.logger().error("invocation failed", kind=type(error).__name__)
            return _refused("engine_failed", "the engine failed; try again", 503)
        finally:
            self._stops.discard(stop)
            if not self._stops:
                self._idle.set()

    async def idle(self) -> None:
        """Wait until no invocation runs."""
        await self._idle.wait()

    def stop_now(self) -> None:
        for stop in list(self._stops):
            stop.set()

    async def _answer(self, http: web.Request, stop: Stop) -> web.StreamResponse:
        if self._draining():
            message = "this container is going; try elsewhere"
            raise SynthesisError("draining", message, retryable=True)
        try:
            body = await http.read()
        except web.HTTPRequestEntityTooLarge:
            raise SynthesisError("frame_too_large", "the body is too large") from None
        invocation = read_invocation(body, self._max_text_chars)
        async with aclosing(self._speaker.speak(invocation.request, stop)) as outputs:
            first = await anext(outputs)  # errors of the request come before the first byte
            plan = first.plan if isinstance(first, Started) else ""
            headers = {"X-Firstword-Plan": plan, "Content-Type": invocation.content_type}
            if invocation.stream:
                return await _streamed(http, invocation, headers, outputs)
            return await _whole(invocation, headers, outputs)


async def _whole(
    invocation: Invocation, headers: dict[str, str], outputs: AsyncGenerator[Output, None]
) -> web.StreamResponse:
    pcm = b"".join([output async for output in outputs if isinstance(output, bytes)])
    return web.Response(body=invocation.header(len(pcm)) + pcm, headers=headers)


async def _streamed(
    http: web.Request,
    invocation: Invocation,
    headers: dict[str, str],
    outputs: AsyncGenerator[Output, None],
) -> web.StreamResponse:
    response = web.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(http)
    await response.write(invocation.header(None))
    try:
        async for output in outputs:
            if isinstance(output, bytes):
                await response.write(output)
        await response.write_eof()
    except (SynthesisError, Stopped) as error:
        # The status is out already: a body without its end is the only way left to say it.
        telemetry.logger().warning("invocation broken off", kind=type(error).__name__)
        if http.transport is not None:
            http.transport.abort()
    except ConnectionError:
        telemetry.logger().info("invocation abandoned by its client")
    return response


def _refused(
    code: str, message: str, status: int, retry_after_ms: int | None = None
) -> web.Response:
    telemetry.synthesis_errors.labels(code).inc()
    error: dict[str, Any] = {"code": code, "message": message, "retryable": status == 503}
    headers = {}
    if retry_after_ms is not None:
        error["retry_after_ms"] = retry_after_ms
        headers["Retry-After"] = str(ceil(retry_after_ms / 1000))
    return web.json_response({"error": error}, status=status, headers=headers)
