"""What users reported, on the real path: the whole of it, or a gateway between a segmenter's hand
and a container that misbehaves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from firstword.streams import Streams
from tests.doubles.gateway_rig import Container, HeldTone, SessionHand
from tests.e2e.stack import Stack


@pytest.fixture
async def stack(redis_url: str) -> AsyncIterator[Stack]:
    async with Stack(redis_url) as running:
        yield running


@pytest.fixture
async def hand(streams: Streams) -> SessionHand:
    return SessionHand(streams)


@pytest.fixture
async def held() -> AsyncIterator[tuple[Container, HeldTone]]:
    """A container that holds back all but the first piece of each segment."""
    tone = HeldTone()
    async with Container(tone) as running:
        yield running, tone
