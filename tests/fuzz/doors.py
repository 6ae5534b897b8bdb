"""Throws malformed requests and frames at an agent that runs here, and sees what becomes of it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
from collections import Counter
from dataclasses import dataclass, field

import aiohttp

from services.agent.websocket import Line
from tests.doubles.path import PathDouble
from tests.fuzz.requests import Malformed
from tests.integration.test_agent import serving
from tests.support import eventually

AT_ONCE = 32
PATIENCE_S = 0.3
CLOSING = 0.2  # of all connections say at once that they have no more to say
WEBSOCKETS = 0.04  # of all connections; each carries several frames
UPGRADE = (
    b"GET /ws?session=f%d HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


@dataclass
class Outcome:
    """What came back. `failures`: what must not be."""

    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class _Errors(logging.Handler):
    """What libraries log as errors: an exception that no code of ours caught."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(logging.ERROR)
        self._outcome = outcome

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        self._outcome.failures.append(f"logged: {record.getMessage()[:200]} {kind}")


async def fuzz(redis_url: str, requests: int, seed: int) -> Outcome:
    """Send `requests` requests and frames; fails if the agent answers 5xx, logs an exception,
    or holds anything when all callers are gone."""
    outcome = Outcome()
    handler = _Errors(outcome)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _loop, context: outcome.failures.append(f"unhandled: {context.get('message')}")
    )
    for name in ("aiohttp.server", "aiohttp.web", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    try:
        async with (
            PathDouble(redis_url),
            serving(redis_url, tokens_per_second=0, resume_s=0.05, patience_s=5) as agent,
        ):
            assert agent._base_url is not None
            await _warm_up(agent)
            before = _held()
            await _throw(agent, Malformed(seed), requests, outcome)
            async with agent.get("/livez") as response:
                assert response.status == 200, "it lives"
            if not outcome.failures:
                await eventually(lambda: _nothing_more(before), "everything is let go", 30)
    finally:
        for name in ("aiohttp.server", "aiohttp.web", "asyncio"):
            logging.getLogger(name).removeHandler(handler)
        loop.set_exception_handler(None)
    return outcome


async def _warm_up(agent: aiohttp.ClientSession) -> None:
    """What is made once and kept, connections to the server above all, is made before."""
    async with agent.ws_connect("/ws") as socket:
        await socket.receive()
    async with agent.post("/v1/sessions/f0/text", json={"text": "Hi."}) as response:
        assert response.status == 202
    await asyncio.sleep(0.2)


def _held() -> tuple[int, int]:
    gc.collect()
    lines = sum(isinstance(held, Line) for held in gc.get_objects())
    return lines, len(os.listdir("/proc/self/fd"))


def _nothing_more(before: tuple[int, int]) -> bool:
    """No conversation is left, and hardly a file: the server's connections are kept for use."""
    lines, files = _held()
    assert lines <= before[0], f"{lines} lines are held"
    assert files <= before[1] + 3 * AT_ONCE, f"{files} files are open, {before[1]} were"
    return True


async def _throw(
    agent: aiohttp.ClientSession, malformed: Malformed, requests: int, outcome: Outcome
) -> None:
    base = agent._base_url
    assert base is not None and base.host is not None and base.port is not None
    host, port = base.host, base.port

    async def thrower() -> None:
        while outcome.sent < requests and len(outcome.failures) < 5:
            if malformed.chance(WEBSOCKETS):
                data, count = malformed.frames()
                data = UPGRADE % malformed.pick(8) + data
            else:
                data, count = malformed.request(), 1
            outcome.sent += count
            await _send(host, port, data, outcome, closing=malformed.chance(CLOSING))

    await asyncio.gather(*(thrower() for _ in range(AT_ONCE)))


async def _send(host: str, port: int, data: bytes, outcome: Outcome, *, closing: bool) -> None:
    """One connection: all of it sent, what comes first is read, and it is cut."""
    reader, writer = await asyncio.open_connection(host, port)
    answer = b""
    try:
        writer.write(data)
        if closing:
            writer.write_eof()
        async with asyncio.timeout(PATIENCE_S):
            answer = await reader.read(65_536)
            if data.startswith(UPGRADE[:8]) and b" 101 " in answer:
                await reader.read()  # until it is hung up on, or time is up
    except (ConnectionError, TimeoutError):
        pass  # a listener that hears nothing, or a line that was cut
    finally:
        writer.transport.abort()
    found = _STATUS.match(answer)
    status = int(found.group(1)) if found else 0
    outcome.statuses[status] += 1
    if status >= 500:
        outcome.failures.append(f"{status} for {data[:2000]!r}: {answer[:500]!r}")
