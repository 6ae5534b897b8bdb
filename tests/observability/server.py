"""A real Prometheus for as long as a test, with the deployment's rules, made quicker."""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml

from firstword.child import ChildProcess
from tests.observability.promtool import FOLDER, RULES, program, quicker
from tests.support import eventually

START_S = 30.0


class Prometheus:
    """Scrapes once a second. `targets`: service -> host:port, or several with blanks between.
    `factor`: by how much rules' windows and patience are shortened."""

    def __init__(self, folder: Path, targets: Mapping[str, str], *, factor: float) -> None:
        self._folder = folder
        self._targets = targets
        self._factor = factor
        self._child: ChildProcess | None = None
        self._client: aiohttp.ClientSession | None = None
        self._url = ""

    async def __aenter__(self) -> Self:
        port = _free_port()
        self._url = f"http://127.0.0.1:{port}/api/v1"
        self._configure()
        command = [
            program("prometheus"),
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--enable-feature=exemplar-storage",
        ]
        with (self._folder / "prometheus.log").open("wb") as log:
            self._child = await asyncio.to_thread(ChildProcess, command, stdout=log, stderr=log)
        self._client = aiohttp.ClientSession()
        await eventually(self._answers, "Prometheus answers", START_S)
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            await self._client.close()
        if self._child is not None:
            await asyncio.to_thread(self._child.kill)

    def _configure(self) -> None:
        (self._folder / "data").mkdir()
        for name in RULES:
            rules = (FOLDER / name).read_text(encoding="utf-8")
            (self._folder / name).write_text(quicker(rules, self._factor))
        config = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        config["global"]["evaluation_interval"] = "1s"
        [job] = config["scrape_configs"]
        job["static_configs"] = [
            {"targets": addresses.split(), "labels": {"service": service}}
            for service, addresses in self._targets.items()
        ]
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(config))

    async def _answers(self) -> bool:
        try:
            return bool(await self.values("up"))
        except (aiohttp.ClientError, KeyError):
            return False

    async def ask(self, path: str, **params: str) -> Any:
        """The data of an API's answer."""
        assert self._client is not None
        async with self._client.get(f"{self._url}/{path}", params=params) as response:
            return (await response.json())["data"]

    async def values(self, expr: str) -> list[float]:
        """What an expression says now, without what is not a number."""
        data = await self.ask("query", query=expr)
        found = data["result"]
        numbers = [float(each["value"][1]) for each in found] if found else []
        return [number for number in numbers if not math.isnan(number)]

    async def traces(self, expr: str) -> set[str]:
        """Ids of the traces that exemplars of these series lead to."""
        now = time.time()
        params = {"query": expr, "start": f"{now - 600}", "end": f"{now + 60}"}
        data = await self.ask("query_exemplars", **params)
        return {e["labels"]["trace_id"] for series in data for e in series["exemplars"]}

    async def firing(self) -> set[str]:
        """Names of the alerts that fire now."""
        data = await self.ask("alerts")
        return {a["labels"]["alertname"] for a in data["alerts"] if a["state"] == "firing"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
