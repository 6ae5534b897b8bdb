"""What tests share: waiting for conditions, and what to do where something they need is missing."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar, cast, overload

import pytest

T = TypeVar("T")

_PAUSE_S = 0.01


@overload
async def eventually(
    condition: Callable[[], Awaitable[T]], description: str, timeout: float = 10
) -> T: ...


@overload
async def eventually(condition: Callable[[], T], description: str, timeout: float = 10) -> T: ...


async def eventually(
    condition: Callable[[], T] | Callable[[], Awaitable[T]],
    description: str,
    timeout: float = 10,
) -> T:
    """Wait until `condition()` is true and return its value; fail with `description` otherwise.

    The condition may be a plain or an async function. An AssertionError in it means "not yet", and
    the last one is told when the time is up.
    """
    deadline = time.monotonic() + timeout
    while True:
        why: AssertionError | None = None
        try:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return cast(T, value)
        except AssertionError as error:
            why = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {description}") from why
        await asyncio.sleep(_PAUSE_S)


def eventually_sync(condition: Callable[[], T], description: str, timeout: float = 10) -> T:
    """`eventually` for tests without an event loop."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {description}")
        time.sleep(_PAUSE_S)
    return value


def missing(what: str) -> NoReturn:
    """A test needs what is not here: skipped for a person, failed where everything must run."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} (a failure, not a skip, because CI is set)", pytrace=False)
    pytest.skip(what)
