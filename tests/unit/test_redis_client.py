"""Where a URL leads, as far as it can be told without a server."""

from __future__ import annotations

import pytest

from firstword.redis_client import Address
from firstword.streams import Streams


@pytest.mark.parametrize(
    ("url", "nodes"),
    [
        ("redis://127.0.0.1:6379/0", ["redis://127.0.0.1:6379/0"]),
        ("redis://a:1,b:2", ["redis://a:1", "redis://b:2"]),
        ("redis://[::1]:1,[::2]:2", ["redis://[::1]:1", "redis://[::2]:2"]),
        (
            "rediss://me:p@ss@a:1,b:2?ssl_cert_reqs=none",
            ["rediss://me:p@ss@a:1?ssl_cert_reqs=none", "rediss://me:p@ss@b:2?ssl_cert_reqs=none"],
        ),
    ],
)
def test_each_node_has_a_url_with_all_the_rest(url: str, nodes: list[str]) -> None:
    assert Address(url).urls == nodes


def test_the_nodes_are_known_by_host_and_port() -> None:
    nodes = Address("redis://127.0.0.1:7000,127.0.0.2").nodes()
    assert [(node.host, node.port) for node in nodes] == [("127.0.0.1", 7000), ("127.0.0.2", 6379)]


@pytest.mark.parametrize("url", ["127.0.0.1:6379", "http://a", "redis://a:1,b:port", ""])
def test_what_is_no_redis_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="a Redis URL is like redis://host:6379"):
        Streams(url)
