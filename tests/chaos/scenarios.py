"""The scenarios, in the order they are played."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos import faults
from tests.chaos.faults import at, drain, freeze, kill, restart_server, starve
from tests.chaos.play import Scenario
from tests.chaos.talk import Manner

CANCELS = Manner(kind="cancels", turns=2, pause_s=0.5)
TWO = Manner(kind="two publishers", turns=2)
SHELL = Manner(kind="shell", turns=2)
LONG = Manner(turns=5)

SCENARIOS = (
    Scenario("calm", faults.nothing),
    Scenario("kill -9 gateway", at(0.1, 0.5, what=kill("gateway"))),
    Scenario("kill -9 segmenter", at(0.1, 0.5, what=kill("segmenter"))),
    Scenario("kill -9 both", at(0.1, 0.5, what=kill("gateway", "segmenter"))),
    Scenario("kill -9 inference", at(0.1, 0.5, what=kill("inference"))),
    Scenario("kill -9 all inference", at(0.1, 0.5, what=faults.kill_all_inference)),
    Scenario("another engine", at(0.3, what=faults.another_engine)),
    Scenario("drain gateway", at(0.1, 0.5, what=drain("gateway"))),
    Scenario("drain segmenter", at(0.1, 0.5, what=drain("segmenter"))),
    Scenario("drain inference", at(0.1, 0.5, what=drain("inference"))),
    Scenario("freeze gateway", at(0.1, 0.5, what=freeze("gateway"))),
    Scenario("freeze segmenter", at(0.1, 0.5, what=freeze("segmenter"))),
    Scenario("starve gateway", at(0.1, 0.4, 0.7, what=starve("gateway"))),
    Scenario("starve segmenter", at(0.1, 0.4, 0.7, what=starve("segmenter"))),
    Scenario("cut at deciles", at(0.1, 0.4, 0.7, what=faults.cut_at_every_decile)),
    Scenario("server kill, always", at(0.3, what=restart_server("always"))),
    Scenario("server kill, everysec", at(0.3, what=restart_server("everysec"))),
    Scenario("poison", at(0.1, 0.5, what=faults.poison)),
    Scenario("two publishers, kill", at(0.2, what=kill("segmenter")), TWO),
    Scenario("shell beside, kill", at(0.2, what=kill("segmenter")), SHELL),
    Scenario("cancel storm", faults.nothing, CANCELS),
    Scenario("cancel storm, kill", at(0.2, 0.5, what=kill("gateway", "segmenter")), CANCELS),
    Scenario("mixed", faults.many(seed=1, count=7), LONG),
    Scenario("server kill, no file", at(0.3, what=faults.lose_server), forgets=True),
    Scenario("FLUSHALL", at(0.3, what=faults.forget), forgets=True),
    Scenario("late replica", at(0.3, what=faults.rewind), forgets=True),
    *(
        replace(scenario, name=f"cluster: {scenario.name}", cluster=True)
        for scenario in (
            Scenario("calm", faults.nothing),
            Scenario("kill -9 both", at(0.1, 0.5, what=kill("gateway", "segmenter"))),
            Scenario("cancel storm", at(0.2, 0.5, what=kill("gateway", "segmenter")), CANCELS),
            Scenario("mixed", faults.many(seed=2, count=5), LONG),
            Scenario("masters", faults.kill_every_master(), LONG, forgets=True),
            Scenario("late replicas", faults.kill_every_master(late=True), LONG, forgets=True),
        )
    ),
)

SHORT = Manner(turns=2, token_s=0.02, pause_s=0.4)
BRIEF = (
    Scenario("kill -9 both", at(0.1, what=kill("gateway", "segmenter")), SHORT),
    Scenario("freeze both", at(0.1, what=freeze("gateway", "segmenter")), SHORT),
    Scenario("drain gateway", at(0.1, what=drain("gateway")), SHORT),
    Scenario("cut at deciles", at(0.1, what=faults.cut_at_every_decile), SHORT),
    Scenario("server kill, always", at(0.2, what=restart_server("always")), SHORT),
    Scenario("cancel storm, kill", at(0.2, what=kill("gateway")), replace(SHORT, kind="cancels")),
    Scenario(
        "cluster: a master", at(0.1, what=faults.kill_a_master), SHORT, forgets=True, cluster=True
    ),
)
"""What every change must live through: few sessions, the most telling faults."""
