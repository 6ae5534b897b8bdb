"""`POST /invocations`: one request, its audio as the response."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from math import ceil
from typing import Any, Final

from aiohttp import web

from firstword import logs, telemetry
from firstword.encoding import FORMATS, EncodingError
from firstword.poison import where
from firstword.session_protocol import FrameError, Synthesize, decode_client
from services.inference.answers import GOING, Answer, Binary, Events
from services.inference.core import refusal
from services.inference.settings import InferenceSettings
from services.inference.sound import Sound, Wanted, new_encoder
from services.inference.speaker import Speaker, Started
from services.inference.synthesizer import Stop, Stopped, SynthesisError

TRANSPORTS: Final[dict[str, type[Answer]]] = {"binary": Binary, "sse": Events}
LOOK_S: Final = 0.25
"""How often it is looked whether who invoked is still there."""
STATUS: Final = {"text_too_long": 413, "frame_too_large": 413, "missing_package": 501}


def read_invocation(body: bytes, max_text_chars: int) -> tuple[Synthesize, Wanted, type[Answer]]:
    """Read and check a body. Raises SynthesisError or FrameError, each with its code."""
    request = decode_client(body)
    if not isinstance(request, Synthesize):
        raise SynthesisError("bad_message", "only `synthesize` can be invoked")
    refused = refusal(request, max_text_chars)
    if refused is not None:
        raise SynthesisError(refused.code, refused.message)
    given = {name: value for name, value in json.loads(body).items() if value is not None}
    stream = given.get("stream", True)
    if not isinstance(stream, bool):
        raise SynthesisError("bad_field", "`stream` must be true or false")
    form = _one_of(FORMATS, given.get("format", "wav"), "format")
    transport = _one_of(TRANSPORTS, given.get("transport", "binary"), "transport")
    return request, Wanted(form, stream), TRANSPORTS[transport]


def _one_of(known: dict[str, Any], value: object, field: str) -> str:
    if not isinstance(value, str) or value not in known:
        message = f"`{field}` must be one of {', '.join(known)}"
        raise SynthesisError(f"unsupported_{field}", message)
    return value


class Invocations:
    """The handler, and what runs in it."""

    def __init__(
        self, speaker: Speaker, settings: InferenceSettings, draining: Callable[[], bool]
    ) -> None:
        self._speaker = speaker
        self._settings = settings
        self._draining = draining
        self._stops: set[Stop] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def handle(self, http: web.Request) -> web.StreamResponse:
        stop = Stop()
        self._stops.add(stop)
        self._idle.clear()
        # One task may serve many requests, one after the other.
        logs.bind(request=None, request_id=http.headers.get("X-Amzn-SageMaker-Request-Id"))
        looking = asyncio.create_task(_cancel_when_gone(http, asyncio.current_task()))
        try:
            return await self._answer(http, stop)
        except Stopped:
            return _refused("draining", GOING, 503)
        except (SynthesisError, FrameError, EncodingError) as error:
            status = 503 if error.retryable else STATUS.get(error.code, 400)
            retry_after_ms = error.retry_after_ms if isinstance(error, SynthesisError) else None
            return _refused(error.code, error.message, status, retry_after_ms)
        except Exception as error:
            # The message of an unknown error may hold text: only its kind is told.
            telemetry.logger().error(
                "invocation_failed", error=type(error).__name__, where=where(error)
            )
            return _refused("engine_failed", "the engine failed; try again", 503)
        finally:
            looking.cancel()
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
            raise SynthesisError("draining", GOING, retryable=True)
        try:
            body = await http.read()
        except web.HTTPRequestEntityTooLarge:
            raise SynthesisError("frame_too_large", "the body is too large") from None
        request, wanted, kind = read_invocation(body, self._settings.max_text_chars)
        logs.bind(request=request.id or None)
        encoder = await new_encoder(wanted, request.sample_rate)
        request = replace(request, sample_rate=encoder.sample_rate)
        async with aclosing(self._speaker.speak(request, stop)) as outputs:
            started = await anext(outputs)  # errors of the request come before the first byte
            plan = started.plan if isinstance(started, Started) else ""
            sound = Sound(wanted, encoder, request.id, plan, outputs)
            async with aclosing(sound.parts()) as parts:
                # So do those of what is wanted whole, and of the encoding's first part.
                first = await anext(parts)
                answer = kind(http, sound, self._settings.send_timeout_s)
                return await answer.send(first, parts)


async def _cancel_when_gone(http: web.Request, handler: asyncio.Task[Any] | None) -> None:
    """Stop a synthesis that nobody waits for: what is wanted whole is not written before its end,
    which is when a lost connection would be noticed."""
    there = True
    while there:
        await asyncio.sleep(LOOK_S)
        there = http.transport is not None and not http.transport.is_closing()
    telemetry.logger().info("invocation_abandoned")
    if handler is not None:
        handler.cancel()


def _refused(
    code: str, message: str, status: int, retry_after_ms: int | None = None
) -> web.Response:
    telemetry.count_synthesis_error(code)
    error: dict[str, Any] = {"code": code, "message": message, "retryable": status == 503}
    headers = {}
    if retry_after_ms is not None:
        error["retry_after_ms"] = retry_after_ms
        headers["Retry-After"] = str(ceil(retry_after_ms / 1000))
    return web.json_response({"error": error}, status=status, headers=headers)
