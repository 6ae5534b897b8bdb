"""The agent in Bedrock AgentCore's runtime: `python -m services.agent.agentcore`.

The runtime's server calls `invoke` on an event loop in a thread of its own, so that a busy agent
never delays `/ping`. Everything that belongs to a loop is created in that one, at the first
invocation.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from bedrock_agentcore import BedrockAgentCoreApp, RequestContext
from starlette.responses import JSONResponse, Response, StreamingResponse

from firstword import telemetry
from firstword.client import Firstword
from firstword.errors import FirstwordError, SettingsError
from firstword.poison import where
from firstword.runtime import begin_logs, explain, load_settings
from services.agent.conversation import Conversation
from services.agent.core import RequestError, Say, check_label, error_event, parse_invocation
from services.agent.server_watch import ServerWatch
from services.agent.settings import AgentSettings
from services.agent.sources import chosen
from services.agent.sse import HEADERS, SseOutlet, speak
from services.agent.talk import MakeSource, Talks

NAME = "agentcore"
WRITES_AHEAD = 64
FAREWELL_S = 8.0
GRACE_S = 8
"""How long an answer may go on after SIGTERM."""

Choose = Callable[[AgentSettings], AbstractAsyncContextManager[MakeSource]]


class RuntimeAgent:
    """Answers invocations: `app` is what the runtime serves."""

    def __init__(self, settings: AgentSettings, choose: Choose = chosen) -> None:
        self.app = BedrockAgentCoreApp(lifespan=self._lifespan)
        self.app.entrypoint(self.invoke)
        self._settings = settings
        self._choose = choose
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._parts: tuple[Firstword, Talks, ServerWatch] | None = None
        self._speaking: set[asyncio.Task[Any]] = set()
        self._farewells: set[asyncio.Task[Any]] = set()

    async def invoke(self, payload: Any, context: RequestContext) -> Response:
        """The answer to `POST /invocations`; the session is the runtime's where none is named."""
        try:
            say = parse_invocation(json.dumps(payload), self._settings.limits())
            session = say.session or context.session_id
            if session is not None:
                check_label(session)
        except RequestError as error:
            return JSONResponse(error_event(error), status_code=400)
        body = self._body(say, session, asyncio.get_running_loop())
        return StreamingResponse(body, headers=HEADERS)

    async def _body(
        self, say: Say, session: str | None, loop: asyncio.AbstractEventLoop
    ) -> AsyncIterator[bytes]:
        """Runs in the server's own loop, which notices when the caller hangs up.

        A generator of events would be read by one of 40 threads, which notice nothing while they
        wait.
        """
        pipe = _Pipe()
        speaking = asyncio.run_coroutine_threadsafe(self._speak(say, session, pipe), loop)
        try:
            while data := await _in(loop, pipe.read()):
                yield data
        finally:
            speaking.cancel()

    # -- in the invocations' loop -----------------------------------------------------------------

    async def _speak(self, say: Say, name: str | None, pipe: _Pipe) -> None:
        _keep(asyncio.current_task(), self._speaking)
        outlet = SseOutlet(pipe)
        try:
            await self._converse(say, name, outlet)
        except FirstwordError as error:
            await outlet.error(None, error)
        except Exception as error:  # its text may quote what was said
            kind = type(error).__name__
            telemetry.logger().error(
                "invocation_failed", session=name, error=kind, where=where(error)
            )
            await outlet.error(None, FirstwordError("internal", "the agent failed: see its log"))
        await outlet.finish("failed")
        await pipe.write(b"")

    async def _converse(self, say: Say, name: str | None, outlet: SseOutlet) -> None:
        firstword, talks, server = await self._open()
        await server.need()
        session = firstword.session(name)
        listener = await session.listener()
        await session.open()
        talk, patience_s = talks.of(session.name), self._settings.patience_s
        conversation = Conversation(session, listener, talk, outlet, patience_s)
        try:
            await session.check_room()
            await speak(session, conversation, outlet, say, session.name)
        finally:
            if name is None:
                talks.forget(session.name)
            # In a task of its own: this one may be cancelled.
            _keep(asyncio.create_task(conversation.hang_up(close=name is None)), self._farewells)

    async def _open(self) -> tuple[Firstword, Talks, ServerWatch]:
        async with self._opening:
            if self._parts is None:
                make_source = await self._opened.enter_async_context(self._choose(self._settings))
                firstword = Firstword(self._settings.redis_url)
                await self._opened.enter_async_context(firstword)
                server = ServerWatch(firstword)
                await server.look()
                watching = asyncio.create_task(server.run())
                self._opened.callback(watching.cancel)
                self._parts = firstword, self._settings.talks(make_source), server
                self._loop = asyncio.get_running_loop()
            return self._parts

    async def close(self) -> None:
        """Break off the running answers, cancel their turns, and free everything."""
        for task in self._speaking:
            task.cancel()
        for tasks in (self._speaking, self._farewells):
            if tasks:
                await asyncio.wait(tasks, timeout=FAREWELL_S)
        await self._opened.aclose()

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        """In the server's own loop."""
        yield
        if self._loop is not None:
            closing = asyncio.run_coroutine_threadsafe(self.close(), self._loop)
            await asyncio.wrap_future(closing)


def _keep(task: asyncio.Task[Any] | None, among: set[asyncio.Task[Any]]) -> None:
    """Hold on to a task until it is done."""
    if task is not None:
        among.add(task)
        task.add_done_callback(among.discard)


class _Pipe:
    """An answer's bytes, from one loop to another; empty bytes are its end."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(WRITES_AHEAD)

    async def write(self, data: bytes) -> None:
        """In the invocations' loop; waits for a slow caller."""
        await self._queue.put(data)

    async def read(self) -> bytes:
        """What was written, also in the invocations' loop."""
        return await self._queue.get()


async def _in(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, bytes]) -> bytes:
    """Have this done in another thread's loop."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def main() -> None:
    settings = load_settings(AgentSettings, sys.argv[1:], os.environ)
    try:
        begin_logs(NAME)
        asyncio.run(_try_out(settings))
    except SettingsError as error:
        explain(error)
        raise SystemExit(2) from None
    app = RuntimeAgent(settings).app
    app.logger.handlers.clear()  # it has one of its own; ours writes lines of JSON
    # No log_config: uvicorn would set up handlers of its own, too.
    app.run(port=settings.agentcore_port, timeout_graceful_shutdown=GRACE_S, log_config=None)


async def _try_out(settings: AgentSettings) -> None:
    """Raises SettingsError now rather than at the first invocation."""
    async with chosen(settings):
        pass


if __name__ == "__main__":
    main()
