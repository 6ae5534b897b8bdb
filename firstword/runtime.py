"""What every service process does alike: signals, health and metrics over HTTP, the start."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from aiohttp import HttpVersion11, web, web_urldispatcher
from aiohttp.http_exceptions import HttpProcessingError

from firstword import logs, settings, telemetry, tracing, variables
from firstword.errors import FirstwordError
from firstword.loop_watch import LoopWatch

T = TypeVar("T")

Check = Callable[[], str | None]
PRINT_SETTINGS = "--print-settings"


class Health:
    """Named checks; each answers None when well, else the reason in words."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        self._checks[name] = check

    def reasons(self) -> dict[str, str]:
        """What is wrong now, by check; empty when ready."""
        found = {name: check() for name, check in self._checks.items()}
        for name, reason in found.items():
            telemetry.not_ready.labels(name).set(reason is not None)
        return {name: reason for name, reason in found.items() if reason is not None}


def add_routes(app: web.Application, health: Health) -> None:
    """Mount `/livez` (the loop turns), `/readyz` (reasons as JSON) and `/metrics`."""
    watch = LoopWatch()

    async def watching(_app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(watch.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def livez(_request: web.Request) -> web.Response:
        body = {"live": watch.alive, "loop_late_s": round(watch.worst_s, 3)}
        return web.json_response(body, status=200 if watch.alive else 503)

    async def readyz(_request: web.Request) -> web.Response:
        reasons = health.reasons()
        return web.json_response(
            {"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200
        )

    async def metrics(request: web.Request) -> web.Response:
        health.reasons()  # so that what is red now is scraped now
        accept = request.headers.get("Accept", "")
        # In a thread: it reads files about this process.
        body, content_type = await asyncio.to_thread(telemetry.exposition, accept)
        return web.Response(body=body, headers={"Content-Type": content_type})

    app.cleanup_ctx.append(watching)
    app.router.add_get("/livez", livez)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)


class HttpServer:
    """An aiohttp application on an address; port 0 picks a free one. `address` is host:port.

    With `cancel_when_gone`, the handler of a caller who hangs up is cancelled at once. `word`: of
    the variables that say host and port, FIRSTWORD_{word}_HOST and …_PORT.
    """

    def __init__(
        self,
        app: web.Application,
        host: str,
        port: int,
        *,
        cancel_when_gone: bool = False,
        word: str = "",
    ) -> None:
        self._runner = web.AppRunner(
            app,
            handle_signals=False,
            shutdown_timeout=1,
            handler_cancellation=cancel_when_gone,
        )
        self._host = host
        self._port = port
        self._word = word
        self.address = ""

    async def start(self) -> None:
        """Listen. Raises FirstwordError where that cannot be."""
        logging.getLogger("aiohttp.server").addFilter(_is_no_callers_fault)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, reuse_address=True)
        try:
            await site.start()
        except (OSError, UnicodeError) as error:  # the latter: a name that no host can have
            await self._runner.cleanup()
            raise self._cannot_listen(error) from error
        host, port = self._runner.addresses[0][:2]
        self.address = f"{host}:{port}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    def _cannot_listen(self, error: OSError | UnicodeError) -> FirstwordError:
        of_host, of_port = "the host", "the port"
        if self._word:
            of_host, of_port = (f"FIRSTWORD_{self._word}_{name}" for name in ("HOST", "PORT"))
        number = error.errno if isinstance(error, OSError) else None
        if number == errno.EADDRINUSE:
            told = (
                f"port {self._port} of {self._host} is taken: set {of_port} to another, 0 for any"
            )
        elif number == errno.EACCES:
            told = f"port {self._port} is not for this user: set {of_port} to one above 1023"
        else:  # a name that leads nowhere has an errno of its own kind
            known = number is not None and number in errno.errorcode
            why = os.strerror(number or 0) if known else "that name leads nowhere"
            told = f"cannot listen on {self._host!r} ({why}): set {of_host} to an address of ours"
        return FirstwordError("cannot_listen", told)


async def _expect(request: web.Request) -> None:
    """What `Expect: 100-continue` waits for. Any other value is refused."""
    if request.version != HttpVersion11:
        return
    if request.headers.get("Expect", "").lower() != "100-continue":
        raise web.HTTPExpectationFailed(text="Expect can only be 100-continue")
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # that was not yet the answer


# aiohttp's own quotes the value, and fails with status 500 and a trace where that is no text.
# Routes can be given another one, but not what answers where there is no route.
web_urldispatcher._default_expect_handler = _expect


def _is_no_callers_fault(record: logging.LogRecord) -> bool:
    """aiohttp logs a request that is no HTTP as an error, and quotes it: it may hold a secret."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


def announce_ready(service: str, **fields: Any) -> None:
    """Tell whoever started us that we serve now: one log line with event `ready`."""
    telemetry.logger().info("ready", name=service, pid=os.getpid(), **fields)


def load_settings(
    cls: type[T], argv: list[str], environ: Mapping[str, str], *, words: tuple[str, ...] = ()
) -> T:
    """Settings from the environment; `--print-settings` prints their table instead and exits.

    `words`: what else may stand in `argv`, to no effect. Anything else ends the process with status
    2 and its usage, wrong settings with status 2 and one line naming every problem.
    """
    _check_arguments(argv, (*words, PRINT_SETTINGS))
    if PRINT_SETTINGS in argv:
        rows = [{"variable": v, "default": d, "help": h} for v, d, h in settings.table(cls)]
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        raise SystemExit(0)
    try:
        return settings.load(cls, environ)
    except FirstwordError as error:
        sys.stderr.write(f"{error.message}\n")
        raise SystemExit(2) from None


def _check_arguments(argv: list[str], known: tuple[str, ...]) -> None:
    strange = [argument for argument in argv if argument not in known]
    if not strange:
        return
    spec = sys.modules["__main__"].__spec__
    module = "MODULE" if spec is None else spec.name.removesuffix(".__main__")
    usage = f"usage: python -m {module} {' '.join(f'[{each}]' for each in known)}"
    about = f"settings are environment variables, which {PRINT_SETTINGS} lists"
    if {"-h", "--help"} & set(strange):
        sys.stdout.write(f"{usage}; {about}\n")
        raise SystemExit(0)
    sys.stderr.write(f"{usage}: {strange[0]!r} is none of these; {about}\n")
    raise SystemExit(2)


def run(service: str, main: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run `main(stop)` until it returns; SIGTERM and SIGINT set `stop`, which begins the drain.

    A FirstwordError ends the process with status 2 and its sentence.
    """

    async def supervised() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await main(stop)

    try:
        begin_logs(service)
        tracing.configure(service)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(supervised())
    except FirstwordError as error:
        explain(error)
        raise SystemExit(2) from None


def begin_logs(service: str) -> None:
    """Log as FIRSTWORD_LOG_LEVEL says, and tell what runs, and which variables of ours nothing
    reads. Raises SettingsError."""
    logs.configure(service, os.environ.get(logs.LEVEL_VARIABLE, "INFO"))
    telemetry.tell_build(service)
    for name, near in variables.unknown(os.environ):
        telemetry.logger().warning("unknown_variable", variable=name, nearest=near)


def explain(error: FirstwordError) -> None:
    """Say on standard error, to a person, why this process ends: that is no part of its log."""
    if sys.__stderr__ is not None:
        sys.__stderr__.write(f"{error.message}\n")


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
