"""The page at `/` over the whole path with the tone double: every sample is known."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser

from services.agent.scripted import ScriptedSource
from services.agent.service import AgentService
from services.agent.settings import AgentSettings
from services.agent.talk import MakeSource
from services.inference.synthesizer import Audio, Prepared, Stop, Synthesizer
from tests.browser.chromium import BLOCK, HERE, RATE, Heard, Visit, ready, visiting
from tests.browser.conftest import Tell
from tests.doubles.proxy import Proxy
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import Stack, tone_pcm
from tests.support import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

TAP = (HERE / "tap-worklet.js").read_text(encoding="utf-8")
QUICK = ToneOptions(ms_per_char=25)
SENTENCES = (
    "The kettle is on the stove.",
    "Tea will be ready in a minute.",
    "Would you like some milk with it?",
)
TEXT = " ".join(SENTENCES)


def tones(options: ToneOptions) -> Callable[[], Synthesizer]:
    return lambda: ToneSynthesizer(options)


class TappedAgent(AgentService):
    """Serves one more script, which records what the page plays; its policy allows no other's."""

    def app(self) -> web.Application:
        app = super().app()

        async def serve(_request: web.Request) -> web.Response:
            return web.Response(text=TAP, content_type="text/javascript")

        app.router.add_get("/tap-worklet.js", serve)
        return app


@asynccontextmanager
async def serving(
    redis_url: str,
    engine: Callable[[], Synthesizer] | None = None,
    make_source: MakeSource = ScriptedSource,
    **settings: Any,
) -> AsyncIterator[str]:
    """The whole path behind an agent; its address."""
    given = AgentSettings(redis_url=redis_url, http_port=0, **settings)
    async with Stack(redis_url, engine or tones(QUICK)):
        service = await asyncio.to_thread(TappedAgent, given, make_source)
        stop = asyncio.Event()
        running = asyncio.create_task(service.run(stop))
        await eventually(lambda: service.address or running.done(), "the agent serves")
        try:
            yield service.address
        finally:
            stop.set()
            await running


@pytest_asyncio.fixture(loop_scope="module")
async def address(redis_url: str) -> AsyncIterator[str]:
    async with serving(redis_url) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def visit(address: str, chromium: Browser, shots: Path) -> AsyncIterator[Visit]:
    """Somebody on the page, who must have nothing to complain about."""
    async with visiting(chromium, address, shots) as here:
        await ready(here)
        yield here
        assert here.complaints == []


def tone(*sentences: str, options: ToneOptions = QUICK) -> npt.NDArray[np.int16]:
    """The samples of sentences one after the other, as they must arrive."""
    return np.frombuffer(b"".join(tone_pcm(s, options=options) for s in sentences), "<i2")


def matched(heard: Heard, expected: npt.NDArray[np.int16]) -> int:
    """How many samples were played, each as expected, with nothing but silence between."""
    at = 0
    for number, block in enumerate(heard.pcm.reshape(-1, BLOCK)):
        same = block[: len(expected) - at] == expected[at : at + BLOCK]
        count = len(same) if same.all() else int(np.argmin(same))
        assert count and not block[count:].any(), f"block {number} is not what follows {at}"
        at += count
    return at


async def test_a175_a_text_is_spoken_while_it_is_written(visit: Visit) -> None:
    expected = tone(*SENTENCES)
    await visit.say(TEXT, pace=12)
    await visit.until_heard(RATE // 2)
    await visit.shoot("speaking")
    await visit.until_says("Done")
    heard = await visit.heard()
    assert matched(heard, expected) == len(expected)
    assert heard.text_at_first_sound
    assert TEXT.startswith(heard.text_at_first_sound)
    assert heard.text_at_first_sound != TEXT, "it plays on the first sound, not when all is written"
    assert await visit.text("#reply") == TEXT
    marked = await visit.page.locator("#reply .word.heard").all_text_contents()
    assert " ".join(marked) == TEXT
    assert await visit.page.locator("#reply .word.now").count() == 0
    assert await visit.page.is_hidden("#guessed"), "the voice has told when"
    rows = await visit.page.locator("#figures tr").all_text_contents()
    assert [row[:3] for row in rows[1:]] == ["1  ", "2  ", "3  "]
    await visit.page.click("summary")
    await visit.shoot("done")


async def test_no_silence_inside_a_sentence(visit: Visit) -> None:
    long = "This sentence is spoken without a pause, however many pieces it comes in, to its end."
    await visit.say(long, pace=0)
    await visit.until_says("Done")
    heard = await visit.heard()
    assert matched(heard, tone(long)) == len(tone(long))
    assert heard.gaps == []
    assert await visit.text("#waits") == "0 times"


class Wordless(ToneSynthesizer):
    """A voice that tells no times, as those of other makers."""

    def synthesize(self, prepared: Prepared, index: int, stop: Stop) -> Audio:
        return Audio(super().synthesize(prepared, index, stop).samples)


async def test_words_without_times_are_marked_by_length_and_that_is_said(
    redis_url: str, chromium: Browser, shots: Path
) -> None:
    async with (
        serving(redis_url, lambda: Wordless(QUICK)) as address,
        visiting(chromium, address, shots) as visit,
    ):
        await ready(visit)
        await visit.say("Nobody knows when.", pace=0)
        await visit.until_says("Done")
        assert await visit.page.locator("#reply .word.heard").count() == 3
        assert await visit.page.is_visible("#guessed")
        assert visit.complaints == []


async def test_words_under_markup_have_the_voices_times(visit: Visit) -> None:
    text = 'Stop <br> here. See [the map](https://e.org "big map") now.'
    await visit.say(text, pace=0)
    await visit.until_says("Done")
    heard = await visit.page.locator("#reply .word.heard").all_text_contents()
    assert heard == text.split()
    assert not await visit.page.is_visible("#guessed"), "not one is placed by its length"


async def test_an_interruption_is_silent_at_once_and_the_agent_knows_what_was_heard(
    visit: Visit, tell: Tell
) -> None:
    text = "Nobody wants to hear all of this. " * 12
    await visit.say(text, pace=0)
    await visit.until_heard(2 * RATE)
    await visit.page.click("#stop")
    await visit.until("!document.getElementById('receipt').hidden", "the receipt is there")
    heard = await visit.heard()
    played = matched(Heard(heard.pcm[:-BLOCK], heard.frames[:-1], None, None), tone_of(text))
    told = re.search(r"([\d.]+) s heard", await visit.text("#receipt-figures"))
    assert told
    assert float(told[1]) == pytest.approx(played / RATE, abs=0.006), "to the block"
    tell(f"click to silence: {heard.silence_after_click_ms:.0f} ms of sound")
    words = (await visit.text("#heard")).strip()
    assert words
    assert text.startswith(words)
    marked = await visit.page.locator("#reply .word.heard").all_text_contents()
    assert " ".join(marked) == words, "page and agent mean the same words"
    await visit.shoot("interrupted")
    await visit.say("After that it goes on.", pace=0)
    await visit.until_says("Done")
    assert matched(
        Heard(*after(await visit.heard(), len(heard.frames))), tone_of("After that it goes on.")
    )


def tone_of(text: str) -> npt.NDArray[np.int16]:
    return tone(*re.findall(r"\S[^.?!]*[.?!]", text))


def after(heard: Heard, blocks: int) -> tuple[npt.NDArray[np.int16], list[int], None, None]:
    return heard.pcm[blocks * BLOCK :], heard.frames[blocks:], None, None


async def test_a_line_that_breaks_is_not_heard(
    address: str, chromium: Browser, shots: Path, tell: Tell
) -> None:
    sentences = [f"Number {n} of five is said whatever happens." for n in range(5)]
    text = " ".join(sentences)
    async with (
        Proxy(f"http://{address}") as wire,
        visiting(chromium, wire.url.removeprefix("redis://"), shots) as visit,
    ):
        await ready(visit)
        await visit.say(text, pace=15)
        for seconds in (0.2, 1.5, 3):
            await visit.until_heard(int(seconds * RATE))
            cuts = wire.connections
            wire.cut()
            await eventually(partial(lambda n: wire.connections > n, cuts), "it comes back")
        wire.go_dark()  # as behind a router that forgot the connection: it looks open
        await visit.page.evaluate("dispatchEvent(new Event('online'))")
        await visit.until_says("Done")
        heard = await visit.heard()
        assert matched(heard, tone(*sentences)) == len(tone(*sentences)), "to the sample"
        assert await visit.text("#reply") == text
        tell(f"four breaks of the line: {sum(heard.gaps) / RATE:.3f} s of silence heard")


async def test_a_line_that_is_away_for_too_long_is_told(
    redis_url: str, chromium: Browser, shots: Path
) -> None:
    async with (
        serving(redis_url, resume_s=0.01) as address,
        Proxy(f"http://{address}") as wire,
        visiting(chromium, wire.url.removeprefix("redis://"), shots) as visit,
    ):
        await ready(visit)
        await visit.say("Nobody will wait for this. " * 8, pace=15)
        await visit.until_heard(RATE // 4)
        wire.cut()
        await visit.until_says("The line was away for too long")
        await ready(visit)
        await visit.say("Now it works.", pace=0)
        await visit.until_says("Done")
        assert await visit.text("#reply") == "Now it works."


async def test_sound_that_comes_too_slowly_is_waited_for_and_counted(
    redis_url: str, chromium: Browser, shots: Path
) -> None:
    slow = ToneOptions(ms_per_char=25, chars_per_piece=10, rtf=2)
    text = "This voice is slower than it speaks."
    async with (
        serving(redis_url, tones(slow)) as address,
        visiting(chromium, address, shots) as visit,
    ):
        await ready(visit)
        await visit.say(text, pace=0)
        await visit.until_says("Done")
        heard = await visit.heard()
        assert matched(heard, tone(text, options=slow)) == len(tone(text, options=slow))
        times = len(heard.gaps)
        assert times > 0
        assert await visit.text("#waits") == ("once" if times == 1 else f"{times} times")
        assert await visit.page.locator("#waterfall .dry").count() == times
        assert visit.complaints == []


async def test_both_ways_are_compared(visit: Visit) -> None:
    await visit.say("One is short. " * 4, pace=20, mode="both")
    await visit.until("document.getElementById('ratio').textContent.includes('×')", "a ratio")
    shown = [await visit.text(f"#first-{mode}") for mode in ("stream", "batch")]
    stream, batch = (float(seconds.removesuffix(" s")) for seconds in shown)
    told = re.match(r"([\d.]+)×", await visit.text("#ratio"))
    assert told
    assert float(told[1]) == pytest.approx(batch / stream, rel=0.1)
    assert stream < batch
    await visit.page.fill("#text", "Something else.")
    await visit.page.check("[value=stream]")
    await visit.page.click("#speak")
    await visit.until_says("Done")
    assert await visit.text("#first-batch") == "–", "figures of another text are not compared"


async def test_a_model_is_asked_and_its_answer_is_heard(
    redis_url: str, chromium: Browser, shots: Path
) -> None:
    answer = ScriptedSource([SENTENCES[0]])
    async with (
        serving(redis_url, make_source=lambda: answer, source="openai") as address,
        visiting(chromium, address, shots) as visit,
    ):
        await ready(visit)
        assert await visit.text("#text-label") == "Question"
        assert not await visit.page.is_visible("#pace"), "the model has its own pace"
        assert "sky" not in await visit.page.input_value("#text")
        await visit.page.select_option("#passage", "0")
        assert "sky" in await visit.page.input_value("#text")
        await visit.shoot("asking")
        await visit.page.fill("#text", "What is on the stove?")
        await visit.page.click("#speak")
        await visit.until_says("Done")
        (said,) = visit.sent
        assert said["prompt"] == "What is on the stove?"
        assert "text" not in said
        heard = await visit.heard()
        assert matched(heard, tone(SENTENCES[0])) == len(tone(SENTENCES[0]))
        assert await visit.text("#reply") == SENTENCES[0]
        assert visit.complaints == []


async def test_a_token_is_asked_for_and_stays_in_the_tab(
    redis_url: str, chromium: Browser, shots: Path
) -> None:
    digest = hashlib.sha256(b"a-secret").hexdigest()
    async with (
        serving(redis_url, api_tokens=f"me:{digest}") as address,
        visiting(chromium, address, shots, tap=False) as visit,
    ):
        await visit.until("!document.getElementById('token-form').hidden", "it asks")
        assert await visit.page.evaluate("document.activeElement.id") == "token"
        await visit.shoot("token")
        await visit.page.keyboard.type("a-guess")
        await visit.page.keyboard.press("Enter")
        known = "document.getElementById('line').textContent.includes('does not know')"
        await visit.until(known, "it is refused")
        await visit.page.fill("#token", "a-secret")
        await visit.page.focus("#token")
        await visit.page.keyboard.press("Enter")
        await ready(visit)
        assert await visit.page.is_hidden("#token-form")
        await visit.say("It is me.", pace=0)
        await visit.until_says("Done")
        assert await visit.text("#here") == f"{len(tone('It is me.')) / RATE:.2f} s"
        kept = await visit.page.evaluate("[sessionStorage.length, localStorage.length]")
        assert kept == [1, 0]
        assert "a-secret" not in visit.page.url
        assert len(visit.complaints) == 2, "the browser's own words about each refusal"
        assert all("401" in refusal for refusal in visit.complaints)
