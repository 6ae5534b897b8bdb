"""The page's scripts that decide and draw nothing, run in the browser that they are for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = Path(__file__).parents[2] / "services" / "agent" / "page"
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in PAGE.glob("*.js")}

TIMES = """async ([text, told, seconds, spoken]) => {
  const { timesOf, wordsOf } = await import("/words.js");
  const words = wordsOf(text);
  const { begins, ends, exact } = timesOf(text, words, told, seconds, spoken ?? undefined);
  const said = words.map(({ start, end }) => [...text].slice(start, end).join(""));
  return { said, begins, ends, exact };
}"""

REPLY = """async (steps) => {
  const { Reply, ServerClock } = await import("/reply.js");
  const clock = new ServerClock();
  const reply = new Reply("t", "stream", 0);
  reply.rate = 1000;
  return steps.map(([name, ...rest]) => {
    if (name === "begin") {
      const [n, start, end] = rest;
      const told = { n, start, end, text: "", ttfb_ms: 5, committed_at: "90-0", id: "100-0" };
      clock.see(told.id, 1100);
      const segment = reply.begin(told, clock, 1100);
      if (!segment) return null;
      return [segment.text, segment.position, segment.committed, segment.synthesis];
    }
    const answer = reply[name](...rest);
    return name === "played" && answer ? [answer.segment.n, answer.word, answer.over] : answer;
  }).concat([[reply.characters.join(""), reply.received, reply.missing]])
    .map((answer) => answer ?? null);
}"""

PLAYER = """async (steps) => {
  const said = [];
  window.sampleRate = 1000;
  window.currentTime = 0;
  window.AudioWorkletProcessor = class {
    port = { postMessage: (message) => said.push(message) };
  };
  const made = new Promise((resolve) => { window.registerProcessor = (_, kind) => resolve(kind); });
  await import("/player-worklet.js");
  const player = new (await made)();
  const heard = [];
  for (const [name, value] of steps) {
    if (name === "play") {
      const output = new Float32Array(value);
      player.process([], [[output]]);
      heard.push([...output]);
      currentTime += value / sampleRate;
    } else {
      player.take({ [name]: name === "samples" ? Float32Array.from(value) : value });
    }
  }
  return { heard, said: said.filter(({ position, cleared }) => position === undefined || cleared) };
}"""


@pytest_asyncio.fixture(loop_scope="module")
async def page(chromium: Browser) -> AsyncIterator[Page]:
    """An empty page of a site that has the scripts."""

    async def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        if name in SCRIPTS:
            await route.fulfill(body=SCRIPTS[name], content_type="text/javascript")
        else:
            await route.fulfill(body="<!doctype html>", content_type="text/html")

    page = await chromium.new_page()
    await page.route("**/*", answer)
    await page.goto("http://page.test/")
    yield page
    await page.close()


async def times(
    page: Page,
    text: str,
    told: Any = (),
    seconds: float | None = None,
    spoken: str | None = None,
) -> Any:
    return await page.evaluate(TIMES, [text, list(told), seconds, spoken])


async def test_words_are_placed_by_the_voice_or_by_their_length(page: Page) -> None:
    plain = await times(
        page, "Hi, you two.", [[0, 2, 0.1, 0.3], [4, 7, 0.4, 0.6], [8, 11, 0.6, 0.9]]
    )
    assert plain["said"] == ["Hi,", "you", "two."]
    assert (plain["begins"], plain["ends"]) == ([0.1, 0.4, 0.6], [0.3, 0.6, 0.9])
    assert plain["exact"]

    # "Say it, now" is spoken: places in it are not places in what is written, but words are words.
    marked = await times(page, "Say **it** – now", [[0, 3, 0, 1], [4, 6, 1, 2], [7, 10, 2, 3]])
    assert marked["begins"] == [0, 1, 2, 2]
    assert marked["ends"] == [1, 2, 2, 3]
    assert marked["exact"]

    two_as_one = await times(page, "$5 now", [[0, 2, 0, 0.5], [3, 6, 0.5, 1]])
    assert two_as_one["ends"] == [0.5, 1]

    more = [[0, 3, 0, 1], [4, 5, 1, 1.2], [6, 8, 1.2, 1.5], [9, 13, 1.5, 2], [14, 16, 2, 2.3]]
    dash = await times(page, "a – b", [[0, 1, 0, 1], [2, 3, 1, 1.5], [4, 5, 1.5, 2]])
    assert dash["begins"] == [0, 1, 1.5]

    unlike = await times(page, "See `x.py` [here](u) ok", more, seconds=2.3)
    assert not unlike["exact"]
    assert unlike["begins"] == pytest.approx([0, 0.4, 1.1, 2.1])

    known = await times(page, "See `x.py` [here](u) ok", more, spoken="See x.py here ok")
    assert known["exact"]
    assert (known["begins"], known["ends"]) == ([0, 1, 1.5, 2], [1, 1.5, 2, 2.3])

    elsewhere = await times(page, "**Say** it", [[0, 4, 0, 1], [5, 7, 1, 2]], spoken="Tell it")
    assert elsewhere["begins"] == [0, 1], "what is not written stands in its order"

    inside = await times(page, "therein: in", [[0, 2, 0, 1]], spoken="in")
    assert inside["exact"] and inside["begins"] == [0, 0], "a word is no part of another"

    nothing_told = await times(page, "a" * 15 + " " + "b" * 14)
    assert nothing_told["begins"] == pytest.approx([0, 16 / 15])
    assert not nothing_told["exact"]


async def test_words_without_spaces_and_characters_beyond_the_first_plane(page: Page) -> None:
    japanese = await times(page, "今日は晴れです。")
    assert len(japanese["said"]) > 2
    assert "".join(japanese["said"]) == "今日は晴れです。"
    faces = await times(page, "😀😀 yes", [[3, 6, 0.5, 1.0]])
    assert faces["said"] == ["😀😀", "yes"]
    assert faces["begins"] == [0, 0.5]


async def test_a_reply_takes_everything_once(page: Page) -> None:
    told = await page.evaluate(
        REPLY,
        [
            *(
                ["write", 0, "One. ", 1010],
                ["write", 0, "One. Two", 1050],
                ["write", 0, "On", 1060],
            ),
            *(["begin", 7, 0, 4], ["begin", 7, 0, 4]),
            *(["hear", 7, 0, 100], ["hear", 7, 0, 100], ["hear", 7, 50, 100], ["hear", 9, 0, 5]),
            *(["finish", 7, 150, [], 1200], ["played", 100, 1300], ["played", 149, 1350]),
            *(["begin", 8, 5, 8], ["hear", 8, 10, 40], ["restart", 8], ["hear", 8, 0, 60]),
            *(["played", 160, 1400], ["writtenBy", 3], ["writtenBy", 7], ["writtenBy", 8]),
        ],
    )
    assert told[3:5] == [["One.", 0, 1090, 1095], None], "the server's clock on the page's"
    assert told[5:9] == [0, 100, 50, None], "what is here already is not heard again"
    assert told[10:12] == [[7, 0, False], [7, 0, False]]
    assert told[12:16] == [["Two", 150, 1090, 1095], 0, 150, 0]
    assert told[16:] == [[8, 0, False], 1010, 1050, None, ["One. Two", 210, 10]]


async def test_the_player_keeps_samples_in_order_whatever_comes_again(page: Page) -> None:
    ones, twos = [0.1] * 100, [0.2] * 100
    told = await page.evaluate(
        PLAYER,
        [
            *(["samples", ones[:50]], ["play", 50], ["samples", ones[50:]], ["play", 60]),
            *(["samples", twos], ["restart", 40], ["samples", ones[40:]], ["samples", twos]),
            *(["play", 100], ["end", True], ["play", 100]),
        ],
    )
    waited, first, second, third = told["heard"]
    assert waited == [0] * 50, "80 ms are held before the first sound"
    assert first + second + third == pytest.approx([*ones, *twos, *[0] * 60])
    assert told["said"] == [{"sounding": 0}, {"drained": True}]


async def test_the_player_waits_longer_each_time_it_runs_dry_and_fades_when_cut(page: Page) -> None:
    told = await page.evaluate(
        PLAYER,
        [
            *(["samples", [0.5] * 80], ["play", 100], ["samples", [0.5] * 100], ["play", 100]),
            *(["samples", [0.5] * 60], ["play", 100], ["clear", 3], ["play", 10], ["play", 10]),
        ],
    )
    dry, held, again, fading, silent = told["heard"]
    assert dry == [0.5] * 80 + [0] * 20
    assert held == [0] * 100, "80 ms were too little, 100 are"
    assert again == [0.5] * 100
    assert fading == pytest.approx([0.5 * (1 - (i + 1) / 10) for i in range(10)])
    assert silent == [0] * 10
    assert told["said"] == [
        {"sounding": 0},
        {"waiting": True},
        {"sounding": 80},
        {"cleared": 3, "position": 180},
    ]
