"""The segmenter's shell: one reader on each unit, whatever is lost and given back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from firstword.errors import StateLost
from firstword.streams import Streams
from services.segmenter.reader import DoorReader, PartitionReader
from services.segmenter.service import SegmenterService
from services.segmenter.settings import SegmenterSettings
from tests.support import eventually

PARTITIONS = 4


class Reader(PartitionReader):
    """Reads nothing; fails at the moment in which it is cancelled, as a commit may."""

    working: Counter[str]

    async def run(self, stop: asyncio.Event) -> None:
        unit = self.cursor.stream
        self.working[unit] += 1
        try:
            await stop.wait()
        except asyncio.CancelledError:
            raise StateLost(unit) from None  # a task group prefers its error to the cancel, too
        finally:
            self.working[unit] -= 1


class Service(SegmenterService):
    """A segmenter with such readers."""

    working: Counter[str]

    def _reader(self, unit: str, running: object) -> DoorReader | PartitionReader:
        reader = Reader(self._streams, unit, self._ownership.worker, self._settings, self._memory)
        reader.working = self.working
        return reader


@pytest.fixture
async def service(redis_url: str) -> AsyncIterator[Service]:
    made = Service(SegmenterSettings(redis_url=redis_url, http_port=0, partitions=PARTITIONS))
    made.working = Counter()
    stop = asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    yield made
    stop.set()
    await running


async def test_a_unit_that_is_lost_is_let_go_whatever_its_reader_says(
    redis_url: str, service: Service
) -> None:
    def one_each() -> bool:
        return len(service.working) == PARTITIONS + 1 and set(service.working.values()) == {1}

    await eventually(one_each, "a reader on every unit")
    before = [running.task for running in service._running.values()]
    assert len(before) == PARTITIONS + 1
    streams = Streams(redis_url)
    await streams.commands.flushall()
    await streams.close()
    await eventually(lambda: all(task and task.done() for task in before), "all let go")
    await eventually(one_each, "one reader on every unit again")
