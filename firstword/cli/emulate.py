"""`firstword emulate-sagemaker`: SageMaker's bidirectional streams before a container of yours."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import errno
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlencode

from firstword.cli import loop
from firstword.cli.console import Console
from firstword.cli.stack import log_folder
from firstword.emulator.faults import RULES, FaultError, parse
from firstword.emulator.settings import Settings
from firstword.emulator.signatures import KeyPair
from firstword.errors import FirstwordError

Number = Callable[[str], float]
_PORTS = range(65_536)

_DEFAULTS = Settings(container="")
_FAULTS = "\n".join(
    f"  {kind.value + (f'={rule.unit}' if rule.unit else ''):<16} {rule.about}"
    for kind, rule in RULES.items()
)
_EPILOG = f"""\
faults, written KIND[=VALUE][@STREAMS][:EVENT], for example 429@1-3, abort@2:5, delay=200:
{_FAULTS}
  @2 is the second stream since the start, @1-3 the first three, @4- all from the fourth on;
  :5 is after the fifth part to the client, :in5 after the fifth part from it.
What is true to AWS and what nobody knows: docs/EMULATOR.md."""


def add_options(sub: argparse.ArgumentParser, positive: Number) -> None:
    """What can be typed. `positive` reads and checks a number greater than 0."""
    sub.formatter_class = argparse.RawDescriptionHelpFormatter
    sub.epilog = _EPILOG
    sub.add_argument("--container", required=True, metavar="URL", help="ws://host:port of yours")
    sub.add_argument("--host", default=_DEFAULTS.host, help="address to listen on (%(default)s)")
    sub.add_argument(
        "--port",
        type=_port,
        default=8443,
        help="0 takes a free one (default: %(default)s, as at AWS)",
    )
    sub.add_argument(
        "--ca-out",
        type=Path,
        metavar="FILE",
        help="where the CA certificate goes that clients must trust (default: emulator-ca.pem in "
        "$XDG_STATE_HOME/firstword or ~/.local/state/firstword)",
    )
    sub.add_argument("--region", default=_DEFAULTS.region, help="default: %(default)s")
    sub.add_argument(
        "--endpoint",
        action="append",
        default=[],
        metavar="NAME",
        help="an endpoint that exists (repeatable; default: any name does)",
    )
    sub.add_argument("--variant", default=_DEFAULTS.variant, help="default: %(default)s")
    key = _DEFAULTS.key
    sub.add_argument("--access-key-id", default=key.access_key_id, metavar="ID")
    sub.add_argument("--secret-access-key", default=key.secret, metavar="KEY")
    sub.add_argument("--session-token", metavar="TOKEN", help="also asked of clients if given")
    _add_times(sub, positive)
    sub.add_argument(
        "--fault",
        type=_fault,
        action="append",
        default=[],
        metavar="FAULT",
        help="what goes wrong, see below (repeatable)",
    )


def _add_times(sub: argparse.ArgumentParser, positive: Number) -> None:
    sub.add_argument(
        "--ping-s", type=positive, default=_DEFAULTS.ping_s, metavar="S", help="default: 60"
    )
    sub.add_argument(
        "--max-duration-s",
        type=positive,
        default=_DEFAULTS.max_duration_s,
        metavar="S",
        help="longest life of a stream (default: 1800)",
    )
    sub.add_argument(
        "--at-max",
        choices=("error", "end"),
        default="error",
        help="how it ends then: ModelStreamError (default), or just its end",
    )
    sub.add_argument(
        "--on-close-1000",
        choices=("error", "end"),
        default="error",
        help="what the client sees when the container closes with 1000",
    )


def run(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Blocks until SIGINT or SIGTERM, which are its normal end."""
    ca_file: Path = options.ca_out or log_folder(environ).with_name("emulator-ca.pem")
    status = loop.run(_command(_settings(options), options.fault, ca_file, console))
    return 0 if status in (loop.INTERRUPTED, loop.TERMINATED) else status


async def _command(settings: Settings, faults: list[str], ca_file: Path, console: Console) -> int:
    try:
        from firstword.emulator.server import Emulator
    except ImportError as error:
        raise FirstwordError(
            "extra_missing",
            f"the emulator needs {error.name}: pip install 'firstword[emulator]'",
        ) from error
    async with contextlib.AsyncExitStack() as stack:
        try:
            emulator = await stack.enter_async_context(Emulator(settings, faults, console.note))
        except OSError as error:
            raise _cannot_listen(settings, error) from error
        await asyncio.to_thread(_write, ca_file, emulator.ca_pem)
        console.say(_greeting(settings, emulator.uri, ca_file))
        await asyncio.Event().wait()
    return 0


def _settings(options: argparse.Namespace) -> Settings:
    return dataclasses.replace(
        _DEFAULTS,
        container=options.container,
        host=options.host,
        port=options.port,
        region=options.region,
        key=KeyPair(options.access_key_id, options.secret_access_key, options.session_token),
        endpoints=frozenset(options.endpoint),
        variant=options.variant,
        ping_s=options.ping_s,
        max_duration_s=options.max_duration_s,
        normal_close_is_error=options.on_close_1000 == "error",
        cap_is_error=options.at_max == "error",
    )


def _cannot_listen(settings: Settings, error: OSError) -> FirstwordError:
    if error.errno == errno.EADDRINUSE:
        told = f"port {settings.port} is taken: choose another --port"
    else:
        known = (error.errno or 0) in errno.errorcode  # a name that leads nowhere has none
        why = os.strerror(error.errno or 0) if known else error.strerror
        told = (
            f"cannot listen on {settings.host}, port {settings.port} ({why}): "
            "choose another --host or --port"
        )
    return FirstwordError("cannot_listen", told)


def _write(file: Path, pem: bytes) -> None:
    """Raises FirstwordError; a disk that is full does not name the file."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pem)
    except OSError as error:
        raise FirstwordError(
            "cannot_write",
            f"cannot write the CA certificate to {file} ({error.strerror}): choose another "
            "--ca-out",
        ) from error


def _greeting(settings: Settings, uri: str, ca_file: Path) -> str:
    variables = {
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME_HTTP2": uri,
        "AWS_REGION": settings.region,
        "AWS_ACCESS_KEY_ID": settings.key.access_key_id,
        "AWS_SECRET_ACCESS_KEY": settings.key.secret,
    }
    if settings.key.session_token is not None:
        variables["AWS_SESSION_TOKEN"] = settings.key.session_token
    exports = "\n".join(f"  export {name}={shlex.quote(it)}" for name, it in variables.items())
    names = ", ".join(sorted(settings.endpoints)) or "any name"
    endpoint = min(settings.endpoints, default="any-name")
    query = {"region": settings.region, "endpoint_uri": uri, "ca": str(ca_file.absolute())}
    upstream = f"sagemaker://{endpoint}?{urlencode(query, safe=':/')}"
    return f"""\
SageMaker's bidirectional streaming, emulated, before {settings.container}. Ctrl-C stops it.
  endpoint URI   {uri}
  CA to trust    {ca_file}
  endpoints      {names}
For the official SDK, in the shell of the client:
{exports}
For the gateway too:
  export FIRSTWORD_UPSTREAM={shlex.quote(upstream)}"""


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) not in _PORTS:
        raise argparse.ArgumentTypeError(f"{text!r}: a port is a number from 0 to 65535")
    return int(text)


def _fault(text: str) -> str:
    try:
        parse(text)
    except FaultError as error:
        raise argparse.ArgumentTypeError(error.message) from error
    return text
