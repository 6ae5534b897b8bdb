"""A cluster of six nodes on this machine, three of them replicas, in about two seconds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain, pairwise
from types import TracebackType
from typing import Any, Self

import redis
from redis.crc import key_slot

from firstword.embedded import DEFAULT_MAX_MEMORY_BYTES, EmbeddedServer
from tests.support import eventually_sync

SLOTS = 16_384
SHARDS = 3
NODE_TIMEOUT_MS = 1000
"""A node that is silent for this long counts as dead; its replica takes over a second later."""

TAKE_OVER_S = 30.0

_ARGUMENTS = (
    *("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT_MS)),
    *("--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"),
    *("--repl-ping-replica-period", "1"),  # Redis 7 hides a replica that has heard nothing yet
)


class EmbeddedCluster:
    """Three primaries with a replica each, from the embedded server's binary or `binary`.

    Use it with `with`; the methods block. `url` names all nodes, so that it leads to the cluster
    whichever of them is gone.
    """

    def __init__(
        self, binary: str | None = None, *, max_memory_bytes: int = DEFAULT_MAX_MEMORY_BYTES
    ) -> None:
        self._options: dict[str, Any] = {"binary": binary, "max_memory_bytes": max_memory_bytes}
        self._resources = ExitStack()
        self.nodes: list[EmbeddedServer] = []

    @property
    def url(self) -> str:
        """Every node's address, as for FIRSTWORD_REDIS_URL."""
        return "redis://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def __enter__(self) -> Self:
        try:
            for _ in range(2 * SHARDS):
                server = EmbeddedServer(**self._options, extra_args=_ARGUMENTS)
                self.nodes.append(self._resources.enter_context(server))
            self._form()
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.close()

    # -- asking -----------------------------------------------------------------------------------

    def primary_of(self, key: str) -> EmbeddedServer:
        """The node that serves a key now."""
        slot = key_slot(key.encode())
        return next(n for n in self.primaries() if slot in self.slots_of(n))

    def primaries(self) -> list[EmbeddedServer]:
        """The nodes that run and serve slots, in their own words."""
        return [n for n in self.nodes if n.running and self.slots_of(n)]

    def command(self, node: EmbeddedServer, *words: str | int) -> Any:
        """One command to one node, wherever the keys are."""
        with redis.Redis(port=node.port, decode_responses=True) as link:
            return link.execute_command(*words)

    def flush(self) -> None:
        """Remove every key and script."""
        for node in self.primaries():
            self.command(node, "FLUSHALL")
            self.command(node, "SCRIPT FLUSH")

    def slots_of(self, node: EmbeddedServer) -> range:
        """What a node says it serves."""
        for seen in self._seen_by(node):
            if "myself" in seen["flags"] and "master" in seen["flags"] and seen["slots"]:
                first, last = seen["slots"][0]
                return range(int(first), int(last) + 1)
        return range(0)

    def _seen_by(self, node: EmbeddedServer) -> list[dict[str, Any]]:
        """The nodes that a node knows, itself among them."""
        return list(self.command(node, "CLUSTER NODES").values())

    # -- losing nodes -----------------------------------------------------------------------------

    def cut_off_replica(self, primary: EmbeddedServer) -> None:
        """Its replica gets nothing more, and would take over with what it has now."""
        self.command(primary, "ACL SETUSER", "default", "-psync", "-sync")
        self.command(primary, "CLIENT KILL", "TYPE", "replica")

    def fail_over(self, primary: EmbeddedServer) -> None:
        """kill -9; returns when its replica has taken over."""
        primary.kill()
        eventually_sync(lambda: len(self.primaries()) == SHARDS, "a replica took over", TAKE_OVER_S)

    def restore(self) -> None:
        """Start the nodes that are gone, as replicas; returns when the cluster is whole."""
        for node in self.nodes:
            if not node.running:
                node.restart()
        self._all("every node sees a whole cluster again", self._whole, TAKE_OVER_S)

    # -- forming ----------------------------------------------------------------------------------

    def _form(self) -> None:
        primaries, replicas = self.nodes[:SHARDS], self.nodes[SHARDS:]
        bounds = [SLOTS * i // SHARDS for i in range(SHARDS + 1)]
        for epoch, node in enumerate(self.nodes, 1):
            self.command(node, "CLUSTER SET-CONFIG-EPOCH", epoch)
        for node, (first, after) in zip(primaries, pairwise(bounds), strict=True):
            self.command(node, "CLUSTER ADDSLOTSRANGE", first, after - 1)
        for node in self.nodes[1:]:
            self.command(node, "CLUSTER MEET", "127.0.0.1", self.nodes[0].port)
        self._all("every node knows the others", lambda n: len(self._seen_by(n)) == 2 * SHARDS)
        for node, primary in zip(replicas, primaries, strict=True):
            self.command(node, "CLUSTER REPLICATE", self.command(primary, "CLUSTER MYID"))
        self._all("every node sees a whole cluster", self._whole)

    def _whole(self, node: EmbeddedServer) -> bool:
        info = self.command(node, "INFO", "replication")
        linked = info["role"] == "master" or info["master_link_status"] == "up"
        state = self.command(node, "CLUSTER INFO")["cluster_state"] == "ok"
        shards = self.command(node, "CLUSTER SLOTS")  # each: first, last, primary, replicas …
        pairs = [[at[1] for at in shard[2:]] for shard in shards]
        paired = len(pairs) == SHARDS and all(len(pair) == 2 for pair in pairs)
        everyone = sorted(chain(*pairs)) == sorted(each.port for each in self.nodes)
        return linked and state and paired and everyone

    def _all(
        self, description: str, condition: Callable[[EmbeddedServer], bool], timeout: float = 10
    ) -> None:
        eventually_sync(lambda: all(map(condition, self.nodes)), description, timeout)
