"""redis-py on whatever the URL leads to: one server, or any nodes of a cluster.

redis-py retries by itself, in several layers and silently: a plain XADD may be written twice, and a
connection that died silently keeps its caller for most of a minute. Here its retries are off, and
commands that may be repeated are repeated in one place, within a known time (docs/REDIS.md).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from redis import exceptions
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands import AsyncCoreCommands

from firstword.errors import FirstwordError

PATIENCE_S: Final = 2.5
"""No attempt begins later than this: fast failures get several attempts, a timeout one more."""

RULE: Final = (
    "a Redis URL is like redis://host:6379, with TLS rediss://user:password@host:6379; in a "
    "password write / # ? @ as %2F %23 %3F %40"
)

_AWAY = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ClusterError,
    exceptions.RedisClusterException,  # is no RedisError
    exceptions.ReadOnlyError,
    exceptions.TryAgainError,
    OSError,
)


class Address:
    """Where the URL leads. A cluster may be named by several nodes, `redis://a:6379,b:6379`.

    Raises ValueError if it is not a Redis URL, without quoting it: it may hold a password.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            login, at, hosts = parts.netloc.rpartition("@")
            self.urls = [
                urlunsplit(parts._replace(netloc=f"{login}{at}{host}")) for host in hosts.split(",")
            ]
            self._parsed = [parse_url(each) for each in self.urls]
        except ValueError:
            raise ValueError(RULE) from None
        self._cluster: bool | None = None
        self._asking = asyncio.Lock()

    def nodes(self) -> list[ClusterNode]:
        """The nodes that are named, for a cluster client to begin with."""
        return [ClusterNode(p.get("host", "127.0.0.1"), p.get("port", 6379)) for p in self._parsed]

    async def is_cluster(self, timeout_s: float) -> bool:
        """Ask the first node that answers; the answer is kept."""
        async with self._asking:
            if self._cluster is None:
                self._cluster = await self._ask(timeout_s)
        return self._cluster

    async def _ask(self, timeout_s: float) -> bool:
        found = None
        for url in self.urls:
            try:
                found = await _is_cluster_node(url, timeout_s)
                break
            except _AWAY as error:
                away = error
        if found is None:
            raise away
        if found and any(parsed.get("db") for parsed in self._parsed):
            raise FirstwordError(
                "bad_url", "a cluster has database 0 only: leave the database out of the URL"
            )
        if not found and len(self.urls) > 1:
            raise FirstwordError(
                "bad_url",
                "the URL names several servers, but the one that answers is no node of a cluster: "
                "give the one to use",
            )
        return found


def check_url(url: str) -> None:
    """Raises ValueError if it is no Redis URL."""
    Address(url)


def check_url_if_given(url: str) -> None:
    """The same where an empty one has a meaning of its own, as to `Firstword`."""
    if url:
        check_url(url)


class Client(AsyncCoreCommands):
    """Redis commands with at most `size` of them on the way (to each node of a cluster).

    A call waits for a free connection; it never fails for want of one. `retries` is for commands
    that may run twice. Raises redis-py's errors or OSError; on a cluster also others, see docs.
    """

    _event_dispatcher: Any = None  # redis-py's command classes ask for it and use none here

    def __init__(self, address: Address, *, size: int, timeout_s: float, retries: int) -> None:
        self._address = address
        self._size = size
        self._timeout_s = timeout_s
        self._retries = retries
        self._client: Any = None
        self._free = asyncio.Semaphore(size)
        self._connecting = asyncio.Lock()

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run one command; redis-py's methods for commands all come here."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + PATIENCE_S
        failures = 0
        cancels = _cancels()
        async with self._free:
            while True:
                try:
                    reply = await self._attempt(args, options)
                    _obey(cancels)
                    return reply
                except _AWAY:
                    _obey(cancels)
                    failures += 1
                    if failures > self._retries or clock() > deadline:
                        raise
                await asyncio.sleep(0.01 * 4**failures)

    async def everywhere(self, *args: Any) -> list[Any]:
        """The replies of the server, or of every primary of the cluster."""
        client = await self._connected()
        if not isinstance(client, RedisCluster):
            return [await self.execute_command(*args)]
        await client.initialize()
        nodes = client.get_primaries()
        return [await self.execute_command(*args, target_nodes=node) for node in nodes]

    async def aclose(self) -> None:
        """Close every connection; commands on the way end with an error."""
        client, self._client = self._client, None
        if client is None:
            return
        await client.aclose()
        if isinstance(client, RedisCluster):
            # aclose() does nothing while the client waits to look at the cluster again.
            await client.nodes_manager.aclose()
            await client.nodes_manager.aclose("startup_nodes")

    async def _attempt(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        client = await self._connected()
        if isinstance(client, RedisCluster):
            await client.initialize()  # else the first commands go to any node
            if args[0] == "XREAD":
                # Else redis-py asks another node first where the keys stand in the command.
                node = client.get_node_from_key(options["keys"][0])
                return await client.execute_command(*args, **options, target_nodes=node)
            return await client.execute_command(*args, **options)
        try:
            return await client.execute_command(*args, **options)
        except exceptions.ReadOnlyError:
            # A primary that became a replica keeps its connections: only new ones find the other.
            await client.connection_pool.disconnect(inuse_connections=False)
            raise

    async def _connected(self) -> Any:
        if self._client is None:
            async with self._connecting:
                if self._client is None:
                    cluster = await self._address.is_cluster(self._timeout_s)
                    self._client = self._make(cluster)
        return self._client

    def _make(self, cluster: bool) -> Any:
        options = {**_options(self._timeout_s), "max_connections": self._size}
        first = self._address.urls[0]
        if not cluster:
            return Redis.from_pool(ConnectionPool.from_url(first, **options))
        # A look at the cluster takes connections too, and cannot wait for one.
        options["max_connections"] += 8
        # Else every fifth redirection closes the connections of all who wait for an answer.
        options["reinitialize_steps"] = 0
        return RedisCluster.from_url(first, startup_nodes=self._address.nodes(), **options)


def _cancels() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _obey(cancels: int) -> None:
    """On Python 3.11 redis-py can swallow a cancel that comes while it waits: end here then."""
    if _cancels() > cancels:
        raise asyncio.CancelledError


def _options(timeout_s: float) -> dict[str, Any]:
    return {
        "protocol": 2,
        "decode_responses": False,
        "socket_keepalive": True,
        "socket_connect_timeout": timeout_s,
        "socket_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
        # Else every new connection looks up redis-py's version on the disk, in the event loop.
        "driver_info": None,
    }


async def _is_cluster_node(url: str, timeout_s: float) -> bool:
    # Without its database, which a cluster would refuse before it says what it is.
    client = Redis.from_url(urlunsplit(urlsplit(url)._replace(path="")), **_options(timeout_s))
    try:
        await client.execute_command("CLUSTER INFO")  # type: ignore[no-untyped-call]
    except exceptions.ResponseError:
        return False  # cluster mode is off, or a proxy hides it
    finally:
        # redis-py closes in tasks of its own: a cancel that comes now would leave the socket open.
        await asyncio.shield(client.aclose())
    return True
