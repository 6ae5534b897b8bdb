"""A session through SageMaker while everything on the way goes wrong, and while nothing does.

Every accepted segment ends in exactly one of done, error and cancelled, nothing is heard twice, and
the session speaks afterwards. `Ear` fails on whatever breaks the promises of the audio stream.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from firstword import messages as m
from firstword import telemetry
from firstword.streams import Streams
from tests.doubles.gateway_rig import Container, HeldTone, SessionHand, gateway, spoken
from tests.doubles.sagemaker import MISSING, SageMaker, emulated
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.support import eventually

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from services.tts_gateway import sagemaker

TEXT = "The rain had stopped, and nobody noticed it at first."
AFTER = "Then everybody did."
STEADY = ToneOptions(ms_per_char=10, chars_per_piece=20, latency_s=0.02)


@pytest.fixture
async def hand(redis_url: str) -> AsyncIterator[SessionHand]:
    streams = Streams(redis_url)
    yield SessionHand(streams)
    await streams.close()


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short, where somebody never answers."""
    if "never-answer" in request.node.name:
        monkeypatch.setattr(sagemaker, "OPEN_S", 1.0)


@asynccontextmanager
async def serving(
    redis_url: str,
    container: Container,
    made: SageMaker,
    *faults: str,
    query: str = "",
    **options: Any,
) -> AsyncIterator[None]:
    """A gateway that has looked at the endpoint: faults, and what is counted, are the sessions'."""
    async with gateway(redis_url, made.url + query, **options):
        await eventually(lambda: len(made.told) == 2, "a stream was opened, and closed")
        made.told.clear()
        container.connections = 0
        for fault in faults:
            made.emulator.inject(fault)
        yield


async def over(hand: SessionHand, turn: str, timeout: float = 30) -> None:
    async def ended() -> bool:
        return turn in (await hand.hear()).turn_ends

    await eventually(ended, f"turn {turn} is over", timeout=timeout)


async def spoken_to(hand: SessionHand, turn: str) -> None:
    """The same, for long sessions: it reads no audio."""

    async def ended() -> bool:
        return (await hand.state()).get("done_turn") == turn.encode()

    await eventually(ended, f"turn {turn} is over", timeout=150)


# -- what passes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        # the connection, at a moment of the first segment, of the second, and before anything
        *("abort@1", "abort@1:1", "abort@1:3", "abort@1:7", "abort@1-3:4"),
        *("rst@1", "rst@1:3", "rst=0@1:3", "goaway@1", "goaway@1:3", "cut@1:1", "cut@1:3"),
        *("abort@1:in1", "rst@1:in2", "max-duration=0.1@1", "max-duration=0.4@1-3"),
        # the opening
        *("424@1-2", "429@1-2", "500@1", "503@1", "never-answer@1", "slow-open=300"),
        # the pieces
        *("split=7", "split=1:2", "delay=20", "no-window@1"),
    ],
)
async def test_what_passes_costs_no_sample(redis_url: str, hand: SessionHand, fault: str) -> None:
    async with Container(ToneSynthesizer(STEADY)) as container:
        async with (
            emulated(container.url) as made,
            serving(redis_url, container, made, fault),
        ):
            await hand.say("a", AFTER, TEXT, AFTER)
            await over(hand, "a")
            await hand.say("b", TEXT)
            await over(hand, "b")
            ear = await hand.hear()
    assert ear.ends == dict.fromkeys((1, 2, 3, 4), "done")
    texts = {1: AFTER, 2: TEXT, 3: AFTER, 4: TEXT}
    assert ear.segments == {n: spoken(text) for n, text in texts.items()}, "whole, in order, once"


# -- what stays, until somebody mends it ----------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("424", "upstream_refused"),
        ("429", "upstream_throttled"),
        ("500", "upstream_unavailable"),
        ("503", "upstream_unavailable"),
        ("never-answer", "upstream_unreachable"),
        ("abort", "upstream_lost"),
        ("rst:1", "upstream_lost"),
        ("cut:2", "upstream_lost"),
    ],
)
async def test_what_stays_costs_errors_and_the_session_speaks_once_it_is_mended(
    redis_url: str, hand: SessionHand, fault: str, code: str
) -> None:
    async with Container(ToneSynthesizer(STEADY)) as container:
        async with (
            emulated(container.url) as made,
            serving(redis_url, container, made, fault, patience_s=0.5, attempts=2),
        ):
            await hand.say("a", TEXT, AFTER)
            await over(hand, "a")
            made.emulator.heal()
            await hand.say("b", TEXT)
            await over(hand, "b")
            ear = await hand.hear()
    assert ear.ends == {1: code, 2: code, 3: "done"}
    assert ear.segments[3] == spoken(TEXT)


async def test_a_permission_that_is_missing_costs_errors_at_once_and_no_loop(
    redis_url: str, hand: SessionHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Container() as container, emulated(container.url) as made:
        with monkeypatch.context() as wrong:
            wrong.setenv("AWS_SECRET_ACCESS_KEY", "of somebody else")
            async with gateway(redis_url, made.url):
                await hand.say("a", TEXT, AFTER)
                await over(hand, "a")
                events = await hand.events()
                asked = len([line for line in made.told if "403" in line])
                wrong.undo()
                await hand.say("b", TEXT)
                await over(hand, "b")
        ear = await hand.hear()
    assert 2 <= asked <= 3, "once for each segment, and perhaps for `open`"
    assert ear.ends == {1: "upstream_forbidden", 2: "upstream_forbidden", 3: "done"}
    assert ear.segments[3] == spoken(TEXT)
    errors = [event for event in events if isinstance(event, m.ErrorEvent)]
    assert all("credentials" in error.message and not error.retryable for error in errors)


# -- cancels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["delay=0", "abort@1:in2", "no-window", "abort@1:8"])
async def test_a_cancel_ends_its_turn_whatever_happens_to_the_stream(
    redis_url: str, hand: SessionHand, fault: str
) -> None:
    async with Container(HeldTone()) as container:
        held = container.tone
        assert isinstance(held, HeldTone)
        async with (
            emulated(container.url) as made,
            serving(redis_url, container, made, fault),
        ):
            await hand.say("a", TEXT, AFTER)

            async def audible() -> bool:
                return bool((await hand.hear()).segments.get(1))

            await eventually(audible, "audio of the first segment")
            await hand.cancel("a")
            held.go.set()
            await hand.say("b", TEXT)
            await over(hand, "b")
            ear = await hand.hear()
    assert 1 not in ear.ends and 2 not in ear.ends, "cancelled with their turn, and only so"
    assert spoken(TEXT).startswith(bytes(ear.segments[1]))
    assert ear.ends[3] == "done"
    assert ear.segments[3] == spoken(TEXT)


# -- streams that grow old ------------------------------------------------------------------------


@pytest.mark.timeout(240)  # half a minute of speech, or of what a busy machine makes of it
async def test_a_session_outlives_its_streams_and_nobody_hears_it(
    redis_url: str, hand: SessionHand
) -> None:
    """SageMaker ends a stream after 30 minutes: here after 5 s, and we replace it after 1 s."""
    sentences = [f"This is sentence number {n} of two hundred." for n in range(200)]
    rotations, losses = value(telemetry.upstream_rotations), value(telemetry.upstream_reconnects)
    tone = ToneSynthesizer(ToneOptions(ms_per_char=10, chars_per_piece=20, latency_s=0.04))
    async with Container(tone) as container, emulated(container.url, max_duration_s=5) as made:
        async with serving(redis_url, container, made, query="&max_age_s=1"):
            for turn in range(20):
                await hand.say(f"t{turn}", *sentences[turn * 10 : turn * 10 + 10])
            await spoken_to(hand, "t19")
            events = await hand.events()
            ear = await hand.hear()
    rotations = value(telemetry.upstream_rotations) - rotations
    assert rotations >= 20
    assert value(telemetry.upstream_reconnects) == losses, "no stream was lost, all were replaced"
    assert not any(isinstance(event, m.SegmentRestarted) for event in events)
    assert ear.ends == dict.fromkeys(range(1, 201), "done")
    assert ear.segments == {n: spoken(text) for n, text in enumerate(sentences, 1)}
    assert never_without_a_stream(made.told)


async def test_an_idle_session_has_a_young_stream_when_it_is_needed(
    redis_url: str, hand: SessionHand
) -> None:
    async with Container() as container, emulated(container.url, max_duration_s=5) as made:
        async with serving(redis_url, container, made, query="&max_age_s=1"):
            await hand.put(hand.open())
            await eventually(lambda: container.connections >= 1, "it is made before any text")
            await eventually(lambda: container.connections >= 4, "replaced, and again")
            await eventually(lambda: len(made.emulator.calls) == 1, "old ones are closed")
            await hand.say("a", TEXT)
            await over(hand, "a")
            ear = await hand.hear()
    assert ear.segments == {1: spoken(TEXT)}


async def test_a_stream_that_cannot_be_replaced_serves_until_its_end(
    redis_url: str, hand: SessionHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.tts_gateway.connection.RENEW_AGAIN_S", 0.2)
    async with Container() as container, emulated(container.url) as made:
        async with serving(redis_url, container, made, query="&max_age_s=1"):
            await hand.put(hand.open())
            await eventually(lambda: len(made.emulator.calls) == 1, "there is a stream")
            made.emulator.inject("429@1-3")
            await eventually(
                lambda: sum("429" in line for line in made.told) == 3, "it was asked for thrice"
            )
            await hand.say("a", TEXT)
            await over(hand, "a")
            await eventually(lambda: container.connections >= 2, "and then it came")
            await hand.say("b", AFTER)
            await over(hand, "b")
            ear = await hand.hear()
    assert ear.segments == {1: spoken(TEXT), 2: spoken(AFTER)}


def never_without_a_stream(told: list[str]) -> bool:
    """Whether each next stream was open before the last one ended, until the very end."""
    steps = [1 if " open: " in line else -1 for line in told]
    open_streams = list(itertools.accumulate(steps))
    return all(0 < count <= 2 for count in open_streams[:-1]) and open_streams[-1] == 0


def value(counter: object) -> float:
    """Of a counter without labels, in this process."""
    number: float = counter._value.get()  # type: ignore[attr-defined]
    return number
