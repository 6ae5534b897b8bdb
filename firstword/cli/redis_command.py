"""`firstword redis COMMAND…`: any command to the server in use, answered as redis-cli would."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from firstword import runfile
from firstword.cli.console import Console
from firstword.errors import FirstwordError
from firstword.redis_client import Address
from firstword.server_errors import unreachable

_CONNECT_TIMEOUT_S = 3
_ENDLESS = {b"MONITOR", b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE"}


def run(options: argparse.Namespace, console: Console, environ: Mapping[str, str]) -> int:
    """Status 1 when the server answers with an error. Waits as long as the command blocks."""
    url = runfile.resolve_url(environ)
    if url is None:
        raise FirstwordError(
            "no_server",
            "no Redis server to use: start one with `firstword up`, or set "
            f"{runfile.URL_VARIABLE} to the URL of yours",
        )
    command = [os.fsencode(word) for word in [options.name, *options.arguments]]
    show = pretty if console.interactive else plain

    def converse(node: str) -> None:
        with Redis.from_url(
            node, protocol=2, socket_connect_timeout=_CONNECT_TIMEOUT_S, socket_timeout=None
        ) as client:
            connection: Any = client.connection_pool.get_connection()
            connection.send_command(*command)
            console.say(show(_reply(connection)))
            while command[0].upper() in _ENDLESS:
                console.say(show(_reply(connection)))

    try:
        first = Address(url).urls[0]
        try:
            converse(first)
        except MovedError as moved:  # a cluster: another of its nodes has the key
            converse(_node(first, moved))
    except ResponseError as error:
        console.note(f"(error) {error}")
        return 1
    except (RedisConnectionError, RedisTimeoutError, OSError) as error:
        raise unreachable(url, error) from error
    except (RedisError, ValueError) as error:
        raise FirstwordError("redis_failed", f"the command could not be sent: {error}") from error
    return 0


def _node(url: str, moved: MovedError) -> str:
    """The node that a redirection names, by the same means as the one at `url`."""
    parts = urlsplit(url)
    login, at, _host = parts.netloc.rpartition("@")
    host = f"[{moved.host}]" if ":" in moved.host else moved.host
    return urlunsplit(parts._replace(netloc=f"{login}{at}{host}:{moved.port}"))


def _reply(connection: Any) -> Any:
    return connection.read_response(disable_decoding=True)


def plain(reply: Any) -> str:
    """A reply for programs: the values alone, one a line."""
    if isinstance(reply, list):
        return "\n".join(plain(item) for item in reply)
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "replace")
    if isinstance(reply, Exception):
        return f"(error) {reply}"
    return "" if reply is None else str(reply)


def pretty(reply: Any, indent: int = 0) -> str:
    """A reply for people: types told, lists numbered, what is not text escaped."""
    if isinstance(reply, list):
        if not reply:
            return "(empty array)"
        margin = len(str(len(reply))) + 2
        lines = [
            f"{number:>{margin - 2}}) {pretty(item, indent + margin)}"
            for number, item in enumerate(reply, 1)
        ]
        return f"\n{' ' * indent}".join(lines)
    if isinstance(reply, bytes):
        return _quoted(reply)
    if isinstance(reply, int):
        return f"(integer) {reply}"
    if isinstance(reply, Exception):
        return f"(error) {reply}"
    return "(nil)" if reply is None else str(reply)


def _quoted(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return '"' + repr(data)[2:-1].replace('"', '\\"') + '"'
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in escaped) + '"'
