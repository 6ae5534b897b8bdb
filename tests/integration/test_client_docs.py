"""The examples of docs/CLIENT.md run."""

from __future__ import annotations

import asyncio
import io
import re
import wave
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.path import PathDouble, heard

DOCS = Path(__file__).parents[2] / "docs" / "CLIENT.md"


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_examples() -> None:
    assert examples()


@pytest.mark.parametrize("example", examples())
async def test_an_example_runs(
    example: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTWORD_REDIS_URL", redis_url)
    made: dict[str, Any] = {}
    async with PathDouble(redis_url):
        await asyncio.to_thread(exec, compile(example, str(DOCS), "exec"), made)
    with wave.open(io.BytesIO(made["wav"])) as file:
        assert heard(file.readframes(file.getnframes())) == "It is raining. Take a coat."
