"""Builds the page and takes its picture, one for each dashboard."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright

PAGE = Path(__file__).parent / "page"
WIDTH = 1524
BUILD_S = 900
DRAWN = "window.failed ?? document.querySelector('[data-panel]') !== null"
EMPTY = "[...document.querySelectorAll('[data-empty=true]')].map(panel => panel.dataset.panel)"


def build(folder: Path) -> None:
    """The page, made in a folder where npm's half a gigabyte of modules may stay."""
    shutil.copytree(PAGE, folder, dirs_exist_ok=True)
    wanted, had = folder / "package.json", folder / "node_modules" / "installed.json"
    if not had.exists() or had.read_bytes() != wanted.read_bytes():
        # No scripts of packages; no lock file: it would name where packages come from.
        _npm(folder, "install", "--ignore-scripts", "--no-package-lock", "--legacy-peer-deps")
        shutil.copy(wanted, had)
    _npm(folder, "run", "build")


def _npm(folder: Path, *arguments: str) -> None:
    command = ["npm", *arguments, "--loglevel=error", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=folder, check=True, timeout=BUILD_S, stdout=subprocess.DEVNULL)


async def picture(folder: Path, chromium: str, drawn: Mapping[str, Any], to: Path) -> list[str]:
    """Draw `drawn` (a `board` and what `hour.watch` gives); the titles of panels without data."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"],
        )
        try:
            page = await browser.new_page(viewport={"width": WIDTH, "height": 900})
            await page.goto((folder / "index.html").as_uri())
            await page.wait_for_function("window.draw !== undefined")
            await page.evaluate("drawn => draw(drawn)", dict(drawn))
            await page.wait_for_function(DRAWN)
            await page.evaluate("document.fonts.ready")
            await asyncio.sleep(1)  # canvases are painted frame by frame
            if failed := await page.evaluate("window.failed"):
                raise RuntimeError(f"the page failed: {failed}")
            await page.screenshot(path=to, full_page=True)
            empty: list[str] = await page.evaluate(EMPTY)
            return empty
        finally:
            await browser.close()
