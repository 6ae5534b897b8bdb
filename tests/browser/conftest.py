"""The page, on the whole path: real services, a real server, a real browser."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.chromium import browser

Tell = Callable[[str], None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs a browser: `-m 'not browser'` leaves it out."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    """One for all tests of a module, which run in one event loop; windows share nothing."""
    async with browser() as running:
        yield running


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Tell:
    """Writes a line into the test run's output: what was measured."""

    def write(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n  {line}\n")

    return write


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where screenshots go; FIRSTWORD_TEST_SCREENSHOTS names a folder to keep them in."""
    folder = Path(os.environ.get("FIRSTWORD_TEST_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
