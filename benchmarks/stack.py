"""The path as it runs: a server and the services as processes, with a tone for a voice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine
from benchmarks.figures import Usage
from firstword.embedded import EmbeddedServer
from firstword.supervisor import Service, Supervisor

ROOT = Path(__file__).resolve().parent.parent
RETENTION_S = 15
"""Short, so that audio is trimmed during a run as it is in a long one."""
MAX_MEMORY_BYTES = 1 << 30
MS_PER_CHARACTER = 60
"""Audio per character, as much as Kokoro-82M makes."""


@dataclass(frozen=True, slots=True)
class Running:
    """A running path."""

    url: str
    addresses: Mapping[str, str]
    pids: Mapping[str, int]

    def usage(self) -> dict[str, Usage]:
        """By process; this one is `benchmark`."""
        return {name: machine.usage(pid) for name, pid in self.pids.items()}

    async def metric(self, service: str, name: str) -> float:
        """The value of a metric without labels, as the service tells it now."""
        text = await asyncio.to_thread(_get, f"http://{self.addresses[service]}/metrics")
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        if found is None:
            raise KeyError(f"{service} has no metric {name}")
        return float(found[1])


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Running]:
    """Everything started, with default settings but for what stands above; stopped at the end."""
    server = EmbeddedServer(max_memory_bytes=MAX_MEMORY_BYTES)
    with tempfile.TemporaryDirectory(prefix="firstword-bench-") as folder:
        async with server:
            services = Supervisor(_services(), _environ(server.url), Path(folder), _quiet)
            await services.start()
            try:
                names = ("segmenter", "tts_gateway", "inference")
                pids = {name: _pid(Path(folder, f"{name}.log")) for name in names}
                everyone = pids | {"server": server.pid, "benchmark": os.getpid()}
                yield Running(server.url, services.addresses, everyone)
            finally:
                await services.stop()


def _services() -> list[Service]:
    def upstream(addresses: Mapping[str, str]) -> Mapping[str, str]:
        path = "invocations-bidirectional-stream"
        return {"FIRSTWORD_UPSTREAM": f"ws://{addresses['inference']}/{path}"}

    python = (sys.executable, "-m")
    return [
        Service("inference", (*python, "tests.doubles.tone_inference"), health="/ping"),
        Service(
            "tts_gateway", (*python, "services.tts_gateway"), after=("inference",), env=upstream
        ),
        Service("segmenter", (*python, "services.segmenter")),
    ]


def _environ(url: str) -> dict[str, str]:
    """Nothing of the user's own settings: a figure stands for the defaults."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("FIRSTWORD_")}
    ports = {f"FIRSTWORD_{name}_PORT": "0" for name in ("INFERENCE", "GATEWAY", "SEGMENTER")}
    return {
        **inherited,
        **ports,
        "PYTHONPATH": str(ROOT),  # the tone is part of the tests, which are not installed
        "FIRSTWORD_REDIS_URL": url,
        "FIRSTWORD_AUDIO_RETENTION_S": str(RETENTION_S),
        "FIRSTWORD_TONE_MS_PER_CHAR": str(MS_PER_CHARACTER),
    }


def _pid(log: Path) -> int:
    """The process that wrote this log: its `ready` line says."""
    for line in log.read_text().splitlines():
        if '"ready"' in line:
            return int(json.loads(line)["pid"])
    raise LookupError(f"{log.name} has no ready line")


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as response:
        body: bytes = response.read()
    return body.decode()


def _quiet(_service: str, _what: str) -> None:
    """Starting and stopping is not worth a line here."""
