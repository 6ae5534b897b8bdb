"""The real services as real processes over real servers, and what can be done to them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

from firstword import keys
from firstword.child import ChildProcess
from firstword.streams import Streams
from firstword.supervisor import last_lines, ready_address
from tests.chaos.servers import Cluster, OneServer, Servers
from tests.chaos.talk import MS_PER_CHAR
from tests.chaos.wire import Wire
from tests.support import eventually

STAGES = ("inference", "segmenter", "gateway")
MODULES = {
    "inference": "tests.doubles.stamp_inference",
    "segmenter": "services.segmenter",
    "gateway": "services.tts_gateway",
    "agent": "services.agent",
}
ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0
STOP_S = 30.0
_FENCED = re.compile(rb"^firstword_fenced_commits_total\{.*\} (\d+)", re.MULTILINE)


@dataclass(eq=False)
class Worker:
    """One process of a service."""

    stage: str
    child: ChildProcess
    log: Path
    address: str = ""
    fenced: int = 0
    """Commits it was refused, as it told last."""

    @property
    def alive(self) -> bool:
        return self.child.returncode is None

    def signal(self, number: int) -> None:
        self.child.send_signal(number)


class Deployment:
    """So many of each service, started together. The folder is for logs."""

    def __init__(
        self, folder: Path, *, rtf: float = 0.6, cluster: bool = False, **counts: int
    ) -> None:
        self.counts = {stage: counts.get(stage, 1) for stage in STAGES}
        self.workers: list[Worker] = []
        self.servers: Servers = Cluster() if cluster else OneServer()
        self.streams: Streams
        self._folder = folder
        self._rtf = rtf
        self._resources = AsyncExitStack()
        self._started = 0
        self.wire = Wire(lambda: [worker.address for worker in self.of("inference")])

    async def __aenter__(self) -> Self:
        try:
            self._resources.push_async_callback(self._stop)
            await asyncio.to_thread(self.servers.start)
            self.streams = Streams(self.servers.url)
            self._resources.push_async_callback(self.streams.close)
            await self._resources.enter_async_context(self.wire)
            await self.complete()
        except BaseException:
            await self._resources.aclose()
            raise
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self._resources.aclose()

    async def _stop(self) -> None:
        for worker in self.workers:
            if worker.alive:
                await asyncio.to_thread(worker.child.kill)
        await asyncio.to_thread(self.servers.stop)

    def of(self, stage: str) -> list[Worker]:
        """The workers of a stage that live and are ready."""
        return [w for w in self.workers if w.stage == stage and w.alive and w.address]

    @property
    def server(self) -> OneServer:
        """The one server, where there is one."""
        if not isinstance(self.servers, OneServer):
            raise TypeError("this deployment runs on a cluster")
        return self.servers

    @property
    def cluster(self) -> Cluster:
        """The cluster, where there is one."""
        if not isinstance(self.servers, Cluster):
            raise TypeError("this deployment runs on one server")
        return self.servers

    def pids(self) -> list[int]:
        """Those of the servers and of every living worker."""
        return [*self.servers.pids(), *(worker.child.pid for worker in self._living())]

    # -- starting and stopping --------------------------------------------------------------------

    async def complete(self) -> None:
        """Start what is missing, all at once, and wait until it is ready."""
        missing = [
            stage
            for stage in STAGES
            for _ in range(self.counts[stage] - sum(w.stage == stage for w in self._living()))
        ]
        await asyncio.gather(*(self.start(stage) for stage in missing))

    async def start(self, stage: str, **environ: str) -> Worker:
        """One more worker of a stage, ready."""
        self._started += 1
        log = self._folder / f"{stage}-{self._started}.log"
        env = {**os.environ, **self._environ(), **environ}
        child = await asyncio.to_thread(_spawn, MODULES[stage], log, env)
        worker = Worker(stage, child, log)
        self.workers.append(worker)
        worker.address = await eventually(lambda: _address(worker), f"a {stage} is ready", START_S)
        return worker

    async def kill(self, *workers: Worker) -> None:
        """kill -9, all at once."""
        for worker in workers:
            worker.signal(signal.SIGKILL)
        for worker in workers:
            await asyncio.to_thread(worker.child.wait)

    async def terminate(self, worker: Worker) -> int:
        """SIGTERM, and wait until it has handed over; its exit status."""
        await self.note_fenced()
        worker.signal(signal.SIGTERM)
        status = await asyncio.to_thread(worker.child.wait, STOP_S)
        if status is None:
            raise AssertionError(f"a {worker.stage} did not end within {STOP_S:g} s of SIGTERM")
        return status

    def _living(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.alive]

    def _environ(self) -> dict[str, str]:
        upstream = f"ws://{self.wire.address}/invocations-bidirectional-stream"
        return {
            "FIRSTWORD_REDIS_URL": self.servers.url,
            "FIRSTWORD_UPSTREAM": upstream,
            "FIRSTWORD_SEGMENTER_PORT": "0",
            "FIRSTWORD_GATEWAY_PORT": "0",
            "FIRSTWORD_INFERENCE_PORT": "0",
            "FIRSTWORD_AGENT_PORT": "0",
            "FIRSTWORD_INFERENCE_WORKERS": "48",
            "FIRSTWORD_STAMP_RTF": str(self._rtf),
            "FIRSTWORD_STAMP_MS_PER_CHAR": str(MS_PER_CHAR),
        }

    # -- who owns what ----------------------------------------------------------------------------

    async def units(self, worker: Worker) -> set[str]:
        """The partitions or sessions that the server says are this worker's."""
        owners = await self.streams.state(keys.owners(worker.stage))
        mine = f"{worker.child.pid:x}-".encode()
        return {unit for unit, owner in owners.items() if owner.startswith(mine)}

    async def sessions(self, worker: Worker, names: list[str]) -> set[str]:
        """Those of the sessions that this worker's work is for; all of them for inference."""
        if worker.stage == "inference":
            return set(names)
        units = await self.units(worker)
        if worker.stage == "gateway":
            return units & set(names)
        count = await self.streams.partitions() or keys.DEFAULT_PARTITIONS
        return {name for name in names if str(keys.partition_of(name, count)) in units}

    async def name_of(self, worker: Worker) -> str:
        """What the worker calls itself in the ownership tables."""
        mine = f"{worker.child.pid:x}-".encode()
        found: list[bytes] = await self.streams.commands.zrange(keys.workers(worker.stage), 0, -1)
        return next(name.decode() for name in found if name.startswith(mine))

    async def note_fenced(self) -> int:
        """Ask the living how many commits they were refused; the sum of all so far."""
        living = [w for stage in ("segmenter", "gateway") for w in self.of(stage)]
        for worker in living:
            worker.fenced = await asyncio.to_thread(_fenced, worker.address)
        return sum(worker.fenced for worker in self.workers)


def _address(worker: Worker) -> str:
    """Where it listens; empty until it tells that it is ready."""
    if not worker.alive:
        told = "\n".join(last_lines(worker.log))
        raise RuntimeError(f"a {worker.stage} ended as it began:\n{told}")
    lines = worker.log.read_bytes().splitlines()
    return next((found for line in lines if (found := ready_address(line))), "")


def _spawn(module: str, log: Path, env: dict[str, str]) -> ChildProcess:
    with log.open("wb") as out:
        command = [sys.executable, "-m", module]
        return ChildProcess(command, stdout=out, stderr=out, env=env, cwd=ROOT)


def _fenced(address: str) -> int:
    with urlopen(f"http://{address}/metrics", timeout=5) as reply:
        body: Any = reply.read()
    return sum(int(float(found)) for found in _FENCED.findall(body))
