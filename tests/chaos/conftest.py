"""The whole path in this process, for each test anew."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.e2e.stack import Stack


@pytest.fixture
async def stack(redis_url: str) -> AsyncIterator[Stack]:
    async with Stack(redis_url) as running:
        yield running
