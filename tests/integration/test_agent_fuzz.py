"""Malformed requests and frames at every door: no crash, no 5xx, nothing held."""

from __future__ import annotations

from tests.fuzz.doors import fuzz

# A hundred thousand: `make soak`.


async def test_malformed_requests_do_no_harm(redis_url: str) -> None:
    outcome = await fuzz(redis_url, requests=1_500, seed=1)
    assert outcome.failures == []
    assert outcome.sent >= 1_500
    assert {200, 202, 400, 404, 405} <= set(outcome.statuses), "what lies behind the checks is met"
