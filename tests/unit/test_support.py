"""The tests' own helpers: what they promise is what failures are read by."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from blockbuster import BlockingError

from firstword import runfile
from tests.support import eventually, eventually_sync, missing


async def test_eventually_returns_what_it_waited_for() -> None:
    answers = iter([0, None, "", 7])
    assert await eventually(lambda: next(answers), "a number") == 7
    assert eventually_sync(lambda: 8, "a number") == 8


async def test_eventually_takes_async_conditions_and_assertions() -> None:
    tries: list[int] = []

    async def third_time() -> bool:
        tries.append(1)
        assert len(tries) == 3, f"only {len(tries)}"
        return True

    assert await eventually(third_time, "a third time")


async def test_eventually_says_what_did_not_happen_and_why() -> None:
    def never() -> bool:
        raise AssertionError("the last word")

    with pytest.raises(AssertionError, match=r"not within 0 s: pigs fly") as raised:
        await eventually(never, "pigs fly", timeout=0)
    assert str(raised.value.__cause__) == "the last word"
    with pytest.raises(AssertionError, match="pigs fly"):
        eventually_sync(lambda: False, "pigs fly", timeout=0)


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_what_is_missing_skips_for_a_person_and_fails_in_ci(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no server"):
        missing("no server")


async def test_our_code_cannot_block_the_loop_unseen() -> None:
    module: dict[str, Any] = {}
    source = "import time\ndef call(): time.sleep(0)\n"
    exec(compile(source, runfile.__file__, "exec"), module)  # as if it stood in our module
    with pytest.raises(BlockingError):
        module["call"]()
    await asyncio.to_thread(module["call"])  # in a thread it may
