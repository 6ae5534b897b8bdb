"""What a Redis server must be for Firstword, and what is wrong with one that is not.

Pure: goes by what the server says of itself (`Streams.server_facts`). `firstword doctor` prints the
findings, services log them when they start; a server that is too old is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["ok", "note", "warning", "fatal"]
_LEVELS: tuple[Level, ...] = ("ok", "note", "warning", "fatal")

SAFE_POLICY = "noeviction"
OLDEST_REDIS = (6, 2)
OLDEST_VALKEY = (7, 2)
FULL_SHARE = 0.8
"""From this share of its memory on, segmenters refuse new sessions, if not set otherwise."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What one server says: its `INFO`, and its `CONFIG GET` as far as it is allowed, if at all."""

    info: Mapping[str, Any]
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `remedy` says what to do, '' if there is nothing to do.

    `note` is worth knowing, `warning` may cost sessions, `fatal` cannot work.
    """

    name: str
    level: Level
    message: str
    remedy: str = ""


def findings(servers: Sequence[Facts]) -> list[Finding]:
    """What was found of a server, or of the primaries of a cluster: of each thing the worst."""
    looks = (_version, _eviction, _memory_limit, _persistence)
    return [max(map(look, servers), key=lambda f: _LEVELS.index(f.level)) for look in looks]


def may_evict(servers: Sequence[Facts]) -> bool:
    """Whether one of the servers may evict keys when it is full, as far as they say."""
    return any(_policy(facts) not in ("", SAFE_POLICY) for facts in servers)


def refuses_writes(info: Mapping[str, Any]) -> bool:
    """Whether a server whose `INFO memory` this is refuses to take anything: it has used up what it
    may, and found nothing that it may evict, as it looks for that before it answers."""
    limit = int(info.get("maxmemory", 0))
    counted = int(info.get("used_memory", 0)) - int(info.get("mem_not_counted_for_evict", 0))
    return bool(limit) and counted > limit


def _version(facts: Facts) -> Finding:
    is_valkey = "valkey_version" in facts.info
    product, oldest = ("Valkey", OLDEST_VALKEY) if is_valkey else ("Redis", OLDEST_REDIS)
    raw = str(facts.info.get("valkey_version" if is_valkey else "redis_version", ""))
    numbers = re.match(r"(\d+)\.(\d+)", raw)
    if numbers is None:
        told = "the server does not say which version it is"
        return Finding("server_version", "note", told, "use Redis 6.2, Valkey 7.2 or later")
    if (int(numbers[1]), int(numbers[2])) < oldest:
        told = f"the server is {product} {raw}, which lacks commands that Firstword needs"
        return Finding("server_version", "fatal", told, "use Redis 6.2, Valkey 7.2 or later")
    return Finding("server_version", "ok", f"{product} {raw}")


def _policy(facts: Facts) -> str:
    return str(facts.info.get("maxmemory_policy") or facts.config.get("maxmemory-policy") or "")


def _eviction(facts: Facts) -> Finding:
    policy = _policy(facts)
    if not policy:
        told = "the server does not say which keys it evicts when it is full"
        return Finding("eviction_policy", "note", told, f"see that it is {SAFE_POLICY}")
    if policy == SAFE_POLICY:
        return Finding("eviction_policy", "ok", policy)
    remedy = (
        f"set maxmemory-policy {SAFE_POLICY}; where it is fixed, keep the data limit far above "
        "need and watch evicted_keys"
    )
    if policy.startswith("volatile-"):
        told = (
            f"the server is set to {policy}: when it is full it deletes keys that have an expiry, "
            "which are those of sessions without a gateway, and their state and text are lost"
        )
        return Finding("eviction_policy", "warning", told, remedy)
    told = (
        f"the server is set to {policy}: when it is full it deletes sessions that are being "
        "spoken, and what waits to be spoken"
    )
    return Finding("eviction_policy", "warning", told, remedy)


def _memory_limit(facts: Facts) -> Finding:
    if "maxmemory" not in facts.info:
        return Finding("memory_limit", "note", "the server does not say how much memory it may use")
    limit, used = int(facts.info["maxmemory"]), int(facts.info.get("used_memory", 0))
    share = f"{used / 1e6:,.1f} of {limit / 1e6:,.1f} MB are used"
    remedy = (
        "give it more memory: `firstword redis CONFIG SET maxmemory BYTES`, and in its "
        "configuration; more in the entry FirstwordRedisFull of docs/RUNBOOK.md"
    )
    if refuses_writes(facts.info):
        told = f"the server is full, {share}: it refuses all text, and speaks what it took before"
        return Finding("memory_limit", "warning", told, remedy)
    if limit and used >= FULL_SHARE * limit:
        told = f"{share}: from {FULL_SHARE:.0%} on (FIRSTWORD_MEMORY_LIMIT_SHARE) new sessions are "
        return Finding("memory_limit", "warning", f"{told}refused", remedy)
    if limit:
        return Finding("memory_limit", "ok", share)
    told = (
        "the server has no memory limit: new sessions are never refused before it is out of memory"
    )
    return Finding("memory_limit", "note", told, "set maxmemory below what the machine can spare")


def _persistence(facts: Facts) -> Finding:
    if facts.info.get("aof_enabled") == 1:
        return Finding("persistence", "ok", "append-only file")
    remedy = "set appendonly yes if publishers do not use the client, which publishes again"
    if facts.config.get("save"):
        told = "the server keeps snapshots only: a restart loses what came since the last one"
        return Finding("persistence", "note", told, remedy)
    if "aof_enabled" not in facts.info or "save" not in facts.config:
        told = (
            "the server keeps no append-only file, as far as it says; a restart may lose what waits"
        )
        return Finding("persistence", "note", told, remedy)
    told = "the server keeps nothing on disk: a restart loses what waits to be spoken"
    return Finding("persistence", "note", told, remedy)
