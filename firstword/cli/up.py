"""`firstword up`: a server and the four services on this machine, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from firstword import runfile
from firstword.cli import loop, preflight, stack
from firstword.cli.console import Console
from firstword.server_errors import without_password
from firstword.supervisor import Supervisor, Tell, make_log_folder

_EXAMPLE = 'firstword redis XADD fw:text "*" session demo text "Hello there. How are you?" end 1'


def run(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Blocks until SIGINT or SIGTERM, which are its normal end."""
    other = runfile.find(environ)
    if other is not None:
        raise runfile.AlreadyRunning(
            "already_running",
            f"Firstword already runs here as process {other.pid}, on "
            f"{without_password(other.url)}: use that one, or stop it first",
        )
    with runfile.claimed(environ):  # who comes while we start would share our logs, not our server
        preflight.check(environ, console)
        stack.ports(environ)  # that they are some, before weights are fetched
        stack.fetch_assets(console, environ)
        status = loop.run(command(options, console, environ))
    console.note("Firstword has stopped.")
    return 0 if status in (loop.INTERRUPTED, loop.TERMINATED) else status


async def command(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """All of it, until cancelled. Raises FirstwordError when something does not start."""
    log_dir: Path = options.log_dir or stack.log_folder(environ)

    def tell(service: str, what: str) -> None:
        console.note(f"  {service:<12} {what}")

    ports = stack.ports(environ)
    if options.agent_port is not None:
        ports["agent"] = options.agent_port
    console.note("Starting Firstword. Ctrl-C stops it.")
    await asyncio.to_thread(make_log_folder, log_dir)  # before anything is started
    async with stack.server(environ, options.port, tell) as server:
        services = stack.supervisor(
            server.url,
            environ,
            log_dir=log_dir,
            tell=tell,
            ports=ports,
            upstream=options.upstream,
        )
        _handle_signals(services, console)
        await services.start()
        try:
            run = runfile.Run(server.url, os.getpid(), services.addresses)
            with runfile.published(run, environ):
                console.greet(_greeting(server.url, services.addresses["agent"], log_dir))
                await _keep(server, services, tell)
        finally:
            await services.stop()
    return 0


async def _keep(server: stack.Server, services: Supervisor, tell: Tell) -> None:
    """Start again what dies, until cancelled or the server cannot be started again."""
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.keep(tell))
            tasks.create_task(services.run())
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def _handle_signals(services: Supervisor, console: Console) -> None:
    """The first signal begins the orderly end, wherever we are; the second kills the services."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - we are in one

    def on_signal() -> None:
        if task.cancelling():
            services.kill()
        else:
            task.cancel()
            console.note("Stopping. Once more ends everything at once.")

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)


def _greeting(url: str, agent: str, log_dir: Path) -> str:
    return f"""\
Firstword is up.
  Redis  {without_password(url)}
  page   http://{agent}/
  logs   {log_dir}
Let it speak from another shell, and listen in a third:
  {_EXAMPLE}
  firstword listen demo --out demo.wav"""
