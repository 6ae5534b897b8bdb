"""What is found of a server from what it says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from firstword.server_check import Facts, Finding, findings, may_evict, refuses_writes

GOOD = {
    "redis_version": "7.2.4",
    "valkey_version": "9.1.2",
    "maxmemory": 268_435_456,
    "maxmemory_policy": "noeviction",
    "aof_enabled": 1,
}


def facts(config: dict[str, str] | None = None, /, **info: Any) -> Facts:
    return Facts({k: v for k, v in {**GOOD, **info}.items() if v is not None}, config or {})


def found(name: str, *servers: Facts) -> Finding:
    [finding] = [each for each in findings(servers) if each.name == name]
    return finding


def test_a_server_as_it_should_be() -> None:
    assert {each.level for each in findings([facts()])} == {"ok"}
    assert not may_evict([facts()])


@pytest.mark.parametrize(
    ("info", "level"),
    [
        ({"valkey_version": None, "redis_version": "6.0.16"}, "fatal"),
        ({"valkey_version": None, "redis_version": "6.2.0"}, "ok"),
        ({"valkey_version": None, "redis_version": "10.0.1"}, "ok"),
        ({"valkey_version": "7.1.9"}, "fatal"),
        ({"valkey_version": "7.2.5"}, "ok"),
        ({"valkey_version": None, "redis_version": None}, "note"),
        ({"valkey_version": None, "redis_version": "unstable"}, "note"),
    ],
)
def test_the_version(info: dict[str, Any], level: str) -> None:
    finding = found("server_version", facts(**info))
    assert finding.level == level
    assert bool(finding.remedy) == (level != "ok")


@pytest.mark.parametrize(
    ("policy", "level", "says"),
    [
        ("noeviction", "ok", "noeviction"),
        ("volatile-lru", "warning", "sessions without a gateway"),
        ("allkeys-lru", "warning", "sessions that are being spoken"),
        (None, "note", "does not say"),
    ],
)
def test_the_eviction_policy(policy: str | None, level: str, says: str) -> None:
    server = facts(maxmemory_policy=policy)
    finding = found("eviction_policy", server)
    assert finding.level == level
    assert says in finding.message
    assert ("noeviction" in finding.remedy) == (level != "ok")
    assert may_evict([server]) == (level == "warning")


def test_the_policy_that_only_config_tells() -> None:
    server = facts({"maxmemory-policy": "allkeys-lfu"}, maxmemory_policy=None)
    assert found("eviction_policy", server).level == "warning"
    assert may_evict([server])


@pytest.mark.parametrize(("limit", "level"), [(1_000_000, "ok"), (0, "note"), (None, "note")])
def test_the_memory_limit(limit: int | None, level: str) -> None:
    assert found("memory_limit", facts(maxmemory=limit)).level == level


@pytest.mark.parametrize(
    ("used", "uncounted", "level", "says"),
    [
        (1_250_000, 0, "ok", "1.2 of 100.0 MB are used"),
        (79_999_999, 0, "ok", "80.0 of 100.0 MB are used"),
        (80_000_000, 0, "warning", "80.0 of 100.0 MB are used: from 80% on"),
        (100_000_000, 0, "warning", "new sessions are refused"),
        (101_000_000, 1_000_000, "warning", "new sessions are refused"),
        (101_000_000, 0, "warning", "the server is full, 101.0 of 100.0 MB are used: it refuses"),
    ],
)
def test_how_much_of_it_is_used(used: int, uncounted: int, level: str, says: str) -> None:
    server = facts(
        maxmemory=100_000_000, used_memory=used, mem_not_counted_for_evict=uncounted or None
    )
    finding = found("memory_limit", server)
    assert finding.level == level
    assert says in finding.message
    assert ("CONFIG SET maxmemory" in finding.remedy) == (level != "ok")
    assert refuses_writes(server.info) == ("is full" in finding.message)


def test_a_server_without_a_limit_refuses_nothing() -> None:
    assert not refuses_writes({"maxmemory": 0, "used_memory": 10**12})
    assert not refuses_writes({})


@pytest.mark.parametrize(
    ("config", "aof", "says"),
    [
        ({"save": ""}, 1, "append-only file"),
        ({"save": ""}, 0, "keeps nothing on disk"),
        ({"save": "3600 1"}, 0, "snapshots only"),
        ({}, 0, "as far as it says"),
        ({"save": ""}, None, "as far as it says"),
    ],
)
def test_persistence_is_never_more_than_a_note(
    config: dict[str, str], aof: int | None, says: str
) -> None:
    finding = found("persistence", facts(config, aof_enabled=aof))
    assert finding.level == ("ok" if aof else "note")
    assert says in finding.message


def test_of_a_cluster_the_worst_node_counts() -> None:
    bad = facts(maxmemory_policy="allkeys-lru")
    assert found("eviction_policy", facts(), bad, facts()).level == "warning"
    assert may_evict([facts(), bad])
