"""What an error of the server means to a caller of the library: mapped in this one place."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from errno import errorcode
from socket import gaierror
from ssl import SSLCertVerificationError, SSLError
from typing import TypeVar

from redis import exceptions as redis

from firstword.errors import FirstwordError
from firstword.streams import pause

T = TypeVar("T")

PATIENCE_S = 10.0

_AWAY = (
    redis.ReadOnlyError,
    redis.ClusterDownError,
    redis.TryAgainError,
    redis.AskError,
)
# Replies that redis-py has no class for, of a server that will do it soon: a blocked read whose
# server became a replica, too few replicas for a write, no room to save, somebody's slow script.
_PASSING = ("UNBLOCKED", "NOREPLICAS", "MISCONF", "BUSY ")
_NOT_FOR_US = (redis.AuthenticationError, redis.AuthorizationError, redis.NoPermissionError)


def final(error: Exception) -> FirstwordError | None:
    """What to raise for an error that trying again does not cure; None if the server is only away.

    A cluster client in a failover raises TypeError and AttributeError too, so whatever is not an
    answer of the server counts as its absence.
    """
    if isinstance(error, _NOT_FOR_US):
        return FirstwordError(
            "refused",
            "the Redis server refuses this user: give the right password in the URL, and let the "
            f"user read and write the keys fw:* ({error})",
        )
    if isinstance(error, redis.OutOfMemoryError):
        return FirstwordError(
            "busy",
            "the Redis server is full: try again later, or give it more memory",
            retryable=True,
        )
    # redis-py raises its own error while it handles that of TLS.
    if isinstance(error.__context__, SSLCertVerificationError):
        return FirstwordError(
            "refused",
            f"the Redis server's certificate is not trusted ({error.__context__.verify_message}): "
            "give the URL the name that it is for and, where nobody known vouches for it, "
            "?ssl_ca_certs=FILE",
        )
    if isinstance(error, redis.InvalidResponse):
        return FirstwordError(
            "refused",
            "what answers at the URL's address does not speak as a Redis server does: give the "
            "port of one, and rediss:// where it wants TLS",
        )
    passing = isinstance(error, _AWAY) or str(error).startswith(_PASSING)
    if isinstance(error, redis.ResponseError) and not passing:
        return FirstwordError("refused", f"the Redis server refuses the command: {error}")
    return None


async def insist(attempt: Callable[[], Awaitable[T]], url: str) -> T:
    """Try until the server at `url` answers; raises FirstwordError when it refuses or is away
    for PATIENCE_S. For what may happen twice: a lost reply does not tell whether it happened."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + PATIENCE_S
    failures = 0
    while True:
        try:
            return await attempt()
        except FirstwordError:
            raise
        except Exception as error:
            if (reason := final(error)) is not None:
                raise reason from error
            if clock() > deadline:
                raise unreachable(url, error) from error
        failures += 1
        await pause(failures)


def unreachable(url: str, error: Exception) -> FirstwordError:
    """The server did not answer, or take anything, for as long as we may wait."""
    if isinstance(error, redis.ResponseError):
        told = (
            f"the Redis server at {without_password(url)} does not do it now ({error}): "
            "`firstword doctor --only redis` says what to do"
        )
        return FirstwordError("unreachable", told, retryable=True)
    return FirstwordError(
        "unreachable",
        f"no Redis server answers at {without_password(url)} ({_why(error)}): "
        "start one with `firstword up`, or set FIRSTWORD_REDIS_URL",
        retryable=True,
    )


def _why(error: Exception) -> str:
    """What the system said of it, which redis-py has as the reason of its own error."""
    said = error.__context__
    if isinstance(said, gaierror):
        return "that name leads nowhere"
    # TLS errors have numbers of their own.
    number = said.errno if isinstance(said, OSError) and not isinstance(said, SSLError) else None
    if number is not None and number in errorcode:
        return os.strerror(number)
    return type(error).__name__


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "", url
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
