"""`firstword doctor`: what is looked at, what is said of it, and the exit status."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import redis

from firstword import keys, runfile
from firstword.cli import main
from firstword.cli.doctor import in_words, look_at_upstream, partitions_agree, read_finding
from firstword.server_check import Finding
from tests.doubles.broken_container import BrokenContainer, Manners

Capture = pytest.CaptureFixture[str]
SERVER = ["redis_reachable", "server_version", "eviction_policy", "memory_limit", "persistence"]


@pytest.fixture(autouse=True)
def nobody_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No server and no `firstword up` but what a test names."""
    for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("FIRSTWORD_REDIS_URL", "FIRSTWORD_UPSTREAM", "FIRSTWORD_PARTITIONS"):
        monkeypatch.delenv(name, raising=False)


def doctor(capsys: Capture, *words: str) -> tuple[int, list[dict[str, str]]]:
    status = main(["doctor", "--json", *words])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# -- Redis ----------------------------------------------------------------------------------------


def test_a_server_that_will_do(redis_url: str, capsys: Capture) -> None:
    status, found = doctor(capsys, "--only", "redis", "--redis", redis_url)
    assert status == 0
    assert [finding["name"] for finding in found] == [*SERVER, "takes_writes", "partitions"]
    assert all(finding["level"] != "fatal" for finding in found)


def test_partitions_that_differ_fail(
    redis_url: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redis.Redis.from_url(redis_url) as link:
        link.hset(keys.CONFIG, "partitions", 4)
    monkeypatch.setenv("FIRSTWORD_REDIS_URL", redis_url)
    monkeypatch.setenv("FIRSTWORD_PARTITIONS", "16")
    status, found = doctor(capsys, "--only", "redis")
    assert (status, found[-1]["name"], found[-1]["level"]) == (1, "partitions", "fatal")
    assert "FIRSTWORD_PARTITIONS=4" in found[-1]["remedy"]


@pytest.mark.parametrize(
    ("policy", "status", "level"),
    [("allkeys-lru", 1, "fatal"), ("volatile-lru", 0, "warning"), ("noeviction", 0, "ok")],
)
def test_a_server_that_deletes_sessions_which_speak_fails(
    policy: str, status: int, level: str, redis_url: str, capsys: Capture
) -> None:
    with redis.Redis.from_url(redis_url) as link:
        before = link.config_get("maxmemory-policy")["maxmemory-policy"]
        link.config_set("maxmemory-policy", policy)
        try:
            ended, found = doctor(capsys, "--only", "redis", "--redis", redis_url)
        finally:
            link.config_set("maxmemory-policy", before)
    assert (ended, found[2]["name"], found[2]["level"]) == (status, "eviction_policy", level)
    assert ("noeviction" in found[2]["remedy"]) == (level != "ok")


def test_a_server_that_is_full_fails_with_what_is_used_and_what_to_do(
    redis_url: str, capsys: Capture
) -> None:
    with redis.Redis.from_url(redis_url) as link:
        before = link.config_get("maxmemory")["maxmemory"]
        used = link.info("memory")["used_memory"]
        link.config_set("maxmemory", used // 2)
        try:
            status, found = doctor(capsys, "--only", "redis", "--redis", redis_url)
        finally:
            link.config_set("maxmemory", before)
    by_name = {finding["name"]: finding for finding in found}
    full = by_name["memory_limit"]
    assert (status, full["level"], full["message"][:18]) == (1, "fatal", "the server is full")
    assert f" of {used // 2 / 1e6:,.1f} MB are used" in full["message"]
    assert "CONFIG SET maxmemory" in full["remedy"]
    assert by_name["eviction_policy"]["level"] == "ok"


def test_a_server_that_reads_and_takes_nothing_fails(redis_url: str, capsys: Capture) -> None:
    with redis.Redis.from_url(redis_url) as link:
        link.config_set("min-replicas-to-write", 1)  # there is none
        try:
            status, found = doctor(capsys, "--only", "redis", "--redis", redis_url)
        finally:
            link.config_set("min-replicas-to-write", 0)
    failed = [finding for finding in found if finding["level"] == "fatal"]
    assert (status, [finding["name"] for finding in failed]) == (1, ["takes_writes"])
    assert "takes nothing now: NOREPLICAS" in failed[0]["message"]
    assert "NOREPLICAS: start its replicas" in failed[0]["remedy"]


def test_a_user_who_may_only_read_is_told_as_that(redis_url: str, capsys: Capture) -> None:
    with redis.Redis.from_url(redis_url) as link:
        link.acl_setuser(
            "reader", enabled=True, passwords=["+word"], keys="*", categories=["+@all", "-@write"]
        )
        try:
            url = redis_url.replace("redis://", "redis://reader:word@")
            status, found = doctor(capsys, "--only", "redis", "--redis", url)
        finally:
            link.acl_deluser("reader")
    [told] = [finding for finding in found if finding["name"] == "takes_writes"]
    assert (status, told["level"]) == (0, "warning")
    assert "the user that services have" in told["remedy"]


@pytest.mark.parametrize("url", [[], ["--redis", "gopher://hole"]])
def test_no_server_fails_with_what_to_do(url: list[str], capsys: Capture) -> None:
    status, found = doctor(capsys, "--only", "redis", *url)
    assert (status, [finding["name"] for finding in found]) == (1, ["redis_reachable"])
    assert found[0]["remedy"]


def test_a_server_that_does_not_let_us_in_fails_without_its_password(
    redis_url: str, capsys: Capture
) -> None:
    wrong = redis_url.replace("redis://", "redis://nobody:secret@")
    status, found = doctor(capsys, "--only", "redis", "--redis", wrong)
    assert (status, found[0]["level"]) == (1, "fatal")
    assert "secret" not in json.dumps(found)


@pytest.mark.parametrize(
    ("recorded", "wanted", "running", "level"),
    [
        (None, None, 0, "ok"),
        (None, "8", 0, "ok"),
        (None, None, 2, "warning"),
        (16, None, 0, "ok"),
        (16, "16", 1, "ok"),
        (16, "", 0, "ok"),
        (16, "8", 1, "fatal"),
    ],
)
def test_partitions_agree_or_not(
    recorded: int | None, wanted: str | None, running: int, level: str
) -> None:
    assert partitions_agree(recorded, wanted, running).level == level


# -- the backend ----------------------------------------------------------------------------------


async def test_what_the_gateways_doctor_finds_is_passed_on() -> None:
    async with BrokenContainer(Manners(sound=lambda text: bytes(len(text) * 3_000))) as container:
        found = [finding async for finding in look_at_upstream(container.url, "", os.environ)]
    by_name = {finding.name: finding for finding in found}
    assert by_name["sentence"].level == "ok"
    assert by_name["audio_is_speech"].level == "fatal"
    assert "silence" in by_name["audio_is_speech"].message
    assert found[-1].name == "websocket_pings"


def test_the_environment_names_the_backend(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTWORD_UPSTREAM", "openai+http://127.0.0.1:1/v1")
    _, found = doctor(capsys, "--only", "upstream")
    assert "127.0.0.1:1" in found[0]["message"]


def test_the_container_of_the_firstword_up_here_is_found(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runfile.Run("redis://127.0.0.1:1", os.getpid(), {"inference": "127.0.0.1:2"})
    with runfile.published(run, os.environ):
        _, found = doctor(capsys, "--only", "upstream")
    assert "ws://127.0.0.1:2/invocations-bidirectional-stream" in found[0]["message"]


async def test_a_look_that_is_left_leaves_no_process() -> None:
    async with BrokenContainer(Manners(work_s=60)) as container:
        findings = look_at_upstream(container.url, "", os.environ)
        assert (await anext(findings)).name == "upstream_reachable"
        await findings.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("url", ["ws://127.0.0.1:1/x", "openai+http://127.0.0.1:1/v1"])
def test_a_backend_that_is_away_fails(url: str, capsys: Capture) -> None:
    status, found = doctor(capsys, "--only", "upstream", "--upstream", url)
    assert (status, [finding["name"] for finding in found]) == (1, ["upstream_reachable"])
    assert found[0]["message"].endswith("(Connection refused): is it up?")


def test_settings_that_are_wrong_fail_with_their_reason(capsys: Capture) -> None:
    status, found = doctor(capsys, "--only", "upstream", "--upstream", "gopher://hole")
    assert (status, found[0]["name"]) == (1, "upstream_settings")
    assert "gopher://hole" in found[0]["message"]
    assert "pip install" not in found[0]["remedy"]


def test_what_is_missing_is_to_be_installed(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "aiohttp.py").write_text("raise ModuleNotFoundError('no aiohttp')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    _, found = doctor(capsys, "--only", "upstream")
    assert "pip install 'firstword[gateway]'" in found[0]["remedy"]


def test_a_scheme_of_the_web_is_told_with_what_was_meant(capsys: Capture) -> None:
    _, found = doctor(capsys, "--only", "upstream", "--upstream", "http://127.0.0.1:8080")
    assert "ws://, wss://, " in found[0]["message"]
    assert "a container is ws://, a speech server openai+http://" in found[0]["message"]


# -- words ----------------------------------------------------------------------------------------


def test_people_get_a_line_and_what_to_do(capsys: Capture) -> None:
    assert main(["doctor", "--upstream", "ws://127.0.0.1:1/x"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAIL  redis_reachable  ")
    assert lines[1].strip().startswith("→ start one with `firstword up`")
    assert lines[2].startswith("FAIL  upstream_reachable  ")


def test_each_level_has_its_word() -> None:
    assert in_words(Finding("a", "ok", "well")) == "ok    a                     well"
    assert in_words(Finding("a", "note", "so so")).startswith("warn  a ")
    assert in_words(Finding("a", "warning", "bad", "mend it")).endswith("→ mend it")


@pytest.mark.parametrize("line", [b"", b"oops", b"[]", b'{"level": "odd"}', b"7"])
def test_what_is_no_finding_is_none(line: bytes) -> None:
    assert read_finding(line) is None
