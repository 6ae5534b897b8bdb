"""What the services of a chaos run talk to: one server, or a cluster of six nodes.

All methods block, as those of the embedded server do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from redis.crc import key_slot

from firstword import keys
from firstword.embedded import EmbeddedServer
from tests.support_cluster import SHARDS, EmbeddedCluster

MAX_MEMORY_BYTES = 2**30
"""For the audio of every session that spoke within the last two minutes."""


class Servers(Protocol):
    """Started and stopped with the deployment."""

    @property
    def url(self) -> str:
        """What services and clients connect to."""

    def start(self) -> object:
        """Return when it answers."""

    def stop(self) -> None:
        """Leave nothing behind."""

    def pids(self) -> list[int]:
        """Of the processes that run."""


class OneServer(EmbeddedServer):
    """A single server; what it answered for can be had again after a crash."""

    def __init__(self) -> None:
        super().__init__(append_only=True, max_memory_bytes=MAX_MEMORY_BYTES)

    def pids(self) -> list[int]:
        return [self.pid]


class Cluster(EmbeddedCluster):
    """Three masters with a replica each."""

    def __init__(self) -> None:
        super().__init__(max_memory_bytes=MAX_MEMORY_BYTES // SHARDS)

    def start(self) -> None:
        self.__enter__()

    def stop(self) -> None:
        self.__exit__(None, None, None)

    def sessions_on(self, master: EmbeddedServer, names: Iterable[str]) -> set[str]:
        """Those of the sessions that lie on a master's shard."""
        slots = self.slots_of(master)
        return {name for name in names if key_slot(keys.audio(name).encode()) in slots}

    def pids(self) -> list[int]:
        return [node.pid for node in self.nodes if node.running]
