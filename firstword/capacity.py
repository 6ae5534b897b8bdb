"""How many sessions one instance of a backend carries, and how many instances that makes.

Pure: decides what to try next and what the figures mean. `services.tts_gateway.capacity` tries it
on a backend; `firstword capacity` prints the plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from firstword.errors import FirstwordError

LEAST_TURNS = 20
"""Fewer say nothing of the slowest 5 in 100."""
FAILED_SHARE = 0.01
"""A step in which more of the turns failed is not met."""
SILENT_SHARE = 0.05
"""Nor is one in which more of the turns had a gap between two sentences."""
LEAST_SPEAKING = 0.001
LEAST_TARGET_SHARE = 0.25
LONGEST_START_S = 3600.0
"""No container may take longer: it is the most that SageMaker waits for one."""


def refused(message: str) -> FirstwordError:
    """What was asked makes no sense, and why."""
    return FirstwordError("no_capacity", message)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that at least `share` of them do not exceed. Raises ValueError."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@dataclass(slots=True)
class Step:
    """What came of `sessions` that spoke at the same time, a turn after the other."""

    sessions: int
    first_audio_s: list[float] = field(default_factory=list)
    """Of every turn that was spoken: request to first audio byte."""
    failed: int = 0
    """Turns that were refused or broke off."""
    silent: int = 0
    """Turns whose listener had nothing to hear between two sentences."""
    why: str = ""
    """The error of one that failed."""

    @property
    def turns(self) -> int:
        return len(self.first_audio_s) + self.failed

    @property
    def p95_s(self) -> float:
        """First audio of the slowest 5 in 100; infinite if nothing was heard."""
        return percentile(self.first_audio_s, 0.95) if self.first_audio_s else math.inf

    def problem(self, slo_s: float) -> str:
        """Why an instance is not to carry so many; '' if it may."""
        if self.failed > FAILED_SHARE * self.turns:
            return f"{self.failed} of {self.turns} turns failed ({self.why})"
        if self.p95_s > slo_s:
            return f"first audio p95 {self.p95_s:.3f} s"
        if self.silent > SILENT_SHARE * self.turns:
            return f"{self.silent} of {self.turns} turns fell silent between sentences"
        return ""


class Ladder:
    """Doubles the sessions until a step is not met, then halves the distance to the last that was.

    Ends when the two are within a tenth of each other, or `most` sessions are carried.
    """

    def __init__(self, slo_s: float, most: int) -> None:
        if not 0.01 <= slo_s <= 10:
            raise refused(
                f"an objective of {slo_s:g} s for the first audio: give one of 0.01 to 10 seconds"
            )
        if most < 1:
            raise refused("at least one session has to be tried")
        self._slo_s = slo_s
        self._most = most
        self.carried = 0
        """The largest number of sessions that met the objective so far."""
        self._too_many: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether a number was found that is too many: else `carried` is only a lower bound."""
        return self._too_many is not None

    def next(self) -> int | None:
        """How many sessions to try now; None: the answer is known."""
        if self._too_many is None:
            return None if self.carried >= self._most else min(self._most, self.carried * 2 or 1)
        distance = self._too_many - self.carried
        return self.carried + distance // 2 if distance > max(1, self.carried // 10) else None

    def took(self, step: Step) -> str:
        """Take the outcome of a step; why it is not met, or ''."""
        problem = step.problem(self._slo_s)
        if problem:
            self._too_many = step.sessions
        else:
            self.carried = step.sessions
        return problem


@dataclass(frozen=True, slots=True)
class Demand:
    """What the deployment is to carry."""

    peak: int
    """Sessions that are open at the busiest moment."""
    growth_per_minute: float
    """Sessions by which they grow in the busiest minute."""
    speaking: float = 1.0
    """The share of open sessions that is being spoken to at the same moment."""
    least: int = 1
    """Instances that always run."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Instances, and the thresholds between which SageMaker adds and takes them away.

    Open streams are what SageMaker counts: a session that is silent counts as one that speaks.
    """

    q_max: int
    per_instance: int
    """Open sessions an instance carries within the objective."""
    scale_out_at: float
    """Open sessions per instance above which one is added: those that come meanwhile fit."""
    scale_in_at: float
    """Below this for a while, one instance fewer stays below `scale_out_at`."""
    least: int
    most: int
    total_s: float

    def context(self) -> dict[str, str]:
        """The CDK context of deploy/aws that says the same."""
        return {
            "target_sessions": f"{self.scale_out_at:g}",
            "scale_in_sessions": f"{self.scale_in_at:g}",
            "min_instances": str(self.least),
            "max_instances": str(self.most),
        }


def plan(q_max: int, total_s: float, demand: Demand) -> Plan:
    """Thresholds and instances for `q_max` sessions that speak on one instance at once.

    `total_s` is from the moment at which an instance is asked for until it serves. Raises
    FirstwordError where the figures make no sense, or no thresholds do.
    """
    _check(q_max, total_s, demand)
    per_instance = math.floor(q_max / demand.speaking)
    comes = demand.growth_per_minute * total_s / 60
    room = per_instance - comes / demand.least
    if room < LEAST_TARGET_SHARE * per_instance:
        enough = math.ceil(comes / (per_instance * (1 - 2 * LEAST_TARGET_SHARE)))
        raise refused(
            f"in the {total_s:g} s until an instance serves, {comes:.0f} sessions come, and "
            f"{demand.least} running carries {per_instance * demand.least}: keep at least "
            f"{enough} running (--least), or make the start shorter"
        )
    target = math.floor(room * 10) / 10
    one_lost = math.ceil(demand.peak / per_instance) + 1
    most = max(demand.least, math.ceil(demand.peak / target), one_lost)
    return Plan(q_max, per_instance, target, target / 2, demand.least, most, total_s)


def _check(q_max: int, total_s: float, demand: Demand) -> None:
    if q_max < 1:
        raise refused(
            "not even one session meets the objective: no number of instances mends that; use a "
            "faster instance or engine, or another objective"
        )
    if not 0 < total_s <= LONGEST_START_S:
        raise refused(
            f"{total_s:g} s until an instance serves: it is more than 0 and at most "
            f"{LONGEST_START_S:g} s, which is the longest that SageMaker waits for a container"
        )
    if demand.peak < 1:
        raise refused("a peak of less than one session needs no instance")
    if not LEAST_SPEAKING <= demand.speaking <= 1:
        raise refused(
            f"{demand.speaking:g} of the sessions speak at once: that share is at least "
            f"{LEAST_SPEAKING:g} and at most 1"
        )
    if not demand.growth_per_minute >= 0:  # nor what is no number
        raise refused("sessions grow by a number of at least 0 a minute")
    if demand.growth_per_minute > demand.peak:
        raise refused(
            f"{demand.growth_per_minute:g} more sessions a minute is more than the whole peak of "
            f"{demand.peak}: one of the two is wrong"
        )
    if demand.least < 1:
        raise refused("at least one instance runs: SageMaker does not scale such an endpoint to 0")
