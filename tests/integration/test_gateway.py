"""The gateway on a real server, with the real inference service around a tone behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from firstword import codec, keys
from firstword import messages as m
from firstword.ids import seconds_between
from firstword.listener import Listener
from firstword.ownership import Ownership, new_token
from firstword.streams import Streams
from tests.doubles.gateway_rig import Container, HeldTone, SessionHand, gateway, spoken
from tests.doubles.tone_synthesizer import ToneOptions, ToneSynthesizer
from tests.support import eventually

LONG = "The rain had stopped, and nobody noticed it at first."
SHORT = "Then everybody did."


@pytest.fixture
async def hand(streams: Streams) -> SessionHand:
    return SessionHand(streams)


@pytest.fixture
async def container() -> AsyncIterator[Container]:
    async with Container() as running:
        yield running


@pytest.fixture
async def held() -> AsyncIterator[tuple[Container, HeldTone]]:
    """A container that holds back all but the first piece of each segment."""
    tone = HeldTone()
    async with Container(tone) as running:
        yield running, tone


async def over(hand: SessionHand, turn: str) -> None:
    async def ended() -> bool:
        return turn in (await hand.hear()).turn_ends

    await eventually(ended, f"turn {turn} is over")


async def begun(hand: SessionHand, n: int) -> None:
    async def audible() -> bool:
        return bool((await hand.hear()).segments.get(n))

    await eventually(audible, f"audio of segment {n}")


# -- one connection -------------------------------------------------------------------------------


async def test_one_connection_speaks_every_segment_and_turn(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url):
        await hand.say("a", LONG, SHORT)
        await over(hand, "a")
        await hand.say("b", SHORT)
        await over(hand, "b")
        ear = await hand.hear()
        assert ear.segments == {1: spoken(LONG), 2: spoken(SHORT), 3: spoken(SHORT)}
        assert ear.ends == {1: "done", 2: "done", 3: "done"}
        assert container.connections == 1

        await hand.put(m.SessionClose())
        await eventually(lambda: not container.open_connections, "the connection is closed")

        async def left() -> bool:
            return "token" not in await hand.state()

        await eventually(left, "the session is left")
    assert (await hand.events())[-1] == m.Closed(reason="closed")
    for key in (keys.speech_state("s"), keys.segments("s")):
        assert 120 < await hand.streams.commands.ttl(key) <= 3600
    assert 0 < await hand.streams.commands.ttl(keys.audio("s")) <= 120, "as long as any audio"


async def test_a_session_is_connected_before_there_is_text(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url):
        await hand.put(hand.open())
        await eventually(lambda: container.open_connections == 1, "the session is connected")
    assert await hand.events() == []


async def test_sessions_have_a_connection_each_and_never_mix(
    redis_url: str, streams: Streams, container: Container
) -> None:
    hands = [SessionHand(streams, f"s{i}") for i in range(8)]
    async with gateway(redis_url, container.url):
        texts = {hand.name: f"{hand.name} says {hand.name * 9}" for hand in hands}
        await asyncio.gather(*(hand.say("t", texts[hand.name], SHORT) for hand in hands))
        for hand in hands:
            await over(hand, "t")
            ear = await hand.hear()
            assert ear.segments == {1: spoken(texts[hand.name]), 2: spoken(SHORT)}
    assert container.connections == len(hands)


async def test_another_sample_rate_reaches_the_listeners(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url):
        await hand.put(hand.open(sample_rate=8_000))
        await hand.put(hand.segment("t", 1, SHORT, first=True), m.TurnEnd(turn="t", segments=1))
        await over(hand, "t")
    events = await hand.events()
    assert events[0] == m.TurnStarted(turn="t", voice="af_heart", sample_rate=8_000)
    assert len((await hand.hear()).segments[1]) == pytest.approx(len(spoken(SHORT)) / 3, abs=64)


# -- idle -----------------------------------------------------------------------------------------


async def test_an_idle_session_is_left_and_comes_back(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    listener = Listener(hand.streams, hand.name, "0-0")
    async with gateway(redis_url, container.url, idle_s=1, retention_s=1, session_ttl_s=500):
        await hand.say("a", SHORT)
        await over(hand, "a")
        await eventually(lambda: not container.open_connections, "the connection is closed")

        async def left() -> bool:
            return "token" not in await hand.state()

        await eventually(left, "the session is left")
        for key in (keys.speech_state("s"), keys.segments("s"), keys.audio("s")):
            assert 0 < await hand.streams.commands.ttl(key) <= 500
        assert await hand.streams.commands.xlen(keys.segments("s")) == 0
        assert [type(event) for event in await hand.events()] == [m.TurnDone]

        async def released() -> bool:
            return not await hand.streams.commands.zcard(keys.owned("gateway"))

        await eventually(released, "the session has no owner")
        await hand.say("b", LONG)
        await over(hand, "b")
        assert await hand.streams.commands.ttl(keys.audio("s")) == -1  # it has an owner again
    assert container.connections == 2

    # Whoever comes for what is gone is told, and whoever was there hears the rest.
    first = await anext(listener)
    assert isinstance(first.message, m.Gap)
    heard = [(await anext(listener)).message for _ in range(3)]
    assert [type(message) for message in heard] == [m.TurnDone, m.TurnStarted, m.SegmentStarted]


async def test_the_position_of_a_session_left_idle_is_no_lost_state(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url, idle_s=1, retention_s=1):
        await hand.say("a", SHORT)
        await over(hand, "a")
        last = await hand.streams.last_id(keys.audio("s"))

        async def left() -> bool:
            return "token" not in await hand.state()

        await eventually(left, "the session is left")
        listener = Listener(hand.streams, hand.name, last)
        following = asyncio.create_task(anext(listener))
        await hand.say("b", SHORT)
        assert isinstance((await following).message, m.TurnStarted)


async def test_a_bell_that_is_lost_costs_a_sweep(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url, idle_s=1):  # swept as often
        await hand.say("a", SHORT)
        await over(hand, "a")
        segment = hand.segment("b", 2, LONG, first=True)
        for message in (segment, m.TurnEnd(turn="b", segments=1)):
            packed = codec.pack(message, "s")
            await hand.streams.append(keys.segments("s"), {"m": packed})
        await over(hand, "b")
    assert (await hand.hear()).segments[2] == spoken(LONG)


# -- a backend that fails -------------------------------------------------------------------------


async def test_a_container_that_dies_inside_a_segment_costs_no_sample(
    redis_url: str, hand: SessionHand, held: tuple[Container, HeldTone]
) -> None:
    container, tone = held
    async with gateway(redis_url, container.url):
        await hand.say("t", LONG, SHORT)
        await begun(hand, 1)
        container.proxy.cut()
        tone.go.set()
        await over(hand, "t")
    ear = await hand.hear()
    assert ear.segments == {1: spoken(LONG), 2: spoken(SHORT)}
    assert container.connections == 2
    assert not any(isinstance(event, m.SegmentRestarted) for event in await hand.events())


async def test_a_container_that_cannot_be_reached_costs_an_error_a_segment(
    redis_url: str, hand: SessionHand
) -> None:
    async with gateway(redis_url, "ws://127.0.0.1:1/nobody", patience_s=0.2):
        await hand.say("t", LONG, SHORT)
        await over(hand, "t")
    ear = await hand.hear()
    assert ear.ends == {1: "upstream_unreachable", 2: "upstream_unreachable"}
    assert isinstance(ear.turn_ends["t"], m.TurnDone)


async def test_a_container_that_hangs_costs_an_error(redis_url: str, hand: SessionHand) -> None:
    tone = ToneSynthesizer(ToneOptions(hang=True))
    async with Container(tone) as container:
        async with gateway(redis_url, container.url, attempts=2, first_byte_s=0.2):
            await hand.say("t", SHORT)
            await over(hand, "t")
    assert (await hand.hear()).ends == {1: "upstream_timeout"}


async def test_a_request_that_may_succeed_later_waits_and_is_made_again(
    redis_url: str, hand: SessionHand
) -> None:
    tone = ToneSynthesizer(ToneOptions(ms_per_char=10, chars_per_piece=20, fail_times=2))
    async with Container(tone) as container:
        async with gateway(redis_url, container.url):
            await hand.say("t", LONG)
            await over(hand, "t")
        assert container.connections == 1
    assert (await hand.hear()).segments == {1: spoken(LONG)}


async def test_a_voice_that_nobody_has_is_told_once(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url):
        await hand.put(hand.open())
        odd = replace(hand.segment("t", 1, SHORT, first=True), voice="nobody")
        await hand.put(odd, hand.segment("t", 2, LONG, first=False))
        await hand.put(m.TurnEnd(turn="t", segments=2))
        await over(hand, "t")
    ear = await hand.hear()
    assert ear.ends == {1: "unknown_voice", 2: "done"}
    assert ear.segments == {2: spoken(LONG)}


# -- pace -----------------------------------------------------------------------------------------


async def test_audio_is_not_made_far_ahead_of_a_realtime_listener(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    two_seconds = "Round and round it goes. " * 8
    async with gateway(redis_url, container.url, max_ahead_s=1):
        await hand.put(hand.open(pace="realtime"))
        await hand.say("t", two_seconds, SHORT)
        await over(hand, "t")
    assert (await hand.hear()).segments == {1: spoken(two_seconds), 2: spoken(SHORT)}
    entries = await hand.streams.range(keys.audio("s"), "0-0")
    events = [codec.unpack(entry.fields[b"m"], codec.AUDIO) for entry in entries]
    first, second = (i for i, event in enumerate(events) if isinstance(event, m.SegmentStarted))
    assert seconds_between(entries[first].id, entries[second].id) > 0.9


async def test_a_cancel_of_what_is_held_back_lets_the_next_turn_begin(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url, max_ahead_s=1):
        await hand.put(hand.open(pace="realtime"))
        await hand.say("a", "Round and round it goes. " * 200, SHORT)

        async def spoken_first() -> bool:
            return 1 in (await hand.hear()).ends

        await eventually(spoken_first, "50 seconds of audio are out")
        await hand.cancel("a")
        await hand.say("b", SHORT)
        await over(hand, "b")
    assert (await hand.hear()).ends == {1: "done", 3: "done"}


# -- cancel ---------------------------------------------------------------------------------------


async def test_a_cancel_stops_the_backend_and_the_session_speaks_on(
    redis_url: str, hand: SessionHand, held: tuple[Container, HeldTone]
) -> None:
    container, tone = held
    async with gateway(redis_url, container.url):
        await hand.say("a", LONG, SHORT)
        await begun(hand, 1)
        await hand.cancel("a")
        await eventually(tone.stopped.is_set, "the engine is stopped")
        tone.go.set()
        await hand.say("b", SHORT)
        await over(hand, "b")
    ear = await hand.hear()
    assert ear.ends == {3: "done"}
    assert ear.segments[3] == spoken(SHORT)
    assert spoken(LONG).startswith(bytes(ear.segments[1]))
    assert container.connections == 1


# -- entries nobody can use -----------------------------------------------------------------------


async def test_a_bad_entry_goes_to_the_dead_letters_and_the_session_goes_on(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url):
        bad = await hand.put_raw(b"\xc1 no msgpack")
        await hand.put_raw(codec.pack(m.Closed(reason="not of this stream"), "s"))
        await hand.say("t", SHORT)
        await over(hand, "t")
    assert (await hand.hear()).ends == {1: "done"}
    ((_, dead),) = await hand.streams.commands.xrange(keys.DEAD)
    assert dead == {
        b"source": keys.segments("s").encode(),
        b"id": bad.encode(),
        b"reason": b"bad_msgpack",
        b"x:m": b"\xc1 no msgpack",
    }


async def test_a_bad_entry_is_not_read_again_by_the_next_owner(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url):
        bad = await hand.put_raw(b"\xc1")

        async def passed() -> bool:
            return (await hand.state()).get("position") == bad.encode()

        await eventually(passed, "the entry is passed")
    async with gateway(redis_url, container.url):
        await hand.say("t", SHORT)
        await over(hand, "t")
    assert await hand.streams.commands.xlen(keys.DEAD) == 1


async def test_hints_are_used_and_dropped_unheard(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    def hint(n: int, text: str) -> m.Tentative:
        return m.Tentative(turn="t", n=n, text=text, voice="af_heart", speed=1.0, lang="auto")

    async with gateway(redis_url, container.url):
        await hand.put(hand.open())
        await eventually(lambda: container.open_connections == 1, "the session is connected")
        await hand.put(hint(1, SHORT))
        await eventually(container.tone.running.is_set, "the hint is synthesised")
        assert await hand.events() == []
        await hand.put(
            hand.segment("t", 1, SHORT, first=True),
            hint(2, "Not this."),
            m.Revoke(turn="t", n=2),
            hand.segment("t", 2, LONG, first=False),
            hint(3, "Nor that."),
            m.TurnEnd(turn="t", segments=2),
        )
        await over(hand, "t")
    assert (await hand.hear()).segments == {1: spoken(SHORT), 2: spoken(LONG)}


# -- retention ------------------------------------------------------------------------------------


async def test_audio_is_kept_up_to_its_limit_from_the_start_of_a_segment(
    redis_url: str, hand: SessionHand, container: Container
) -> None:
    async with gateway(redis_url, container.url, retention_bytes=len(spoken(LONG)) + 1):
        await hand.say("t", LONG, LONG, LONG)

        async def done() -> bool:
            return any(isinstance(event, m.TurnDone) for event in await hand.events())

        await eventually(done, "the turn is over")
    events = await hand.events()
    assert isinstance(events[0], m.SegmentStarted)
    assert events[0].n == 3
    kept = (await hand.state())["kept_from"].decode()
    assert (await hand.streams.range(keys.audio("s"), "0-0", count=1))[0].id == kept


# -- ownership ------------------------------------------------------------------------------------


async def test_a_gateway_that_stops_hands_over_and_nothing_is_lost(
    redis_url: str, hand: SessionHand, held: tuple[Container, HeldTone]
) -> None:
    container, tone = held
    async with gateway(redis_url, container.url) as leave:
        await hand.say("t", LONG, SHORT, LONG)
        await begun(hand, 1)
        first_owner = (await hand.state())["worker"]
        async with gateway(redis_url, container.url):
            leaving = asyncio.create_task(leave())

            async def draining() -> bool:
                return bool(await hand.streams.commands.scard(keys.draining("gateway")))

            await eventually(draining, "the first gateway is about to leave")
            tone.go.set()
            await over(hand, "t")
            assert (await hand.state())["worker"] != first_owner
            await leaving
    ear = await hand.hear()
    assert ear.segments == {1: spoken(LONG), 2: spoken(SHORT), 3: spoken(LONG)}
    assert ear.ends == {1: "done", 2: "done", 3: "done"}


async def test_a_worker_that_was_fenced_off_begins_anew(
    redis_url: str, hand: SessionHand, held: tuple[Container, HeldTone]
) -> None:
    container, tone = held
    async with gateway(redis_url, container.url):
        await hand.say("t", LONG, SHORT)
        await begun(hand, 1)
        # A zombie's last act: it installs its token, and then never does anything again.
        await hand.streams.acquire([keys.speech_state("s")], new_token(), "zombie")
        tone.go.set()
        await over(hand, "t")
    assert (await hand.hear()).segments == {1: spoken(LONG), 2: spoken(SHORT)}


async def test_a_session_that_another_worker_owns_is_left_alone(
    redis_url: str, hand: SessionHand, held: tuple[Container, HeldTone]
) -> None:
    container, tone = held
    async with gateway(redis_url, container.url):
        await hand.say("t", LONG, SHORT)
        await begun(hand, 1)
        await hand.streams.commands.hset(keys.owners("gateway"), "s", "another")
        await hand.streams.acquire([keys.speech_state("s")], new_token(), "another")
        before = await hand.events()
        tone.go.set()
        await eventually(lambda: not container.open_connections, "the session is let go")
    assert await hand.events() == before
    assert (await hand.state())["worker"] == b"another"


@pytest.mark.parametrize("how", ["idle", "closed"])
async def test_work_that_comes_while_the_gateway_leaves_is_not_lost(
    redis_url: str,
    hand: SessionHand,
    container: Container,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    """Between the last look and the release the session still has an owner: an offer is in vain."""
    release = Ownership.release
    squeezed_in: list[int] = []

    async def late(self: Ownership, unit: str, *, to_others: bool) -> None:
        if not squeezed_in:
            squeezed_in.extend(await hand.say("b", LONG))
        await release(self, unit, to_others=to_others)

    monkeypatch.setattr(Ownership, "release", late)
    async with gateway(redis_url, container.url, idle_s=1, retention_s=1):
        await hand.say("a", SHORT)
        if how == "closed":
            await hand.put(m.SessionClose())
        await eventually(lambda: bool(squeezed_in), "the gateway leaves the session")
        await over(hand, "b")
    ear = await hand.hear()
    assert ear.segments[2] == spoken(LONG)


async def test_a_release_that_fails_is_made_again(
    redis_url: str, hand: SessionHand, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = Ownership.release
    failures = [ConnectionError("the server was away")]

    async def flaky(self: Ownership, unit: str, *, to_others: bool) -> None:
        if failures:
            raise failures.pop()
        await release(self, unit, to_others=to_others)

    monkeypatch.setattr(Ownership, "release", flaky)
    async with gateway(redis_url, container.url):
        await hand.say("t", SHORT)
        await over(hand, "t")
    assert not failures
    assert await hand.streams.commands.zcard(keys.owned("gateway")) == 0


async def test_a_server_that_forgets_everything_is_told_to_the_listeners(
    redis_url: str, hand: SessionHand, held: tuple[Container, HeldTone]
) -> None:
    container, tone = held
    async with gateway(redis_url, container.url):
        await hand.say("a", LONG)
        await begun(hand, 1)
        await hand.streams.commands.flushall()

        async def told() -> bool:
            events = await hand.events()
            return any(isinstance(e, m.ErrorEvent) and e.code == "state_lost" for e in events)

        await eventually(told, "state_lost is told")
        tone.go.set()
        fresh = SessionHand(hand.streams)
        await fresh.say("a", LONG)  # published again

        async def again() -> bool:
            return any(isinstance(event, m.TurnDone) for event in await hand.events())

        await eventually(again, "the turn is spoken")
    events = await hand.events()
    codes = [event.code for event in events if isinstance(event, m.ErrorEvent)]
    assert codes == ["state_lost"]
    chunks = [event.data for event in events if isinstance(event, m.AudioChunk)]
    assert b"".join(chunks) == spoken(LONG)
