"""The middleware of every route: who is asking, from where, and how a refusal looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import web

from firstword import telemetry, traceparent
from firstword.errors import FirstwordError
from firstword.poison import where
from services.agent import access
from services.agent.access import (
    EVERYONE,
    AccessError,
    Caller,
    Ledger,
    Origins,
    Quota,
    Token,
)
from services.agent.core import RequestError, error_event
from services.agent.speech_request import refusal as openai_refusal

MAX_REQUEST_BYTES: Final = 1_048_576
RETRY_AFTER_S: Final = 5
OPENAI: Final = ("/v1/audio/", "/v1/models")
"""Paths that answer in the format of OpenAI's API."""
STATUS: Final = {
    "failed": 500,
    "model_not_found": 404,
    "no_such_path": 404,
    "bad_method": 405,
    "session_closed": 409,
    **dict.fromkeys(("bad_field", "bad_id", "bad_lexicon", "bad_setting", "bad_voice"), 400),
    **dict.fromkeys(("empty_text", "lang_mismatch", "missing_text", "not_opened"), 400),
    **dict.fromkeys(("pronunciation_failed", "text_too_long", "unknown_voice"), 400),
    **dict.fromkeys(("unsupported_lang", "voices_mismatch"), 400),
}
"""Status by error code, for mistakes of callers that another part of the system found."""
CALLER: Final = web.RequestKey("caller", Caller)
ORIGIN: Final = web.RequestKey("origin", str)
BEGUN: Final = web.RequestKey("begun", bool)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Doors:
    """Authenticates callers, counts what they use, and refuses with an explanation.

    `open_paths` need no token: the page, and what orchestrators ask.
    """

    def __init__(
        self,
        tokens: tuple[Token, ...],
        origins: Origins,
        quota: Quota,
        open_paths: frozenset[str],
    ) -> None:
        self._tokens = tokens
        self._origins = origins
        self._ledger = Ledger(quota)
        self._open_paths = open_paths

    def mount(self, app: web.Application) -> None:
        """Guard every route of `app`."""
        app.middlewares.append(self._middleware())
        app.on_response_prepare.append(_before_headers)

    def _middleware(self) -> Any:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                if not self._tokens:
                    access.check_host(request.headers.get("Host"))
                origin = request.headers.get("Origin")
                if self._origins.is_other(origin, request.headers.get("Host")) and origin:
                    request[ORIGIN] = origin
                    if request.method == "OPTIONS":
                        return web.Response(status=204, headers=access.preflight_headers(origin))
                request[CALLER] = self._caller(request)
                # One task serves the requests of a connection, one after the other.
                traceparent.take(request.headers.get("traceparent"))
                return await handler(request)
            except FirstwordError as error:
                return refused(request, error)
            except web.HTTPRequestEntityTooLarge:
                limit = f"a request may have {MAX_REQUEST_BYTES} bytes: send it in parts"
                return refused(request, AccessError("too_large", limit, status=413))
            except web.HTTPNotFound:
                told = "there is nothing at this path: docs/AGENT.md lists what there is"
                return refused(request, RequestError("no_such_path", told))
            except web.HTTPMethodNotAllowed as error:
                allowed = ", ".join(sorted(error.allowed_methods))
                told = f"this path takes {allowed}"
                answer = refused(request, RequestError("bad_method", told))
                answer.headers["Allow"] = allowed
                return answer
            except web.HTTPException:
                raise
            except Exception as error:
                if isinstance(error, ConnectionError) and _is_gone(request):
                    return web.Response(status=499)  # nobody reads it
                # Our own fault. The message of an unknown error may hold text: log only its type.
                telemetry.logger().error(
                    "request_failed", error=type(error).__name__, where=where(error)
                )
                if request.get(BEGUN) and request.transport is not None:
                    request.transport.abort()  # the body breaks off: all that is left to say
                return refused(
                    request, FirstwordError("failed", "the agent failed: a fault of ours")
                )

        return guard

    def _caller(self, request: web.Request) -> Caller:
        if not self._tokens or request.path in self._open_paths:
            return EVERYONE
        offered = request.headers.get("Sec-WebSocket-Protocol", "")
        protocols = [entry.strip() for entry in offered.split(",")]
        secret = access.presented(request.headers.get("Authorization"), protocols)
        return access.identify(secret, self._tokens)

    # -- what callers use -------------------------------------------------------------------------

    @contextmanager
    def using(self, caller: Caller, session: str) -> Iterator[None]:
        """Count the session as the caller's while inside. Raises AccessError at too many."""
        self.enter(caller, session)
        try:
            yield
        finally:
            self.leave(caller, session)

    def enter(self, caller: Caller, session: str) -> None:
        """Count one more use of the session, until `leave`. Raises AccessError."""
        self._ledger.enter(caller, session, _now())

    def leave(self, caller: Caller, session: str) -> None:
        self._ledger.leave(caller, session)

    def spend(self, caller: Caller, characters: int) -> None:
        """Take them off the caller's quota. Raises AccessError if too few are left."""
        self._ledger.spend(caller, characters, _now())

    def charge(self, caller: Caller, characters: int) -> None:
        """Take off what a model wrote for the caller; after too much its next request waits."""
        self._ledger.charge(caller, characters, _now())


def _now() -> float:
    return asyncio.get_running_loop().time()


def refused(request: web.Request, error: FirstwordError) -> web.Response:
    """The response for an error before the first byte of an answer."""
    status, retry_after_s = _status(error)
    telemetry.count_refusal(error.code)
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    like_openai = request.path.startswith(OPENAI)
    body = openai_refusal(error, status) if like_openai else error_event(error)
    return web.json_response(body, status=status, headers=headers)


def _status(error: FirstwordError) -> tuple[int, int | None]:
    if isinstance(error, AccessError):
        return error.status, error.retry_after_s
    if error.code == "busy":  # the session has enough to do
        return 429, RETRY_AFTER_S
    if error.code in STATUS:
        return STATUS[error.code], None
    if isinstance(error, RequestError):
        return 400, None
    return 503, RETRY_AFTER_S if error.retryable else None


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


async def _before_headers(request: web.Request, response: web.StreamResponse) -> None:
    request[BEGUN] = True
    if (origin := request.get(ORIGIN)) is not None:
        response.headers.update(access.cors_headers(origin))
