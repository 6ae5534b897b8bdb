"""Services as child processes: started in the order they need each other, gated on their health,
restarted when they die, stopped in reverse.

A service tells where it listens in its log, by one JSON line with `event` "ready", `http`
"host:port" and its `pid`, and answers 200 on its health path, if it has one, once it can work. Its
output goes to a file that belongs to it alone, so that a busy terminal can never stall it.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from firstword.child import ChildProcess
from firstword.errors import FirstwordError

Tell = Callable[[str, str], None]
"""What happened, for a person: service, what it does now."""

_POLL_S = 0.05
_PROBE_TIMEOUT_S = 2.0
_WELL_ENOUGH = {"memory", "poison", "upstream"}
"""Checks that may be red: a full server, a broken publisher or an absent backend is no reason to
end a service that serves everything else, or will once they are back."""
_TAIL_LINES = 12
_TAIL_BYTES = 16_384


class ServiceFailed(FirstwordError):
    """A service ended, or did not get ready in time; the message holds the end of its log."""


class ServiceEnded(ServiceFailed):
    """It ended by itself."""


@dataclass(frozen=True, slots=True)
class Service:
    """A process to keep running. `env(addresses)` gives its variables beyond the common ones, from
    the addresses of the services it comes `after`. If it ends before it is ready, `env` is called
    again, and the process tried once more if the variables differ. On a restart `port_variable` is
    set to the port it had, which others know."""

    name: str
    command: Sequence[str]
    health: str | None = "/readyz"
    port_variable: str | None = None
    after: Sequence[str] = ()
    env: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda addresses: {}


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds. `start_s`: until a service must be ready. `stable_s`: after running this long a
    death counts as the first. `grace_s`: from the request to stop until it is killed."""

    start_s: float = 120.0
    stable_s: float = 60.0
    first_pause_s: float = 0.5
    longest_pause_s: float = 30.0
    grace_s: float = 10.0


class Supervisor:
    """Keeps `services`; `tell` hears what happens. Use `start`, then `run`, at the end `stop`."""

    def __init__(
        self,
        services: Sequence[Service],
        environ: Mapping[str, str],
        log_dir: Path,
        tell: Tell,
        limits: Limits = Limits(),
    ) -> None:
        self.addresses: dict[str, str] = {}
        self._members = [_Member(service, log_dir) for service in services]
        self._environ = environ
        self._log_dir = log_dir
        self._tell = tell
        self._limits = limits
        self._announced = {service.name: asyncio.Event() for service in services}

    async def start(self) -> None:
        """Start all and return when all are healthy. Raises ServiceFailed for the first that is
        not, and stops the others; ServiceFailed too when there is no folder for their logs."""
        await asyncio.to_thread(make_log_folder, self._log_dir)
        try:
            async with asyncio.TaskGroup() as tasks:
                for member in self._members:
                    tasks.create_task(self._bring_up(member))
        except BaseExceptionGroup as group:
            await self.stop()
            raise group.exceptions[0] from None
        except BaseException:
            await self.stop()
            raise

    async def run(self) -> None:
        """Start again what dies, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for member in self._members:
                tasks.create_task(self._keep(member))

    async def stop(self) -> None:
        """Stop all, the last first, each when the one before it is gone."""
        for member in reversed(self._members):
            await member.stop(self._limits.grace_s)

    def kill(self) -> None:
        """End all at once, for whoever cannot wait for `stop`."""
        for member in self._members:
            member.signal(signal.SIGKILL)

    async def _bring_up(self, member: _Member) -> None:
        service = member.service
        for name in service.after:
            await self._announced[name].wait()
        environ = self._variables(service)
        try:
            await self._launch(member, environ)
        except ServiceEnded:
            # Somebody may have taken what was free when we looked, a port.
            now = self._variables(service)
            if service.name in self.addresses or now == environ:
                raise
            await self._launch(member, now)

    def _variables(self, service: Service) -> dict[str, str]:
        """What the service is started with now."""
        environ = {**self._environ, **service.env(self.addresses)}
        if service.name in self.addresses and service.port_variable:
            environ[service.port_variable] = self.addresses[service.name].rpartition(":")[2]
        return environ

    async def _launch(self, member: _Member, environ: Mapping[str, str]) -> None:
        service = member.service
        clock = asyncio.get_running_loop().time
        begun = clock()
        self._tell(service.name, "starting")
        await member.launch(environ)
        try:
            async with asyncio.timeout(self._limits.start_s):
                address = await member.address()
                self.addresses[service.name] = address
                self._announced[service.name].set()
                await member.healthy(address)
        except TimeoutError:
            raise await member.failure(f"is not ready after {self._limits.start_s:g} s") from None
        self._tell(service.name, f"ready on {address} in {clock() - begun:.1f} s")

    async def _keep(self, member: _Member) -> None:
        deaths = 0
        clock = asyncio.get_running_loop().time
        while True:
            since = clock()
            how = await member.ended()
            deaths = 0 if clock() - since > self._limits.stable_s else deaths
            pause_s = min(self._limits.longest_pause_s, self._limits.first_pause_s * 2**deaths)
            deaths += 1
            self._tell(member.service.name, f"ended ({how}): starting it again in {pause_s:g} s")
            await asyncio.sleep(pause_s)
            try:
                await self._bring_up(member)
            except (ServiceFailed, OSError) as error:  # its log may be what cannot be written
                what = error.message if isinstance(error, ServiceFailed) else str(error)
                self._tell(member.service.name, what)
                await member.stop(self._limits.grace_s)


class _Member:
    """One service: its process, if there is one, and its log file."""

    def __init__(self, service: Service, log_dir: Path) -> None:
        self.service = service
        self.log = log_dir / f"{service.name}.log"
        self._child: ChildProcess | None = None
        self._fresh = True
        self._read_from = 0

    async def launch(self, environ: Mapping[str, str]) -> None:
        """Start the process; its first start empties the log."""
        await asyncio.to_thread(self._spawn, environ)

    def _spawn(self, environ: Mapping[str, str]) -> None:
        with self.log.open("wb" if self._fresh else "ab") as log:
            self._fresh = False
            self._read_from = log.tell()
            self._child = ChildProcess(self.service.command, stdout=log, stderr=log, env=environ)

    async def address(self) -> str:
        """Wait for the line that says where it listens. Raises ServiceFailed when it ends first."""
        while True:
            await self._check_alive()
            found = await asyncio.to_thread(self._look_for_address)
            if found is not None:
                return found
            await asyncio.sleep(_POLL_S)

    def _look_for_address(self) -> str | None:
        assert self._child is not None  # noqa: S101 - it was launched
        with self.log.open("rb") as log:
            log.seek(self._read_from)
            for line in log:
                if not line.endswith(b"\n"):  # still being written
                    return None
                self._read_from += len(line)
                if address := ready_address(line, self._child.pid):
                    return address
        return None

    async def healthy(self, address: str) -> None:
        """Wait until it is well, or well enough. Raises ServiceFailed when it ends first."""
        path = self.service.health
        while path is not None and not await asyncio.to_thread(_answers, address, path):
            await self._check_alive()
            await asyncio.sleep(_POLL_S)

    async def ended(self) -> str:
        """Wait for the end of the process, and say how it ended."""
        while True:  # a look now and then costs less than a thread that waits
            if self._child is None or self._child.returncode is not None:
                return "never started" if self._child is None else _how(self._child.returncode)
            await asyncio.sleep(4 * _POLL_S)

    async def stop(self, grace_s: float) -> None:
        if self._child is not None:
            await asyncio.to_thread(self._child.stop, grace_s)

    def signal(self, number: int) -> None:
        if self._child is not None:
            self._child.send_signal(number)

    async def failure(self, what: str, kind: type[ServiceFailed] = ServiceFailed) -> ServiceFailed:
        """An error that shows what the service itself said last."""
        lines = await asyncio.to_thread(last_lines, self.log)
        said = "".join(f"\n  | {line}" for line in lines) or " (it said nothing)"
        return kind("service_failed", f"{self.service.name} {what}. The end of {self.log}:{said}")

    async def _check_alive(self) -> None:
        if self._child is not None and self._child.returncode is not None:
            raise await self.failure(f"ended ({_how(self._child.returncode)})", ServiceEnded)


def make_log_folder(folder: Path) -> None:
    """Raises ServiceFailed where there is none, and none can be made, to write to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ServiceFailed(
            "cannot_write",
            f"cannot make the folder {folder} for logs, or write there: {error.strerror}; "
            "choose another --log-dir",
        ) from error


def ready_address(line: bytes, pid: int | None = None) -> str | None:
    """The address in a service's `ready` line, if process `pid` wrote it (None: whichever); None
    for every other line."""
    if b'"ready"' not in line:  # most lines, at no cost
        return None
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict) or fields.get("event") != "ready":
        return None
    if pid is not None and fields.get("pid") != pid:  # another's, that shares the log
        return None
    address = fields.get("http")
    return address if isinstance(address, str) else None


def last_lines(log: Path, count: int = _TAIL_LINES) -> list[str]:
    """The last lines of a log that may be long or missing, without control characters."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
        return [re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", line) for line in lines[-count:]]
    return []


def _how(returncode: int | None) -> str:
    if returncode is None or returncode >= 0:
        return f"exit status {returncode}"
    return f"signal {signal.Signals(-returncode).name}"


def _answers(address: str, path: str) -> bool:
    host, _, port = address.rpartition(":")
    link = http.client.HTTPConnection(host, int(port), timeout=_PROBE_TIMEOUT_S)
    try:
        link.request("GET", path)
        response = link.getresponse()
        if response.status == 200:
            return True
        return set(json.loads(response.read())["reasons"]) <= _WELL_ENOUGH
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return False
    finally:
        link.close()
