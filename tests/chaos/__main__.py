"""`make chaos`: every scenario, with what was heard. `python -m tests.chaos [WORD …]` plays those
whose name holds one of the words. Ends with status 1 if anything is not as it was promised."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
import tempfile
from pathlib import Path

import structlog

from tests.chaos import report
from tests.chaos.deployment import Deployment
from tests.chaos.play import play
from tests.chaos.scenarios import SCENARIOS

SESSIONS = 100


async def run(words: list[str]) -> bool:
    """Play and print; True if all was as promised."""
    scenarios = [s for s in SCENARIOS if not words or any(word in s.name for word in words)]
    folder = Path(tempfile.mkdtemp(prefix="firstword-chaos-"))
    _say(f"3 gateways, 2 segmenters, 2 inferences, {SESSIONS} sessions; logs in {folder}")
    _say(report.HEAD)
    numbers = itertools.count(1, SESSIONS)
    well = True
    for cluster, group in itertools.groupby(scenarios, lambda scenario: scenario.cluster):
        counts = {"gateway": 3, "segmenter": 2, "inference": 2}
        async with Deployment(folder, cluster=cluster, **counts) as deployment:
            for scenario in group:
                result = await play(deployment, scenario, SESSIONS, next(numbers))
                _say(report.row(result))
                well = well and not result.tally.wrong
                for line in report.problems(result):
                    _say(line)
    _say("every sample once, in order, its own" if well else "NOT AS PROMISED: see above")
    return well


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    raise SystemExit(0 if asyncio.run(run(sys.argv[1:])) else 1)


if __name__ == "__main__":
    main()
