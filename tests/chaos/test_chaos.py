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
async def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    """One for the scenarios on one server, then one for those on a cluster."""
    folder: Path = tmp_path_factory.mktemp("chaos")
    counts = {"gateway": 2, "segmenter": 2, "inference": 2}
    async with Deployment(folder, cluster=request.param, **counts) as running:
        yield running


@pytest.mark.parametrize(
    ("deployment", "scenario"),
    [(scenario.cluster, scenario) for scenario in BRIEF],
    ids=[scenario.name for scenario in BRIEF],
    indirect=["deployment"],
)
async def test_every_sample_comes_once_in_order_and_to_its_own(
    deployment: Deployment, scenario: Scenario
) -> None:
    result = await play(deployment, scenario, SESSIONS, next(_numbers))
    told = "\n".join([report.HEAD, report.row(result), *report.problems(result)])
    assert not result.tally.wrong, told
    assert result.tally.errors == 0 or scenario.forgets, told
    assert result.tally.received > 0, told
