"""The agent's page in a real browser: what stands on it, and every sample that it plays."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from playwright.async_api import Browser, Page, async_playwright

from tests.support import eventually, missing

HERE = Path(__file__).parent
BLOCK = 128
RATE = 24_000
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    "--autoplay-policy=no-user-gesture-required",
)
NEEDED = "needs Chromium: `apt-get install chromium`, or its path in FIRSTWORD_TEST_CHROMIUM"
PATIENCE_S = 30.0


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium, with a profile of its own."""
    named = os.environ.get("FIRSTWORD_TEST_CHROMIUM")
    found = named or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        missing(NEEDED)
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        try:
            yield chromium
        finally:
            await chromium.close()


@dataclass(slots=True)
class Heard:
    """What was played: `pcm` without the silence, and `frames`, where each of its blocks stood."""

    pcm: npt.NDArray[np.int16]
    frames: list[int]
    text_at_first_sound: str | None
    clicked_at_s: float | None

    @property
    def gaps(self) -> list[int]:
        """Lengths of the silences between the first and the last sound, in samples."""
        steps = np.diff(np.asarray(self.frames, dtype=np.int64))
        return [int(step) - BLOCK for step in steps if step != BLOCK]

    @property
    def silence_after_click_ms(self) -> float:
        assert self.clicked_at_s is not None, "somebody clicked"
        return ((self.frames[-1] + BLOCK) / RATE - self.clicked_at_s) * 1000


@dataclass(slots=True)
class Visit:
    """Somebody on the page. `complaints` is what the browser had to say about it."""

    page: Page
    shots: Path
    complaints: list[str] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    """What the page said to the agent."""

    async def until(self, condition: str, description: str) -> Any:
        """Wait for a JavaScript expression."""
        return await eventually(lambda: self.page.evaluate(condition), description, PATIENCE_S)

    async def until_says(self, status: str) -> None:
        """Wait for the status line to begin so."""
        try:
            await self.until(f"statusLine().startsWith({status!r})", f"the page says {status}")
        except AssertionError as error:
            said = await self.text("#status")
            raise AssertionError(f"the page says {said!r}, not {status!r}") from error

    async def until_heard(self, samples: int) -> None:
        await self.until(f"heard.blocks.length * {BLOCK} >= {samples}", f"{samples} samples sound")

    async def say(self, text: str, *, pace: int, mode: str = "stream") -> None:
        await self.page.fill("#text", text)
        await self.page.fill("#pace", str(pace))
        await self.page.check(f"[name=mode][value={mode}]")
        await self.page.click("#speak")

    async def text(self, selector: str) -> str:
        """All that stands in an element."""
        return str(await self.page.evaluate("s => document.querySelector(s).textContent", selector))

    async def heard(self) -> Heard:
        told = await self.page.evaluate("takeHeard()")
        pcm = np.frombuffer(base64.b64decode(told["pcm"]), "<i2")
        return Heard(pcm, told["frames"], told["textAtFirstSound"], told["clickedAt"])

    async def shoot(self, name: str) -> None:
        await self.page.screenshot(path=self.shots / f"{name}.png", full_page=True)


@asynccontextmanager
async def visiting(
    chromium: Browser, address: str, shots: Path, *, tap: bool = True, **context: Any
) -> AsyncIterator[Visit]:
    """Open the page of the agent at `address`, as in a window with the settings of `context`.

    With `tap` what it plays is recorded, by a worklet that the agent must serve.
    """
    page = await chromium.new_page(**context)
    visit = Visit(page, shots)
    page.on(
        "websocket",
        lambda socket: socket.on(
            "framesent", lambda frame: visit.sent.append(json.loads(frame)) if frame else None
        ),
    )
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    page.on(
        "console",
        lambda message: (
            visit.complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    if tap:
        await page.add_init_script(path=HERE / "tap.js")
    await page.add_init_script(
        "window.statusLine = () => document.getElementById('status').textContent"
    )
    await page.goto(f"http://{address}/")
    try:
        yield visit
    finally:
        await page.close()


async def ready(visit: Visit) -> None:
    """Wait until the page is connected and knows the voices."""
    await visit.until(
        "!document.getElementById('speak').disabled && document.getElementById('voice').value",
        "the page is connected",
    )
