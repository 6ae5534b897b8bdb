"""Fixtures of all tests, and what happens where something that tests need is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import redis
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings

from firstword import assets
from firstword.embedded import EmbeddedServer, EmbeddedServerError
from firstword.streams import Streams
from tests.support import missing

# How quick a machine is, is no property of the code.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

NO_WEIGHTS = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest -m streams --server=redis-server`: the same promises on another server."""
    parser.addoption(
        "--server",
        default="embedded",
        help="server that tests run on: embedded (default), a program, for example redis-server, "
        "or the redis:// URL of one that runs (all its data will be deleted)",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """`make test` runs files side by side, each process with a server of its own: tests mostly
    wait. A server that is not ours there is only one of."""
    if "://" in config.getoption("--server"):
        config.option.dist = "no"
        return 0
    return min(4, os.cpu_count() or 1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch the weights once, before the tests that need them and outside their time limits."""
    if session.config.option.collectonly:
        return
    if any(item.get_closest_marker("model") for item in session.items):
        said: set[str] = set()

        def say_once(progress: assets.Progress) -> None:
            reporter = session.config.pluginmanager.get_plugin("terminalreporter")
            what = progress.what.partition("/")[0]  # "voices" for each of the voices
            if reporter is not None and what not in said:
                said.add(what)
                reporter.write_line(f"fetching {what}")

        try:
            assets.fetch(os.environ, all_voices=True, report=say_once)
        except assets.AssetsError as error:
            session.config.stash[NO_WEIGHTS] = error.message


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test marked `model` without weights is skipped, or failed in CI."""
    reason = item.config.stash.get(NO_WEIGHTS, None)
    if reason and item.get_closest_marker("model"):
        missing(reason)


@pytest.fixture(scope="session")
def binary(request: pytest.FixtureRequest) -> str | None:
    """The server program that `--server` names; None for the embedded one."""
    wanted = str(request.config.getoption("--server"))
    if wanted == "embedded" or "://" in wanted:
        return None
    found = shutil.which(wanted)
    if found is None:
        missing(f"--server={wanted}: there is no such program on PATH")
    return found


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest, binary: str | None) -> Iterator[str]:
    """One server for all tests that leave it alive. Use `redis_url` for a clean database."""
    wanted = str(request.config.getoption("--server"))
    if "://" in wanted:
        yield wanted
        return
    with started(binary=binary) as embedded:
        yield embedded.url


@pytest.fixture
def redis_url(server_url: str) -> str:
    """The URL of the shared server, with nothing in it: no keys, no scripts."""
    with redis.Redis.from_url(server_url) as link:
        link.flushall()
        link.script_flush()
    return server_url


@pytest.fixture
async def streams(redis_url: str) -> AsyncIterator[Streams]:
    """A connection to the shared server."""
    made = Streams(redis_url)
    yield made
    await made.close()


@pytest.fixture
def make_server(binary: str | None) -> Iterator[Callable[..., EmbeddedServer]]:
    """Starts servers that a test may kill, restart or fill: `make_server(append_only=True)`."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(started(binary=binary, **options))


def started(**options: Any) -> EmbeddedServer:
    """A running server; no test can do without when none can be found."""
    try:
        return EmbeddedServer(**options).start()
    except EmbeddedServerError as error:
        if error.code != "no_server":
            raise
        missing(error.message)


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[BlockBuster]:
    """A call of our code that blocks a running event loop fails the test."""
    with blockbuster_ctx(["firstword", "services"]) as blockbuster:
        yield blockbuster
