"""What the server's errors mean to a caller."""

from __future__ import annotations

from socket import gaierror
from ssl import SSLError

import pytest
from redis import exceptions as redis

from firstword import server_errors
from firstword.errors import FirstwordError
from firstword.server_errors import final, insist, unreachable, without_password


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (redis.AuthenticationError("invalid password"), "refused", False),
        (redis.NoPermissionError("no rights"), "refused", False),
        (redis.ResponseError("WRONGTYPE"), "refused", False),
        (redis.InvalidResponse('Protocol error, got "H"'), "refused", False),
        (redis.OutOfMemoryError("used > maxmemory"), "busy", True),
    ],
)
def test_answers_that_stay_the_same_are_final(error: Exception, code: str, retryable: bool) -> None:
    reason = final(error)
    assert reason is not None
    assert (reason.code, reason.retryable) == (code, retryable)


@pytest.mark.parametrize(
    "error",
    [
        redis.ConnectionError("gone"),
        redis.TimeoutError("late"),
        redis.BusyLoadingError("loading"),
        redis.ReadOnlyError("a replica"),
        redis.ClusterDownError("failing over"),
        redis.ResponseError("UNBLOCKED force unblock from blocking operation"),
        redis.ResponseError("NOREPLICAS Not enough good replicas to write."),
        redis.ResponseError("BUSY Redis is busy running a script."),
        OSError("unplugged"),
        TypeError("'NoneType' object is not callable"),
    ],
)
def test_an_absence_is_not(error: Exception) -> None:
    assert final(error) is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (ConnectionRefusedError(111, "Connect call failed"), "(Connection refused)"),
        (gaierror(-2, "Name or service not known"), "(that name leads nowhere)"),
        (OSError("Multiple exceptions"), "(ConnectionError)"),
        (SSLError(1, "[SSL] record layer failure"), "(ConnectionError)"),
        (None, "(ConnectionError)"),
    ],
)
def test_an_absence_is_told_with_what_the_system_says(said: Exception | None, why: str) -> None:
    error = redis.ConnectionError("Error 111 connecting to cache:6379.")
    error.__context__ = said
    assert why in unreachable("redis://cache:6379", error).message


def test_no_password_is_shown() -> None:
    url = "rediss://user:p@ss@cache.example:6380/0"
    assert without_password(url) == "rediss://cache.example:6380/0"
    assert "p@ss" not in unreachable(url, OSError()).message
    assert without_password("redis://127.0.0.1:6379") == "redis://127.0.0.1:6379"
    assert without_password("me:secret@cache:6379") == "cache:6379"  # no URL, but meant as one


async def test_insisting_gets_the_answer_in_the_end() -> None:
    answers: list[Exception | str] = [redis.ConnectionError("gone"), OSError("gone"), "1-0"]

    async def attempt() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert await insist(attempt, "redis://x") == "1-0"


async def test_insisting_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_errors, "PATIENCE_S", 0)

    async def attempt() -> str:
        raise redis.ConnectionError("gone")

    with pytest.raises(FirstwordError) as raised:
        await insist(attempt, "redis://127.0.0.1:1")
    assert (raised.value.code, raised.value.retryable) == ("unreachable", True)
    assert "firstword up" in raised.value.message


@pytest.mark.parametrize(
    "error", [redis.AuthenticationError("no"), FirstwordError("own", "of our own")]
)
async def test_a_refusal_is_not_insisted_on(error: Exception) -> None:
    attempts = 0

    async def attempt() -> str:
        nonlocal attempts
        attempts += 1
        raise error

    with pytest.raises(FirstwordError):
        await insist(attempt, "redis://x")
    assert attempts == 1
