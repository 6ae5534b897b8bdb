"""All of Firstword on this machine: a server and the four services, as `firstword up` runs them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from firstword import assets, keys, runfile, session_address
from firstword.cli.console import Console
from firstword.client import Firstword
from firstword.embedded import EmbeddedServer, EmbeddedServerError, quarter_of_memory
from firstword.emulator.settings import Settings
from firstword.errors import FirstwordError
from firstword.runfile import URL_VARIABLE
from firstword.server_errors import PATIENCE_S, insist, without_password
from firstword.supervisor import Service, Supervisor, Tell

UPSTREAM_VARIABLE = "FIRSTWORD_UPSTREAM"
_EMULATOR_CA = "emulator-ca.pem"
UPSTREAMS = ("websocket", "sagemaker")
"""How gateway and container may be joined here: straight, or as behind a SageMaker endpoint."""
PORTS: Mapping[str, int] = {
    "inference": 8080,
    "tts_gateway": 9102,
    "segmenter": 9101,
    "agent": 8000,
}
"""Where `firstword up` puts them if it can: where deploy/observability/prometheus.yml looks."""
_VARIABLES = {
    "inference": "INFERENCE",
    "tts_gateway": "GATEWAY",
    "segmenter": "SEGMENTER",
    "agent": "AGENT",
}
_LOOK_S = 0.2
_SILENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Server:
    """The server in use; `own` is its process, where it is one that we started."""

    url: str
    own: EmbeddedServer | None = None

    async def keep(self, tell: Tell) -> None:
        """Start our own server again whenever it dies, empty and on the port that all know, until
        cancelled. Raises FirstwordError when it does not come up. Somebody else's is theirs."""
        while self.own is not None:
            await asyncio.sleep(_LOOK_S)
            if self.own.running:
                continue
            tell("server", "ended: starting it again, without what it held")
            try:
                await asyncio.to_thread(self.own.restart)
            except EmbeddedServerError as error:
                raise FirstwordError(
                    error.code,
                    f"the server ended and cannot be started again: {error.message}",
                    retryable=error.retryable,
                ) from error
            tell("server", f"ready on 127.0.0.1:{self.own.port}")


def fetch_assets(console: Console, environ: Mapping[str, str]) -> None:
    """Make sure of weights and voices, with a progress bar. Blocks: call it before a loop runs."""
    with contextlib.suppress(assets.AssetsError):
        assets.locate(environ)
        return
    console.note("Fetching the Kokoro-82M weights and voices (once, about 90 MB) ...")
    found = fetch(environ, console)
    console.note(f"Weights and voices are in {found.folder}.")


def fetch(
    environ: Mapping[str, str],
    console: Console,
    *,
    all_voices: bool = False,
    folder: Path | None = None,
) -> assets.Assets:
    """`assets.fetch` with a progress bar. Raises FirstwordError when the cache cannot be written,
    too."""
    try:
        return assets.fetch(
            environ,
            all_voices=all_voices,
            folder=folder,
            report=lambda now: console.bar(now.what, now.done, now.total),
        )
    except OSError as error:
        raise FirstwordError(
            "cannot_write",
            f"cannot keep weights and voices in {error.filename or 'the cache'} "
            f"({error.strerror}): set XDG_CACHE_HOME to a folder that can be written",
        ) from error


@contextlib.asynccontextmanager
async def server(environ: Mapping[str, str], port: int | None, tell: Tell) -> AsyncIterator[Server]:
    """The server to use: the one FIRSTWORD_REDIS_URL names, else one of our own for the length of
    the block, on `port` if that is given and free, with a quarter of the memory.

    Raises FirstwordError when the one that is named does not answer.
    """
    if url := environ.get(URL_VARIABLE):
        await _answer(url, tell)
        yield Server(url)
        return
    own = EmbeddedServer(preferred_port=port, max_memory_bytes=quarter_of_memory())
    async with own:
        tell("server", f"ready on 127.0.0.1:{own.port}")
        yield Server(own.url, own)


async def _answer(url: str, tell: Tell) -> None:
    """Return when the server at `url` answers, and tell when it does not at once."""
    what = f"{without_password(url)} does not answer yet: trying for {PATIENCE_S:g} s"
    told = asyncio.get_running_loop().call_later(_SILENCE_S, tell, "server", what)
    try:
        async with Firstword(url) as firstword:
            await insist(firstword.streams.commands.time, url)
    finally:
        told.cancel()


def supervisor(
    url: str,
    environ: Mapping[str, str],
    *,
    log_dir: Path,
    tell: Tell,
    ports: Mapping[str, int] = {},
    upstream: str = "websocket",
) -> Supervisor:
    """The services on the server at `url`, not started: those in `ports` on that port, or another
    where it is taken when they start, all others on free ones. The agent is among them only when
    it is in `ports`. `upstream`: one of `UPSTREAMS`."""

    def on(name: str) -> _Port:
        return _Port(name, ports.get(name, 0), tell)

    # In the order of the path from its end, so that stopping goes from its beginning.
    services = [_service(on("inference"), "INFERENCE", health="/ping")]
    gateway = on("tts_gateway")
    if upstream == "sagemaker":
        services += _sagemaker(log_dir / _EMULATOR_CA, gateway, on("sagemaker"))
    else:
        services += [_service(gateway, "GATEWAY", after=("inference",), env=_upstream)]
    services += [_service(on("segmenter"), "SEGMENTER")]
    if "agent" in ports:
        services.append(_service(on("agent"), "AGENT"))
    return Supervisor(services, {**environ, URL_VARIABLE: url}, log_dir, tell)


def ports(environ: Mapping[str, str]) -> dict[str, int]:
    """Where `firstword up` is to put what others look at: the environment's ports (0: any that is
    free), else `PORTS`. Raises FirstwordError for what is no port."""
    found = dict(PORTS)
    for name, word in _VARIABLES.items():
        variable = _port_variable(word)
        given = environ.get(variable, "")
        if given and not (given.isascii() and given.isdecimal() and int(given) < 65_536):
            told = f"{variable}={given!r}: must be a port, or 0 for a free one"
            raise FirstwordError("bad_settings", told)
        found[name] = int(given or found[name])
    return found


@contextlib.asynccontextmanager
async def running(
    environ: Mapping[str, str], *, log_dir: Path, tell: Tell, upstream: str = "websocket"
) -> AsyncIterator[str]:
    """The path from text to audio, healthy, for the length of the block; yields the server's URL.

    Raises FirstwordError when something does not start.
    """
    async with server(environ, None, tell) as used:
        services = supervisor(used.url, environ, log_dir=log_dir, tell=tell, upstream=upstream)
        await services.start()
        try:
            yield used.url
        finally:
            await services.stop()


@contextlib.asynccontextmanager
async def inference(environ: Mapping[str, str], tell: Tell) -> AsyncIterator[str]:
    """An inference service alone, healthy, for the length of the block; yields its ws:// URL.

    Raises FirstwordError when it does not start; the message holds the end of its log.
    """
    with tempfile.TemporaryDirectory(prefix="firstword-logs-") as folder:
        alone = [_service(_Port("inference", 0, tell), "INFERENCE", health="/ping")]
        services = Supervisor(alone, environ, Path(folder), tell)
        await services.start()
        try:
            yield _upstream(services.addresses)[UPSTREAM_VARIABLE]
        finally:
            await services.stop()


def backend(given: str | None, environ: Mapping[str, str]) -> str | None:
    """URL of the synthesis backend to look at: the one given, else the environment's, else the
    container of the `firstword up` on this machine; None where there is none of them."""
    if url := given or environ.get(UPSTREAM_VARIABLE):
        return url
    here = runfile.find(environ)
    if here is None or "inference" not in here.services:
        return None
    return _upstream(here.services)[UPSTREAM_VARIABLE]


@dataclass(frozen=True, slots=True)
class _Port:
    """The port a service is to have, 0 for a free one."""

    service: str
    wanted: int
    tell: Tell

    def choose(self, addresses: Mapping[str, str]) -> str:
        """What the service is told, when it starts: a free one if another process has its port."""
        again = self.service in addresses  # then its supervisor gives it the port that it had
        if not self.wanted or again or _is_free(self.wanted):
            return str(self.wanted)
        self.tell(self.service, f"port {self.wanted} is taken, so it gets another")
        return "0"


def _service(
    port: _Port,
    variable: str,
    *,
    health: str | None = "/readyz",
    module: str = "",
    after: Sequence[str] = (),
    env: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda addresses: {},
) -> Service:
    port_variable = _port_variable(variable)
    return Service(
        port.service,
        # -P: a folder named `services` where the user happens to be is not ours.
        (sys.executable, "-P", "-m", module or f"services.{port.service}"),
        health=health,
        port_variable=port_variable,
        after=after,
        env=lambda addresses: {port_variable: port.choose(addresses), **env(addresses)},
    )


def _port_variable(word: str) -> str:
    return f"FIRSTWORD_{word}_PORT"


def _upstream(addresses: Mapping[str, str]) -> dict[str, str]:
    return {UPSTREAM_VARIABLE: f"ws://{addresses['inference']}{session_address.PATH}"}


def _sagemaker(ca_file: Path, gateway: _Port, own: _Port) -> list[Service]:
    """The emulator before the container, and a gateway that takes it for SageMaker."""
    known = Settings(container="")

    def container(addresses: Mapping[str, str]) -> dict[str, str]:
        return {
            "FIRSTWORD_EMULATOR_CONTAINER": f"ws://{addresses['inference']}",
            "FIRSTWORD_EMULATOR_CA": str(ca_file),
        }

    def endpoint(addresses: Mapping[str, str]) -> dict[str, str]:
        uri = f"https://{addresses['sagemaker']}"
        query = urlencode({"region": known.region, "endpoint_uri": uri, "ca": str(ca_file)})
        return {
            UPSTREAM_VARIABLE: f"sagemaker://firstword?{query}",
            "AWS_ACCESS_KEY_ID": known.key.access_key_id,
            "AWS_SECRET_ACCESS_KEY": known.key.secret,
            "AWS_SESSION_TOKEN": "",
        }

    emulator = _service(
        own,
        "EMULATOR",
        health=None,
        module="firstword.emulator",
        after=("inference",),
        env=container,
    )
    return [
        emulator,
        _service(gateway, "GATEWAY", after=("inference", "sagemaker"), env=endpoint),
    ]


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return True
    return False


def log_folder(environ: Mapping[str, str]) -> Path:
    """Where the services' logs go by default: the user's folder for state."""
    base = environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "firstword" / "logs"


async def require_services(firstword: Firstword) -> None:
    """Raise FirstwordError if nobody would speak what is published on this server."""
    commands = firstword.streams.commands

    async def missing() -> list[str]:
        seconds, microseconds = await commands.time()
        now_ms = seconds * 1000 + microseconds // 1000
        stages = ("segmenter", "gateway")
        return [s for s in stages if not await commands.zcount(keys.workers(s), now_ms, "+inf")]

    absent = await insist(missing, firstword.streams.url)
    if absent:
        raise FirstwordError(
            "no_services",
            f"no {' and no '.join(absent)} works on {without_password(firstword.streams.url)}: "
            "start them with `firstword up` (with the same FIRSTWORD_REDIS_URL, if that is set)",
            retryable=True,
        )
