"""Parts die while sessions talk, in real processes: the short form of `make chaos`."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos import report
from tests.chaos.deployment import Deployment
from tests.chaos.play import Scenario, play
from tests.chaos.scenarios import BRIEF

SESSIONS = 16

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = itertools.count(1, SESSIONS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def deployment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    folder: Path = tmp_path_factory.mktemp("chaos")
    async with Deployment(folder, gateway=2, segmenter=2, inference=2) as running:
        yield running


@pytest.mark.parametrize("scenario", BRIEF, ids=lambda scenario: scenario.name)
async def test_every_sample_comes_once_in_order_and_to_its_own(
    deployment: Deployment, scenario: Scenario
) -> None:
    result = await play(deployment, scenario, SESSIONS, next(_numbers))
    told = "\n".join([report.HEAD, report.row(result), *report.problems(result)])
    assert not result.tally.wrong, told
    assert result.tally.errors == 0, told
    assert result.tally.received > 0, told
