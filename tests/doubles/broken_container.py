"""A container that speaks babble, and does wrong what its manners say: what `doctor` must catch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import WSMsgType, web

from firstword.runtime import HttpServer
from tests.doubles.babble import RATE, babble
from tests.doubles.gateway_rig import PATH
from tests.doubles.served import Served

Frame = dict[str, Any]
FRAME_BYTES = 9_600


@dataclass(frozen=True)
class Manners:
    """The defaults are good ones."""

    sound: Callable[[str], bytes] = babble
    work_s: float = 0.0
    """Before the first byte."""
    inline: bool = False
    """Synthesises in the task that reads, so nothing is read meanwhile."""
    binary: Literal["read", "raise", "ignore"] = "read"
    """`raise`: as Starlette's `receive_text()` does, with KeyError('text')."""
    bad_json: Literal["answer", "raise"] = "answer"
    one_sentence: bool = False
    """Closes after each synthesis."""
    obeys_close: bool = True
    obeys_cancel: bool = True
    knows_ping: bool = True
    closes_idle: bool = False
    """Goes after a fifth of a second without a frame."""
    control: str = ""
    """Sent in place of `synthesis_complete`."""
    announces: bool = True
    """Sends `synthesis_start`."""
    samples_off: int = 0
    """What `samples` of the end says too much."""
    refuses: bool = False
    """Takes no connection."""


class BrokenContainer(Served):
    """A real server on loopback; `url` is what a gateway would be set to."""

    def __init__(self, manners: Manners) -> None:
        self._manners = manners
        app = web.Application()
        app.router.add_get(PATH, self._connect)
        self._http = HttpServer(app, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        return f"ws://{self._http.address}{PATH}"

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        if self._manners.refuses:
            raise web.HTTPForbidden
        ws = web.WebSocketResponse(receive_timeout=0.2 if self._manners.closes_idle else None)
        await ws.prepare(request)
        session = _Session(ws, self._manners)
        try:
            await session.serve()
        except (KeyError, ValueError, TimeoutError):  # its framework logs it and drops the wire
            if request.transport is not None:
                request.transport.abort()
        finally:
            await session.leave()
        return ws


class _Session:
    """One connection."""

    def __init__(self, ws: web.WebSocketResponse, manners: Manners) -> None:
        self._ws = ws
        self._manners = manners
        self._speaking: asyncio.Task[None] | None = None
        self._id = ""

    async def serve(self) -> None:
        async for message in self._ws:
            if message.type is WSMsgType.BINARY and self._manners.binary != "read":
                if self._manners.binary == "raise":
                    raise KeyError("text")
                continue
            try:
                frame = json.loads(message.data)
            except ValueError:
                if self._manners.bad_json == "raise":
                    raise
                await self._control("error", code="bad_json", message="it is none")
                continue
            if not await self._take(frame):
                return

    async def leave(self) -> None:
        if self._speaking is not None:
            self._speaking.cancel()
            await asyncio.gather(self._speaking, return_exceptions=True)

    async def _take(self, frame: Frame) -> bool:
        """Whether the connection goes on."""
        match frame.get("type"):
            case "synthesize":
                self._id = frame["id"]
                self._speaking = asyncio.create_task(self._speak(frame["text"]))
                if self._manners.inline:
                    await self._speaking
                if self._manners.one_sentence:
                    await self._speaking
                    return False
            case "cancel" if self._manners.obeys_cancel:
                await self.leave()
                await self._control("cancelled", id=self._id, samples=0)
            case "ping" if self._manners.knows_ping:
                await self._control("pong")
            case "close" if self._manners.obeys_close:
                return False
            case "cancel" | "ping" | "close":
                pass
            case _:
                await self._control("error", code="unknown_type", message="nobody knows it")
        return True

    async def _speak(self, text: str) -> None:
        manners = self._manners
        if manners.announces:
            await self._control("synthesis_start", id=self._id, sample_rate=RATE)
        await asyncio.sleep(manners.work_s)
        pcm = manners.sound(text)
        for at in range(0, len(pcm), FRAME_BYTES):
            await self._ws.send_bytes(pcm[at : at + FRAME_BYTES])
        if manners.control:
            await self._ws.send_str(manners.control)
        else:
            samples = len(pcm) // 2 + manners.samples_off
            await self._control("synthesis_complete", id=self._id, samples=samples)

    async def _control(self, kind: str, **fields: Any) -> None:
        await self._ws.send_str(json.dumps({"type": kind, **fields}))
