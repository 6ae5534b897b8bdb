"""The response to an invocation: the audio alone, or server-sent events with it in base64."""

from __future__ import annotations

import asyncio
import base64
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

from aiohttp import web

from firstword import telemetry
from firstword.poison import where
from firstword.session_protocol import Error, ServerMessage, encode_server
from services.inference.sound import Sound
from services.inference.synthesizer import Stopped, SynthesisError

GOING: Final = "this container is going; try elsewhere"


class Answer(ABC):
    """The response to one request whose first part has been made."""

    def __init__(self, http: web.Request, sound: Sound, send_timeout_s: float) -> None:
        self._http = http
        self._sound = sound
        self._send_timeout_s = send_timeout_s
        self._response = web.StreamResponse(headers=self._headers())

    async def send(self, first: bytes, parts: AsyncIterator[bytes]) -> web.StreamResponse:
        """Send `first` and the rest of `parts`. Raises only cancellation: the status is sent."""
        try:
            await self._response.prepare(self._http)
            await self._write(self._begun())
            try:
                await self._write(self._part(first))
                async for part in parts:
                    await self._write(self._part(part))
            except (ConnectionError, TimeoutError):
                raise
            except Exception as error:
                telemetry.logger().warning(
                    "invocation_broken_off", error=type(error).__name__, where=where(error)
                )
                told = _told(error, self._sound.id or None)
                telemetry.count_synthesis_error(told.code)
                await self._write(self._failed(told))
            else:
                await self._write(self._ended())
            await self._response.write_eof()
        except TimeoutError:
            telemetry.logger().info("peer_takes_nothing")
            self._break_off()
        except ConnectionError:
            telemetry.logger().info("invocation_abandoned")
        except _BrokenOff:
            self._break_off()
        return self._response

    async def _write(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            if piece:
                async with asyncio.timeout(self._send_timeout_s):
                    await self._response.write(piece)

    def _break_off(self) -> None:
        if self._http.transport is not None:
            self._http.transport.abort()

    def _headers(self) -> dict[str, str]:
        return {"X-Firstword-Plan": self._sound.plan}

    def _begun(self) -> Iterable[bytes]:
        return ()

    @abstractmethod
    def _part(self, part: bytes) -> Iterable[bytes]: ...

    def _ended(self) -> Iterable[bytes]:
        return ()

    def _failed(self, _error: Error) -> Iterable[bytes]:
        raise _BrokenOff


class _BrokenOff(Exception):
    """The body must break off: there is no other way left to say that something failed."""


class Binary(Answer):
    """The audio, and nothing else. If it fails midway, the body breaks off."""

    def _headers(self) -> dict[str, str]:
        return super()._headers() | {"Content-Type": self._sound.content_type}

    async def send(self, first: bytes, parts: AsyncIterator[bytes]) -> web.StreamResponse:
        if self._sound.whole:
            self._response.content_length = len(first)
        return await super().send(first, parts)

    def _part(self, part: bytes) -> Iterable[bytes]:
        return (part,)


class Events(Answer):
    """`synthesis_start`, `audio` …, then `synthesis_complete` or `error`, as in a session."""

    def _headers(self) -> dict[str, str]:
        return super()._headers() | {
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",  # a proxy must not buffer the stream
        }

    def _begun(self) -> Iterable[bytes]:
        sound = self._sound
        yield _event(
            {
                "type": "synthesis_start",
                "id": sound.id,
                "sample_rate": sound.sample_rate,
                "plan": sound.plan,
                "content_type": sound.content_type,
            }
        )

    def _part(self, part: bytes) -> Iterable[bytes]:
        if part:
            yield _event({"type": "audio", "audio": base64.b64encode(part).decode()})

    def _ended(self) -> Iterable[bytes]:
        yield _message(self._sound.complete)

    def _failed(self, error: Error) -> Iterable[bytes]:
        yield _message(error)


def _told(error: Exception, id: str | None) -> Error:
    """The error for the client; of an unknown failure nothing that may hold text."""
    match error:
        case SynthesisError():
            return Error(id, error.code, error.message, error.retryable, error.retry_after_ms)
        case Stopped():
            return Error(id, "draining", GOING, retryable=True)
        case _:
            return Error(id, "engine_failed", "the engine failed; try again", retryable=True)


def _event(fields: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()


def _message(message: ServerMessage) -> bytes:
    return f"data: {encode_server(message)}\n\n".encode()
