"""Bad input costs a clear error or silence, and the next sentence on the session speaks."""

from __future__ import annotations

from typing import Any

import pytest

from firstword import keys
from firstword import messages as m
from firstword.client import collect
from tests.e2e.stack import Stack, tone_pcm, until_done

PARTITION = keys.ingress(keys.partition_of("demo", keys.DEFAULT_PARTITIONS))
"""Where the client publishes too, so that there is an order between the two."""

EMOJI = "\U0001f600\U0001f389 \U0001f44d"

CASES: dict[str, tuple[dict[Any, Any], list[str], list[str]]] = {
    # entry -> what is spoken, codes of error events
    "empty text": ({"text": "", "end": 1}, [], []),
    "only emoji": ({"text": EMOJI, "end": 1}, [], []),
    "only marks": ({"text": "... !? —", "end": 1}, [], []),
    "a NUL inside": ({"text": "Hello\0 there.", "end": 1}, ["Hello"], []),
    "an unknown voice": (
        {"text": "Hello there.", "voice": "af_nobody", "end": 1},
        [],
        ["unknown_voice"],
    ),
    "bad UTF-8": ({"text": b"Hello \xff\xfe there.", "end": 1}, ["Hello"], []),
    "no text and no verb": ({"turn": "t1"}, [], ["nothing_to_do"]),
    "a bad number": ({"text": "Hi", "seq": "first"}, [], ["bad_field"]),
    "a bad setting": ({"text": "Hi there.", "speed": "fast", "end": 1}, ["Hi"], ["bad_setting"]),
    "not msgpack": ({"m": b"\xc1\xc1"}, [], []),
}


@pytest.mark.parametrize("case", CASES)
async def test_bad_input(stack: Stack, case: str) -> None:
    fields, spoken, codes = CASES[case]
    session = stack.firstword.session("demo")
    events = await session.listener()
    await stack.firstword.streams.append(PARTITION, {"session": "demo", **fields})
    turn = await session.say("The next sentence speaks.")
    seen: list[m.Audio] = []
    while not any(isinstance(e, m.TurnDone) and e.turn == turn for e in seen):
        seen += await until_done(events)
    texts = [e.text for e in seen if isinstance(e, m.SegmentStarted)]
    assert [e.code for e in seen if isinstance(e, m.ErrorEvent)] == codes
    assert [text.split()[0].rstrip("\0") for text in texts[:-1]] == spoken
    assert texts[-1] == "The next sentence speaks."


async def test_what_nobody_can_use_is_kept_for_an_operator(stack: Stack) -> None:
    streams = stack.firstword.streams
    await streams.append(PARTITION, {"m": b"\xc1", "session": "demo"})
    session = stack.firstword.session("demo")
    events = await session.listener()
    turn = await session.say("Onward.")
    await collect(events, turn)
    [(_, fields)] = await streams.commands.xrange(keys.DEAD)
    assert fields[b"source"] == PARTITION.encode()
    assert fields[b"reason"] == b"bad_msgpack"
    assert fields[b"x:m"] == b"\xc1"


async def test_a_hundred_kilobytes_of_text_are_spoken_whole(stack: Stack) -> None:
    words = "So it went on and on, with no end in sight, "
    text = words * (100_000 // len(words))
    async with stack.firstword.session("long", pace="none") as session:
        events = await session.listener()
        turn = await session.say(text)
        seen = await until_done(events)
    started = [e for e in seen if isinstance(e, m.SegmentStarted)]
    assert "".join("".join(e.text.split()) for e in started) == "".join(text.split())
    assert not [e for e in seen if isinstance(e, m.ErrorEvent)]
    assert isinstance(seen[-1], m.TurnDone)
    assert seen[-1].turn == turn


async def test_an_entry_over_the_limit_is_refused_and_told(stack: Stack) -> None:
    session = stack.firstword.session("demo")
    events = await session.listener()
    await stack.firstword.streams.append(
        PARTITION, {"session": "demo", "text": "x" * 1_100_000, "end": 1}
    )
    event = (await anext(events)).message
    assert isinstance(event, m.ErrorEvent)
    assert event.code == "too_large"
    turn = await session.say("Onward.")
    assert (await collect(events, turn)).pcm == tone_pcm("Onward.")
