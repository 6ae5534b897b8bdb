"""The upstream for OpenAI-compatible speech servers, `openai+http://host:port/v1`.

What frames mean as requests is decided in `openai_frames.py`; here are the requests.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

from firstword.errors import UpstreamError
from firstword.session_protocol import Frame
from services.tts_gateway.openai_frames import (
    Abort,
    Action,
    End,
    Exchange,
    Give,
    Post,
    Target,
    read_target,
    refusal,
)
from services.tts_gateway.reasons import reason
from services.tts_gateway.upstream import Link

CONNECT_S = 5.0
LONGEST_REFUSAL = 16 << 10
"""Bytes of a refusal's body that are read for its reason."""


class OpenAIUpstream:
    """Links share the connections to one server; each request has one for itself while it lasts.

    Raises SettingsError for a URL that cannot be read. The key is sent to that server alone.
    """

    def __init__(self, url: str, api_key: str = "") -> None:
        self._target = read_target(url)
        key = api_key.strip()
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http: aiohttp.ClientSession | None = None

    async def connect(self) -> Link:
        """Raises UpstreamError if the server does not answer in five seconds, or lets nobody in.

        Asking for its models warms a connection. Whether it has such a list does not matter.
        """
        if self._http is None:
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            )
        url = f"{self._target.base}/models"
        try:
            async with (
                asyncio.timeout(CONNECT_S),
                self._http.get(url, allow_redirects=False) as response,
            ):
                status = response.status
                await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise _unreachable(self._target, error) from error
        if status in (401, 403, 502, 503, 504):
            told = refusal("", status, "", self._target)
            code = "upstream_unreachable" if told.retryable else told.code
            raise UpstreamError(code, told.message, retryable=told.retryable)
        return OpenAILink(self._http, self._target)

    async def look(self) -> None:
        """Ask for its models, which speech servers do for nothing."""
        await (await self.connect()).close()

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()


class OpenAILink:
    """A session's requests, one at a time. A broken wire ends it, a refusal does not."""

    max_age_s: float | None = None

    def __init__(self, http: aiohttp.ClientSession, target: Target) -> None:
        self._http = http
        self._target = target
        self._exchange = Exchange(target)
        self._frames: asyncio.Queue[Give | End] = asyncio.Queue()
        self._over: UpstreamError | None = None
        self._request: asyncio.Task[None] | None = None
        self._aborted: set[asyncio.Task[None]] = set()

    async def send(self, frame: Frame) -> None:
        if self._over is not None:
            raise _again(self._over)
        self._do(self._exchange.client(frame))

    async def receive(self) -> tuple[Frame, bool | None]:
        news = await self._frames.get()
        if isinstance(news, End):
            self._frames.put_nowait(news)  # it stays so
            raise _again(news.error)
        return news.frame, news.text

    async def close(self) -> None:
        if self._over is None:
            told = "the link was closed"
            self._do([Abort(), End(UpstreamError("upstream_lost", told, retryable=True))])
        await asyncio.gather(*self._aborted, return_exceptions=True)

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Give():
                    self._frames.put_nowait(action)
                case Post(body):
                    self._request = asyncio.create_task(self._post(body))
                case Abort():
                    self._abort()
                case End(error):
                    self._over = error
                    self._frames.put_nowait(action)

    def _abort(self) -> None:
        """Cancelling the request closes its connection, which is how the server learns of it."""
        task, self._request = self._request, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            self._aborted.add(task)
            task.add_done_callback(self._aborted.discard)

    async def _post(self, body: dict[str, Any]) -> None:
        exchange, url = self._exchange, f"{self._target.base}/audio/speech"
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._http.post(url, json=body, allow_redirects=False)
            if response.status == 200:
                await self._read(response)
            else:
                said = await response.content.read(LONGEST_REFUSAL)
                retry_after = response.headers.get("Retry-After", "")
                self._do(exchange.refused(response.status, retry_after, said))
        except aiohttp.ClientConnectorError as error:
            self._do(exchange.broke(_unreachable(self._target, error)))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            self._do(exchange.broke(_lost(type(error).__name__)))
        finally:
            if response is not None:
                response.close()

    async def _read(self, response: aiohttp.ClientResponse) -> None:
        """The body as it comes. One that is of no use is left where that is plain."""
        exchange, request = self._exchange, asyncio.current_task()
        self._do(exchange.answered(response.headers.get("Content-Type", "")))
        while self._request is request:
            data = await response.content.readany()
            self._do(exchange.came(data) if data else exchange.ended())
            if not data:
                return


def _unreachable(target: Target, error: Exception) -> UpstreamError:
    told = f"cannot reach the speech server at {target.base} ({reason(error)}): is it up?"
    return UpstreamError("upstream_unreachable", told, retryable=True)


def _lost(reason: str) -> UpstreamError:
    told = f"the connection to the speech server was lost ({reason})"
    return UpstreamError("upstream_lost", told, retryable=True)


def _again(error: UpstreamError) -> UpstreamError:
    """An error of its own for each who is told: one that is raised twice collects tracebacks."""
    return UpstreamError(error.code, error.message, retryable=error.retryable)
