"""Fixtures of all tests."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from blockbuster import BlockBuster, blockbuster_ctx

from firstword.embedded import EmbeddedServer, EmbeddedServerError
from tests.support import missing


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    """One server for all tests that leave it alive. Use `redis_url` for a clean database."""
    embedded = EmbeddedServer()
    try:
        embedded.start()
    except EmbeddedServerError as error:
        missing(error.message)
    with embedded:
        yield embedded


@pytest.fixture
def redis_url(server: EmbeddedServer) -> str:
    """The URL of the shared server, with nothing in it: no keys, no scripts."""
    with socket.create_connection(("127.0.0.1", server.port), 5) as link:
        link.sendall(b"FLUSHALL\r\nSCRIPT FLUSH\r\n")
        reply = b""
        while reply.count(b"\r\n") < 2:
            reply += link.recv(100)
    assert reply == b"+OK\r\n+OK\r\n"
    return server.url


@pytest.fixture
def make_server() -> Iterator[Callable[..., EmbeddedServer]]:
    """Starts servers that a test may kill, restart or fill: `make_server(append_only=True)`."""
    with ExitStack() as stack:

        def make(**options: Any) -> EmbeddedServer:
            try:
                return stack.enter_context(EmbeddedServer(**options))
            except EmbeddedServerError as error:
                missing(error.message)

        yield make


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[BlockBuster]:
    """A call of our code that blocks a running event loop fails the test."""
    with blockbuster_ctx(["firstword", "services"]) as blockbuster:
        yield blockbuster
