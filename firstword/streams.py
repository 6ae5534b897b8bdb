"""Redis Streams as Firstword uses them: append, commit, read. The one place that speaks Redis.

Three clients, because one set of options cannot serve all (docs/REDIS.md): scripts are idempotent
and may be repeated; a plain XADD may not, a silent repetition would write it twice; blocking reads
have connections and a timeout of their own.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from redis.exceptions import NoScriptError, OutOfMemoryError, RedisError, ResponseError

from firstword import codec, keys
from firstword.errors import FirstwordError
from firstword.ids import START
from firstword.messages import Audio, Ingress
from firstword.poison import Flood
from firstword.redis_client import Address, Client
from firstword.server_check import Facts, refuses_writes

BLOCK_MS = 1000
COMMAND_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 3.0
RETRIES = 3
CONNECTIONS = 64
DEAD_FIELD = b"x:"
"""Prefix of the names of a dead letter's original fields."""
UNOWNED_S = 86_400
"""How long audio-stream entries are kept that were written to a session without a gateway."""
DEAD_KEPT = 2000
DEAD_BYTES = 16_384
"""At most this much of one entry is kept: a broken publisher must not fill the server."""

_SCRIPTS = {
    file.name.removesuffix(".lua"): file.read_text(encoding="utf-8")
    for file in (files("firstword") / "lua").iterdir()
}
_HASHES = {
    name: hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
    for name, script in _SCRIPTS.items()
}


class Entry(NamedTuple):
    """One stream entry: its id and its fields."""

    id: str
    fields: Mapping[bytes, bytes]


class Streams:
    """A connection to the server or cluster at `url`; made when it is first used.

    All methods raise redis-py's errors or OSError as they come: shells catch Exception, log it
    and back off, since a cluster client raises both and more. `url` is `redis://` or `rediss://`;
    several nodes of a cluster may be named, `redis://a:6379,b:6379`. Raises ValueError if it is
    not such a URL.
    """

    def __init__(self, url: str, *, readers: int = 4096) -> None:
        self.url = url
        self.flood = Flood()
        """The dead letters written through this object."""
        address = Address(url)
        terms: dict[str, Any] = {"size": CONNECTIONS, "timeout_s": COMMAND_TIMEOUT_S}
        # Any: redis-py's stubs give every command the union of its sync, async and decoded replies.
        self._commands: Any = Client(address, **terms, retries=RETRIES)
        self._once: Any = Client(address, **terms, retries=0)
        self._blocking: Any = Client(address, size=readers, timeout_s=READ_TIMEOUT_S, retries=0)

    async def close(self) -> None:
        """Close every connection; blocked reads end with an error."""
        for client in (self._commands, self._once, self._blocking):
            await client.aclose()

    @property
    def commands(self) -> Any:
        """A redis-py client for commands that may run twice: it retries them by itself."""
        return self._commands

    async def script(self, name: str, key_list: list[str], args: Iterable[Any]) -> Any:
        """Run `lua/NAME.lua`. Every script changes nothing when it is run again."""
        return await _run(self._commands, name, key_list, args)

    # -- the deployment ---------------------------------------------------------------------------

    async def partitions(self) -> int | None:
        """How many ingress partitions this deployment has; None until a segmenter has started.

        Raises FirstwordError if what is recorded is no such number.
        """
        value = await self._commands.hget(keys.CONFIG, "partitions")
        return None if value is None else _partitions(value)

    async def record(self, partitions: int, **limits: int) -> int:
        """Record what a segmenter runs with, as far as nothing is recorded; returns the partition
        count that is. A server that is full takes it, too. Raises as `partitions`."""
        fields = {"partitions": partitions, **limits}
        words = [word for pair in fields.items() for word in pair]
        return _partitions(await self.script("record", [keys.CONFIG], words))

    async def limit_queues(self, max_queued: int) -> None:
        """Record how many segments of a session may wait, also on a server that is full: publishers
        wait when half of them do."""
        if await self._commands.hget(keys.CONFIG, "max_queued") == str(max_queued).encode():
            return
        try:
            await self._commands.hset(keys.CONFIG, "max_queued", max_queued)
        except OutOfMemoryError:
            await self._commands.hdel(keys.CONFIG, "max_queued")
            await self.script("record", [keys.CONFIG], ["max_queued", max_queued])

    async def workers(self, stage: str) -> int:
        """How many workers of a stage are alive: their lease is not over by the server's clock."""
        clocks = await self._commands.everywhere("TIME")
        now_ms = min(seconds * 1000 + micros // 1000 for seconds, micros in clocks)
        return int(await self._commands.zcount(keys.workers(stage), now_ms, "+inf"))

    async def agree_on_partitions(self, wanted: int) -> None:
        """Record the partition count, or refuse to start beside services that use another."""
        recorded = await self.record(wanted)
        if recorded != wanted:
            raise FirstwordError(
                "partitions_differ",
                f"this deployment has {recorded} ingress partitions and this service is set to "
                f"{wanted}: set FIRSTWORD_PARTITIONS={recorded}, or stop every service, let the "
                f"streams run empty and delete {keys.CONFIG}",
            )

    async def memory_share(self) -> float:
        """The share of its memory that the server uses, 0 to 1; a cluster's fullest node's."""
        found = await self._commands.everywhere("INFO", "memory")
        limited = [info for info in found if info.get("maxmemory")]
        return max((info["used_memory"] / info["maxmemory"] for info in limited), default=0.0)

    async def refuses_text(self) -> bool:
        """Whether the server, or a node of the cluster, is so full that it takes no text; False
        if it does not say."""
        return any(map(refuses_writes, await self._told("INFO", "memory")))

    async def evicted_keys(self) -> int:
        """Keys that the server, or a cluster's nodes, deleted to make room since they began."""
        found = await self._commands.everywhere("INFO", "stats")
        return sum(int(info.get("evicted_keys", 0)) for info in found)

    async def try_writing(self) -> None:
        """Write what changes nothing: raises where the server answers, but takes nothing now (its
        disk is full, its replicas are away, it is a replica itself)."""
        await self._commands.persist(keys.CONFIG)

    async def server_facts(self) -> list[Facts]:
        """What the server, or each primary of a cluster, says about itself, if we may ask."""
        infos = await self._told("INFO")
        settings: list[dict[str, str]] = []
        for name in ("maxmemory-policy", "save"):
            settings += await self._told("CONFIG GET", name)
        config = {name: value for each in settings for name, value in each.items()}
        return [Facts(info, config) for info in infos] or [Facts({}, config)]

    async def _told(self, *command: str) -> list[Any]:
        """The replies; none if we may not use the command, as on managed servers."""
        try:
            return list(await self._commands.everywhere(*command))
        except ResponseError:
            return []

    # -- appending --------------------------------------------------------------------------------

    async def publish(self, message: Ingress, partitions: int | None) -> str:
        """Append to the session's ingress stream (the door without a partition count).

        Returns the entry id. Never repeated by the client: a lost reply raises, and a message
        with `seq` may then be published again without harm.
        """
        stream = keys.ingress_of(message.session, partitions)
        return await self.append(stream, {"m": codec.pack(message, message.session)})

    async def append(self, stream: str, fields: Mapping[Any, Any]) -> str:
        """XADD once, without a retry."""
        entry_id = await self._once.xadd(stream, dict(fields))
        return str(entry_id.decode())

    async def move(self, stream: str, fields: Mapping[Any, Any], keep: int | None = None) -> None:
        """Append once, even to a full server: our own work must not stop at that.

        With `keep` the stream keeps about that many entries.
        """
        words: list[Any] = ["" if keep is None else keep]
        for name, value in fields.items():
            words += [name, value]
        await _run(self._once, "append", [stream], words)

    async def tell(self, session: str, event: Audio) -> None:
        """Append an event for a session's listeners; for those who do not own the session."""
        await self.move(keys.audio(session), {"m": codec.pack(event, session)})
        key_list = [keys.speech_state(session), keys.audio(session)]
        await self.script("expire_unowned", key_list, [UNOWNED_S])

    async def dead_letter(self, source: str, entry: Entry, reason: str) -> None:
        """Keep an unusable entry where an operator finds it (`firstword dead list`)."""
        size = sum(len(name) + len(value) for name, value in entry.fields.items())
        fields: dict[Any, Any] = {"source": source, "id": entry.id, "reason": reason}
        if size > DEAD_BYTES:
            fields["cut"] = size
        left = DEAD_BYTES
        for name, value in entry.fields.items():
            fields[DEAD_FIELD + name[:left]] = value[: max(0, left - len(name))]
            left = max(0, left - len(name) - len(value))
        await self.move(keys.DEAD, fields, DEAD_KEPT)

    async def ring(self, stage: str, worker: str, unit: str) -> None:
        """Tell the owner of a unit that it has something new. Harmless if lost or repeated."""
        await self.script("ring", [keys.bell(stage, worker)], [unit])

    # -- reading ----------------------------------------------------------------------------------

    async def wait(
        self, cursors: Mapping[str, str], count: int = 256, block_ms: int = BLOCK_MS
    ) -> dict[str, list[Entry]]:
        """Entries after each stream's cursor; blocks until there is one or the time is up.

        All streams must be in one slot. A cursor `$` means from now on.
        """
        block = max(1, min(block_ms, BLOCK_MS))
        reply = await self._blocking.xread(dict(cursors), count=count, block=block)
        return {stream.decode(): _entries(entries) for stream, entries in reply or []}

    async def range(self, stream: str, after: str, count: int = 256) -> list[Entry]:
        """Up to `count` entries after `after`, at once."""
        reply = await self._commands.xrange(stream, min=f"({after}", max="+", count=count)
        return _entries(reply)

    async def waiting_s(self, stream: str, after: str) -> float:
        """How long the oldest entry after `after` has waited, seconds; 0 if there is none."""
        return int(await self.script("waiting", [stream], [after])) / 1000

    async def last_id(self, stream: str) -> str:
        """Id of the last entry the stream ever had, `0-0` if it has none."""
        try:
            info = await self._commands.xinfo_stream(stream)
        except RedisError as error:
            if "no such key" in str(error).lower():
                return START
            raise
        last = info["last-generated-id"]
        return str(last.decode() if isinstance(last, bytes) else last)

    async def state(self, key: str) -> dict[str, bytes]:
        """The fields of a state hash; empty if there is none."""
        return _fields(await self._commands.hgetall(key))

    # -- owning a unit's state --------------------------------------------------------------------

    async def acquire(self, key_list: list[str], token: str, worker: str) -> dict[str, bytes]:
        """Install a fencing token in the state `key_list[0]`; returns what was committed there."""
        flat = await self.script("acquire", key_list, [token, worker])
        pairs = iter(flat)
        return {name.decode(): value for name, value in zip(pairs, pairs, strict=True)}

    async def vacate(
        self, key_list: list[str], token: str, position: str, expiry_s: list[int]
    ) -> bool:
        """Leave a state; False if `key_list[1]` has entries after `position` (if given)."""
        return bool(await self.script("vacate", key_list, [token, position, *expiry_s]))


async def _run(client: Any, name: str, key_list: list[str], args: Iterable[Any]) -> Any:
    words = [*key_list, *args]
    try:
        return await client.evalsha(_HASHES[name], len(key_list), *words)
    except NoScriptError:  # the server is new, or was restarted: EVAL loads the script
        return await client.eval(_SCRIPTS[name], len(key_list), *words)


def _partitions(recorded: bytes) -> int:
    if recorded.isdigit() and 1 <= int(recorded) <= keys.MAX_PARTITIONS:
        return int(recorded)
    raise FirstwordError(
        "partitions_differ",
        f"{keys.CONFIG} has {recorded[:20].decode(errors='replace')!r} for the number of ingress "
        f"partitions, which nobody of ours writes: `firstword redis HSET {keys.CONFIG} partitions "
        f"N`, with the N that the segmenters run with (FIRSTWORD_PARTITIONS, else "
        f"{keys.DEFAULT_PARTITIONS})",
    )


def _entries(reply: Any) -> list[Entry]:
    return [Entry(entry_id.decode(), fields or {}) for entry_id, fields in reply]


def _fields(reply: Mapping[Any, Any]) -> dict[str, bytes]:
    return {name.decode(): value for name, value in reply.items()}


async def pause(attempt: int) -> None:
    """Back off before trying again: 50 ms doubling to 2 s."""
    await asyncio.sleep(min(2.0, 0.05 * 2 ** min(attempt, 6)))
