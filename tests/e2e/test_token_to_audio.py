"""One token's way through the services (docs/ARCHITECTURE.md), over a real server.

Only the synthesizer is a double: its samples can be computed, so every one of them is checked.
"""

from __future__ import annotations

import pytest

from firstword import messages as m
from firstword.client import collect
from tests.e2e.stack import Stack, tone_pcm, until_done

pytestmark = pytest.mark.streams


async def test_speech_begins_while_the_text_is_still_being_written(stack: Stack) -> None:
    async with stack.firstword.session("demo", voice="af_bella") as session:
        events = await session.listener()

        await session.text("Hello there.", "t1")
        await session.text(" How", "t1")  # the token that makes the first sentence certain
        started = [(await anext(events)).message for _ in range(3)]

        assert started[0] == m.TurnStarted(turn="t1", voice="af_bella", sample_rate=24_000)
        assert isinstance(started[1], m.SegmentStarted)
        assert (started[1].text, started[1].start, started[1].end) == ("Hello there.", 0, 12)
        assert isinstance(started[2], m.AudioChunk)
        assert len(started[2].data) <= 2 * 2400, "the first chunk is at most 100 ms"

        await session.text(" are you? The tail has no mark", "t1")
        await session.end("t1")
        rest = await until_done(events)

    chunks = [e for e in [started[2], *rest] if isinstance(e, m.AudioChunk)]
    for n, text in enumerate(["Hello there.", "How are you?", "The tail has no mark"], start=1):
        of_segment = [chunk for chunk in chunks if chunk.n == n]
        assert b"".join(c.data for c in of_segment) == tone_pcm(text, "af_bella")
        assert all(len(chunk.data) <= 16_000 for chunk in of_segment)
        offsets = [chunk.offset for chunk in of_segment]
        ends = [chunk.offset + len(chunk.data) // 2 for chunk in of_segment]
        assert offsets == [0, *ends[:-1]], "chunks join without a gap"
    done = rest[-1]
    assert isinstance(done, m.TurnDone)
    assert (done.segments, done.reason) == (3, "complete")
    assert done.samples == sum(len(chunk.data) for chunk in chunks) // 2
    assert done.ttfa_ms is not None


async def test_a_line_of_a_shell_speaks(stack: Stack) -> None:
    session = stack.firstword.session("demo")
    events = await session.listener()
    await stack.firstword.streams.append(
        "fw:text", {"session": "demo", "text": "Hi. And a tail", "end": "1"}
    )
    spoken = await until_done(events)
    assert [e.text for e in spoken if isinstance(e, m.SegmentStarted)] == ["Hi.", "And a tail"]


async def test_the_session_goes_on_with_its_connection(stack: Stack) -> None:
    async with stack.firstword.session("demo") as session:
        for text in ("One turn.", "Another turn.", "A third."):
            events = await session.listener()
            turn = await session.say(text)
            audio = await collect(events, turn)
            assert audio.pcm == tone_pcm(text)
        assert len(stack.inference._connections) == 1, "one connection for the whole session"
        events = await session.listener()
        await session.close()
        assert (await anext(events)).message == m.Closed(reason="closed")


async def test_two_listeners_hear_the_same_bytes(stack: Stack) -> None:
    async with stack.firstword.session("demo") as session:
        one, two = await session.listener(), await session.listener()
        turn = await session.say("The same for both. Every byte of it.")
        first, second = await collect(one, turn), await collect(two, turn)
        assert (
            first.pcm
            == second.pcm
            == tone_pcm("The same for both.") + tone_pcm("Every byte of it.")
        )
