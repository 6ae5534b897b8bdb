"""Area cancel, and what of session_leak cancels are blamed for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from firstword import messages as m
from firstword.client import Session, collect
from firstword.listener import Listener
from tests.doubles.ear import Ear
from tests.doubles.gateway_rig import OPTIONS, HeldTone, SessionHand, gateway, spoken
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.e2e.stack import Stack, tone_pcm, until_done
from tests.reports.hearing import begun, over
from tests.reports.scripted import Peer, Request, ScriptedContainer
from tests.support import eventually

HELD = "A reply that nobody will hear to its end, as it is interrupted."
REPLY = "And now this."
ROUNDS = 100
assert len(REPLY) <= OPTIONS.chars_per_piece < len(HELD)


@pytest.fixture
async def held_stack(redis_url: str) -> AsyncIterator[Stack]:
    """Of each segment the first piece is spoken, and the rest never."""
    async with Stack(redis_url, HeldTone) as running:
        yield running


async def sounding(events: Listener) -> list[m.Audio]:
    """The events up to the first sound."""
    seen: list[m.Audio] = []
    async for event in events:
        seen.append(event.message)
        if isinstance(event.message, m.AudioChunk):
            break
    return seen


async def test_a030_a038_a070_after_each_of_many_interruptions_the_reply_is_whole(
    held_stack: Stack,
) -> None:
    """Every event of the session is heard by an ear that minds anything out of its turn."""
    heard: list[m.Audio] = []
    connections = set()
    async with held_stack.firstword.session("demo") as session:
        events = await session.listener()
        for number in range(ROUNDS):
            old, new = f"old{number}", f"new{number}"
            await session.say(HELD, turn=old)
            heard += await sounding(events)
            receipt = await session.cancel(old)
            assert (receipt.turn, receipt.already_done) == (old, False)
            await session.say(REPLY, turn=new)
            heard += await until_done(events) + await until_done(events)
            connections |= held_stack.inference._connections
            assert len(held_stack.inference._connections) == 1
    ear = Ear(heard)
    assert len(connections) == 1, "one connection to synthesis for all of them"
    kinds = [type(end) for end in ear.turn_ends.values()]
    assert kinds == [m.TurnCancelled, m.TurnDone] * ROUNDS
    done = [ear.segments[n] for n, end in ear.ends.items() if end == "done"]
    assert done == [spoken(REPLY)] * ROUNDS


async def test_a068_interruptions_faster_than_anything_is_spoken_do_not_pile_up(
    redis_url: str,
) -> None:
    tone = ToneSynthesizer(ToneOptions(ms_per_char=10, chars_per_piece=20, latency_s=0.05))
    async with Stack(redis_url, lambda: tone) as stack, stack.firstword.session("demo") as session:
        events = await session.listener()
        cancels = []
        for number in range(20):
            await session.say(HELD, turn=f"t{number}")
            cancels.append(asyncio.create_task(session.cancel(f"t{number}")))
        receipts = await asyncio.gather(*cancels)
        assert [receipt.turn for receipt in receipts] == [f"t{n}" for n in range(20)]
        assert len(stack.inference._connections) <= 1
        turn = await session.say(REPLY)
        assert (await collect(events, turn)).pcm == tone_pcm(REPLY, options=tone.options)
        assert len(stack.inference._connections) == 1


# -- what comes late ------------------------------------------------------------------------------


@pytest.mark.parametrize("late", ["at the cancel", "before the next answer"])
async def test_a032_a035_a042_what_comes_late_of_a_cancelled_synthesis_is_dropped(
    redis_url: str, hand: SessionHand, late: str
) -> None:
    """Audio, words and a completion of the old request, from a container that ignores cancels."""
    pcm = spoken(HELD)
    half = len(pcm) // 4 * 2

    async def rest_of(peer: Peer, old: Request) -> None:
        await peer.audio(pcm[half:])
        words = [[0, 1, 0.0, 0.5], [2, 7, 0.5, 1.0]]
        await peer.complete(old, len(pcm) // 2, words=words)

    async def answer(peer: Peer, request: Request) -> None:
        if request["text"] == HELD:
            await peer.start(request)
            await peer.audio(pcm[:half])
            await eventually(lambda: peer.cancels, "the request is cancelled")
            if late == "at the cancel":
                await rest_of(peer, request)
            return
        if late == "before the next answer":
            await rest_of(peer, peer.requests[0])
        await peer.speak(request)

    async with ScriptedContainer(answer) as container, gateway(redis_url, container.url):
        await hand.say("old", HELD)
        await begun(hand, 1)
        await hand.cancel("old")
        await eventually(lambda: container.peers[0].cancels, "the container is told to stop")
        await hand.say("new", REPLY)
        ear = await over(hand, "new")
    assert ear.ends == {2: "done"}
    assert ear.segments[2] == spoken(REPLY)
    assert pcm.startswith(bytes(ear.segments[1]))
    (done,) = [event for event in await hand.events() if isinstance(event, m.SegmentDone)]
    assert done.words == [], "those of the old request are not told as the new one's"
    assert len(container.peers) == 1


# -- what was heard -------------------------------------------------------------------------------


async def test_a043_the_receipt_says_which_words_the_caller_heard(held_stack: Stack) -> None:
    first, *others = ["Yes, of course.", "The second sentence is interrupted.", "Three.", "Four."]
    session: Session = held_stack.firstword.session("demo")
    async with session:
        events = await session.listener()
        turn = await session.say(" ".join([first, *others]))
        async for event in events:
            if isinstance(event.message, m.AudioChunk) and event.message.n == 2:
                break
        samples = len(spoken(first)) // 2
        receipt = await session.cancel(turn, {"turn": turn, "n": 1, "samples": samples})
    assert receipt.heard is not None
    assert receipt.heard["text"] == first
    assert receipt.sent["segments"] == 1, "the first was spoken whole"
    assert receipt.sent["n"] == 2
    assert 0 < receipt.sent["samples"] < len(spoken(others[0])) // 2
