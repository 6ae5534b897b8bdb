"""Every service looks at its server when it starts, and says what may cost sessions."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from prometheus_client import REGISTRY
from redis.exceptions import BusyLoadingError, ClusterDownError, OutOfMemoryError
from structlog.testing import capture_logs

from firstword import server_look
from firstword.embedded import EmbeddedServer
from firstword.emulator import certificates
from firstword.errors import FirstwordError
from firstword.redis_client import Address
from firstword.server_check import Facts, findings
from firstword.server_look import check_server, when_it_answers
from firstword.streams import Streams
from tests.e2e.stack import Stack
from tests.support import eventually

pytestmark = pytest.mark.streams


def named(logs: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    return [line for line in logs if line["event"] == name]


def evicts() -> float | None:
    return REGISTRY.get_sample_value("firstword_server_evicts")


async def test_a103_a_server_that_evicts_is_told_and_not_refused(
    make_server: Callable[..., EmbeddedServer],
) -> None:
    extra = ["--maxmemory-policy", "volatile-lru"]
    server = await asyncio.to_thread(make_server, extra_args=extra)
    with capture_logs() as logs:
        async with Stack(server.url):
            await eventually(
                lambda: len(named(logs, "eviction_policy")) == 2, "segmenter and gateway tell"
            )
    told = named(logs, "eviction_policy")
    assert {line["log_level"] for line in told} == {"warning"}
    assert "volatile-lru" in told[0]["found"]
    assert "noeviction" in told[0]["remedy"]
    assert {line["log_level"] for line in named(logs, "persistence")} == {"info"}
    assert evicts() == 1


async def test_a_server_as_it_should_be_is_passed_in_silence(redis_url: str) -> None:
    streams = Streams(redis_url)
    with capture_logs() as logs:
        await check_server(streams, asyncio.Event())
    await streams.close()
    assert not named(logs, "eviction_policy")
    assert evicts() == 0


async def test_a_server_that_is_too_old_is_refused_with_a_sentence(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def old(_streams: Streams) -> list[Facts]:
        return [Facts({"redis_version": "6.0.16"}, {})]

    monkeypatch.setattr(Streams, "server_facts", old)
    streams = Streams(redis_url)
    with pytest.raises(FirstwordError, match=r"Redis 6\.0\.16.*use Redis 6\.2") as refused:
        await check_server(streams, asyncio.Event())
    assert refused.value.code == "server_version"
    await streams.close()


async def test_what_a_user_may_not_ask_is_no_failure(redis_url: str) -> None:
    """Managed servers forbid CONFIG; INFO says enough."""
    admin = Streams(redis_url)
    rules = ["on", ">word", "~*", "&*", "+@all", "-config"]
    await admin.commands.execute_command("ACL", "SETUSER", "guest", *rules)
    streams = Streams(redis_url.replace("redis://", "redis://guest:word@"))
    try:
        found = {each.name: each for each in findings(await streams.server_facts())}
        assert found["eviction_policy"].level == "ok"
        assert "as far as it says" in found["persistence"].message
        await admin.commands.execute_command("ACL", "SETUSER", "guest", "-info")
        found = {each.name: each for each in findings(await streams.server_facts())}
        assert {each.level for each in found.values()} == {"note"}
    finally:
        await admin.commands.execute_command("ACL", "DELUSER", "guest")
        await streams.close()
        await admin.close()


async def test_a_server_that_is_away_is_waited_for_until_the_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = asyncio.Event()

    async def again(_attempt: int) -> None:
        tried.set()
        await asyncio.sleep(0)

    monkeypatch.setattr(server_look, "pause", again)
    stop = asyncio.Event()
    streams = Streams("redis://127.0.0.1:1")
    looking = asyncio.create_task(check_server(streams, stop))
    await tried.wait()
    stop.set()
    await looking
    await streams.close()


@pytest.mark.parametrize("service", ["segmenter", "tts_gateway", "agent"])
async def test_a_password_that_is_wrong_is_told_at_once(redis_url: str, service: str) -> None:
    url = redis_url.replace("redis://", "redis://nobody:secret@")
    status, _, said = await ended(await started(service, url))
    assert status == 2
    assert said.startswith("the Redis server refuses this user: give the right password in the URL")
    assert said.count("\n") == 1
    assert "secret" not in said


async def test_a_certificate_that_is_not_trusted_is_told_at_once() -> None:
    _, context = await asyncio.to_thread(certificates.make, [])
    server = await asyncio.start_server(lambda _, out: out.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        streams = Streams(f"rediss://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(FirstwordError, match=r"not trusted .*\?ssl_ca_certs=FILE"):
            await check_server(streams, asyncio.Event())
        await streams.close()


async def test_what_is_no_redis_server_is_told_at_once() -> None:
    async def answer(_: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        out.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        out.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        streams = Streams(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(FirstwordError, match="does not speak as a Redis server does"):
            await check_server(streams, asyncio.Event())
        await streams.close()


async def test_what_the_url_gets_wrong_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(_self: Address, _timeout_s: float) -> bool:
        raise FirstwordError("bad_url", "a cluster has database 0 only")

    monkeypatch.setattr(Address, "is_cluster", asked)
    streams = Streams("redis://127.0.0.1:1/3")
    with pytest.raises(FirstwordError, match="database 0 only"):
        await check_server(streams, asyncio.Event())
    await streams.close()


@pytest.mark.parametrize(
    "passing",
    [
        BusyLoadingError("loading the dataset"),
        ClusterDownError("CLUSTERDOWN the cluster is down"),
        OutOfMemoryError("command not allowed"),
        TypeError("a cluster client in a failover"),
    ],
)
async def test_what_passes_by_itself_is_waited_for(passing: Exception) -> None:
    answers: list[Exception | str] = [passing, "well"]

    async def attempt() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert await when_it_answers(attempt, asyncio.Event()) == "well"


@pytest.mark.parametrize("service", ["segmenter", "tts_gateway", "agent"])
async def test_a_service_that_still_waits_for_its_server_can_be_stopped(service: str) -> None:
    child = await started(service, "redis://127.0.0.1:1")
    assert child.stdout is not None
    first = await child.stdout.readline()
    assert json.loads(first)["event"] == "server_unknown"
    child.send_signal(signal.SIGTERM)
    status, out, said = await ended(child)
    assert (status, said) == (0, "")
    assert "crashed" not in out


async def test_a_service_that_is_refused_ends_with_one_sentence(redis_url: str) -> None:
    streams = Streams(redis_url)
    await streams.agree_on_partitions(7)
    await streams.close()
    status, _, said = await ended(await started("segmenter", redis_url))
    assert status == 2
    assert said.count("\n") == 1
    assert "this deployment has 7 ingress partitions" in said


async def started(service: str, redis_url: str) -> asyncio.subprocess.Process:
    ports = {f"FIRSTWORD_{word}_PORT": "0" for word in ("AGENT", "GATEWAY", "SEGMENTER")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"services.{service}"),
        env={**os.environ, "FIRSTWORD_REDIS_URL": redis_url, **ports},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def ended(child: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    """Exit status, and what is left of standard output and error."""
    try:
        out, said = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
    return child.returncode, out.decode(), said.decode()
