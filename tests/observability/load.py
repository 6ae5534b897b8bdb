"""A little of everything that callers do, for as long as a test wants it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp

from firstword import messages as m
from firstword.client import Firstword
from firstword.errors import FirstwordError

TEXT = "One sentence comes. Then another one follows it, a little longer. And this is the last."
TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@contextlib.asynccontextmanager
async def callers(redis_url: str, agent: str = "") -> AsyncIterator[None]:
    """Sessions that speak, one that cancels, one that has a trace; and callers of the agent."""
    async with Firstword(redis_url) as firstword:
        async with contextlib.AsyncExitStack() as stack:
            talkers = [_talk(firstword, cancels=False), _talk(firstword, cancels=True)]
            talkers.append(_traced(firstword))
            if agent:
                talkers.append(_call(agent))
            for talker in talkers:
                stack.push_async_callback(_end, asyncio.create_task(talker))
            yield


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _talk(firstword: Firstword, *, cancels: bool) -> None:
    """The server or the rest may be away: whoever broke it looks at that."""
    number = 0
    while True:
        number += 1
        session = firstword.session(pace="realtime")
        with contextlib.suppress(FirstwordError, TimeoutError):
            async with asyncio.timeout(5), session:
                turn = await session.say(TEXT, turn=f"t-{number}")
                if cancels:
                    await asyncio.sleep(0.3)
                    await session.cancel(turn)
                await asyncio.sleep(1)
        await asyncio.sleep(0.2)


async def _traced(firstword: Firstword) -> None:
    """As a publisher does that has a trace of its own."""
    number = 0
    while True:
        number += 1
        turn = f"t-{number}"
        with contextlib.suppress(Exception):  # redis-py raises more kinds than its own
            partitions = await firstword.partitions()
            text = m.Text(session="traced", turn=turn, text=TEXT, traceparent=TRACEPARENT)
            for message in (text, m.End(session="traced", turn=turn)):
                await firstword.streams.publish(message, partitions)
        await asyncio.sleep(1)


async def _call(agent: str) -> None:
    asks = False
    async with aiohttp.ClientSession() as client:
        while True:
            asks = not asks
            body = {"prompt" if asks else "text": TEXT, "mode": "stream"}
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                timeout = aiohttp.ClientTimeout(total=10)
                url = f"http://{agent}/invocations"
                async with client.post(url, json=body, timeout=timeout) as response:
                    await response.read()
            await asyncio.sleep(0.2)
