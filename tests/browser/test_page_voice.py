"""The page with the real voice: what the loudspeaker gets is what was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.chromium import BLOCK, RATE, ready, visiting
from tests.browser.conftest import Tell
from tests.browser.test_page import serving
from tests.doubles import ears, engines

TEXT = "The kettle is on the stove. Tea will be ready in a minute."

pytestmark = [pytest.mark.model, pytest.mark.asyncio(loop_scope="module")]


async def test_the_real_voice_is_heard_and_understood(
    redis_url: str, chromium: Browser, shots: Path, tell: Tell
) -> None:
    async with (
        serving(redis_url, engines.kokoro) as address,
        visiting(chromium, address, shots) as visit,
    ):
        await ready(visit)
        await visit.say(TEXT, pace=12)
        await visit.until_heard(RATE)
        await visit.shoot("real-speaking")
        await visit.until_says("Done")
        heard = await visit.heard()
        first, waits = await visit.text("#first-stream"), await visit.text("#waits")
        here = float((await visit.text("#here")).removesuffix(" s"))
        await visit.page.click("summary")
        await visit.shoot("real-done")
        assert await visit.page.locator("#reply .word.heard").count() == len(TEXT.split())
        assert visit.complaints == []
    tell(f"first sound after {first}, ran dry {waits}")
    played = (heard.frames[-1] + BLOCK - heard.frames[0]) / RATE
    assert here == pytest.approx(4.0, rel=0.25), "as long as such a text takes"
    if waits == "0 times":
        assert played == pytest.approx(here, abs=0.5), "without its silence at the end"
        assert max(heard.gaps, default=0) < RATE / 2, "no silence but the voice's own"
    assert ears.share_recognised(TEXT, heard.pcm.tobytes()) >= 0.8
