"""The page for everyone: by keyboard, by ear, on a phone, in the dark."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.browser.chromium import RATE, Visit
from tests.browser.test_page import address, visit  # noqa: F401 - fixtures

pytestmark = pytest.mark.asyncio(loop_scope="module")

Colours = Literal["light", "dark"]
WINDOWS: dict[str, tuple[int, int, Colours]] = {
    "desktop": (1280, 900, "light"),
    "dark": (1280, 900, "dark"),
    "tablet": (768, 1024, "light"),
    "phone": (390, 844, "light"),
    "phone-dark": (390, 844, "dark"),
    "narrow": (320, 568, "light"),
}
CONTRAST = """selector => {
  const seen = document.querySelector(selector);
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  let ground = seen;
  while (channels(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
  const light = (colour) => {
    const [r, g, b] = channels(colour).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [a, b] = [getComputedStyle(seen).color, getComputedStyle(ground).backgroundColor]
    .map(light).sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""
READ = (
    *(
        "h1",
        ".motto",
        "#line",
        "label",
        ".hint",
        "#speak",
        "#status",
        ".reply",
        "dt",
        "dd",
        ".ratio",
    ),
    *(".word.heard", ".sentence", ".mark", "#heard", "#receipt-figures", ".legend li", "summary"),
)


async def test_everything_is_done_by_keyboard(visit: Visit) -> None:  # noqa: F811
    page = visit.page
    reached = []
    for _ in range(9):
        await page.keyboard.press("Tab")
        reached.append(
            await page.evaluate("document.activeElement.id || document.activeElement.className")
        )
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", f"focus on {reached[-1]} can be seen"
        if reached[-1] == "speak":
            break
    assert reached == ["skip", "passage", "text", "voice", "pace", "", "speak"], "'' is the choice"
    await page.focus("#text")
    await page.keyboard.press("Control+A")
    await page.keyboard.type("No mouse is here. " * 5)
    await page.keyboard.press("Control+Enter")
    await visit.until_heard(RATE // 4)
    await page.keyboard.press("Control+Enter")  # and again, in the middle of it
    await visit.until("heard.blocks.length && statusLine() === 'Speaking'", "it speaks again")
    await page.keyboard.press("Escape")
    await visit.until_says("Interrupted; you heard")
    first, cancelled, second, stopped = visit.sent
    assert [frame["type"] for frame in visit.sent] == ["say", "cancel", "say", "cancel"]
    assert (cancelled["turn"], stopped["turn"]) == (first["turn"], second["turn"])
    assert cancelled["played"]["samples"] > 0
    await visit.until("!document.getElementById('receipt').hidden", "the receipt is there")
    assert await page.evaluate("document.activeElement.id") == "text", "focus stays where it was"


async def test_a_screen_reader_is_told_what_is_what(visit: Visit) -> None:  # noqa: F811
    page = visit.page
    for role, name in (
        *(("button", "Speak"), ("combobox", "Passage"), ("combobox", "Voice"), ("textbox", "Text")),
        *(("spinbutton", "Tokens per second"), ("radio", "while it is written")),
        *(("radio", "when all is written"), ("radio", "both, to compare"), ("group", "Speak")),
        *(("form", "What to say, and how"), ("region", "The reply"), ("link", "Skip to the reply")),
        *(("region", "Where the time goes"), ("region", "Time to the first sound")),
        *(("heading", "Firstword"), ("main", ""), ("banner", "")),
    ):
        found = page.get_by_role(role, name=name, exact=True) if name else page.get_by_role(role)  # type: ignore[arg-type]
        assert await found.count() == 1, f"one {role} {name}"
    assert await page.get_by_role("status").get_attribute("id") == "status"
    assert await page.evaluate("document.documentElement.lang") == "en"
    assert await page.evaluate("[...document.querySelectorAll('[id]')].length") == len(
        set(await page.evaluate("[...document.querySelectorAll('[id]')].map(({ id }) => id)"))
    ), "no id twice"
    await visit.say("Look. And listen.", pace=0)
    await visit.until_says("Done")
    picture = page.get_by_role("img")
    assert (await picture.get_attribute("aria-label") or "").startswith("Waterfall of 2 segments")
    await page.get_by_text("In figures").click()
    assert await page.get_by_role("columnheader").count() == 10
    assert await page.get_by_role("rowheader").count() == 2


async def test_it_fits_and_can_be_read_on_every_screen(visit: Visit) -> None:  # noqa: F811
    await visit.say("This is a text that is read on every kind of screen. " * 8, pace=0)
    await visit.until_heard(RATE)
    for name in WINDOWS:
        await look(visit, name)
        await visit.shoot(f"speaking-{name}")
    await visit.page.click("#stop")
    await visit.until("!document.getElementById('receipt').hidden", "the receipt is there")
    for name in WINDOWS:
        await look(visit, name)
        await visit.shoot(f"interrupted-{name}")
        wide = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
        assert await visit.page.evaluate(wide) == 0, f"{name}: nothing is wider than the window"
        for selector in READ:
            contrast = await visit.page.evaluate(CONTRAST, selector)
            assert contrast >= 4.5, f"{name}: {selector} can be read"


async def look(visit: Visit, name: str) -> None:  # noqa: F811
    width, height, colours = WINDOWS[name]
    await visit.page.set_viewport_size({"width": width, "height": height})
    await visit.page.emulate_media(color_scheme=colours, reduced_motion="reduce")
