"""Waiting for what a session's listeners hear."""

from __future__ import annotations

from tests.doubles.ear import Ear
from tests.doubles.gateway_rig import SessionHand
from tests.support import eventually


async def over(hand: SessionHand, *turns: str) -> Ear:
    """What was heard when these turns are over."""

    async def ended() -> Ear | None:
        ear = await hand.hear()
        return ear if ear.turn_ends.keys() >= set(turns) else None

    ear = await eventually(ended, f"turns {', '.join(turns)} are over")
    assert ear is not None
    return ear


async def begun(hand: SessionHand, n: int) -> None:
    """Audio of segment `n` is out."""

    async def audible() -> bool:
        return bool((await hand.hear()).segments.get(n))

    await eventually(audible, f"audio of segment {n}")
