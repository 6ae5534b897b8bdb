"""What our own code fails on costs that entry or turn, and blocks no session and no worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from firstword import codec, dead, keys
from firstword import messages as m
from firstword.client import collect
from firstword.poison import TRIES
from firstword.streams import Streams
from services.segmenter.session import Session
from tests.e2e.stack import Stack, tone_pcm, until_done
from tests.support import eventually

pytestmark = pytest.mark.streams

MARK = "xyzzy"
"""A text with it is what our code fails on."""
PARTITION = keys.ingress(keys.partition_of("demo", keys.DEFAULT_PARTITIONS))


def neighbour() -> str:
    """A session of the same partition."""
    names = (f"n{number}" for number in range(1000))
    return next(name for name in names if keys.ingress_of(name, 16) == PARTITION)


async def letters(stack: Stack) -> list[tuple[str, str]]:
    """Source and reason of all dead letters."""
    return [(each.source, each.reason) for each in await dead.read(stack.firstword.streams, 100)]


async def speaks(stack: Stack, session: str) -> None:
    opened = stack.firstword.session(session)
    events = await opened.listener()
    turn = await opened.say("The next sentence speaks.")
    assert (await collect(events, turn)).pcm == tone_pcm("The next sentence speaks.")


def failing(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but it fails on texts with the mark."""

    def wrapper(*args: Any, **options: Any) -> Any:
        if MARK in str(args):
            raise KeyError(MARK)
        return wrapped(*args, **options)

    return wrapper


def codes(seen: Sequence[m.Audio]) -> list[str]:
    return [event.code for event in seen if isinstance(event, m.ErrorEvent)]


async def put(stack: Stack, stream: str, **fields: str) -> None:
    plain: Mapping[str, str] = {"session": "demo", "turn": "t", **fields}
    await stack.firstword.streams.append(stream, plain)


async def test_an_entry_that_cannot_be_handled_is_put_aside(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "handle", failing(Session.handle))
    async with Stack(redis_url) as stack:
        events = await stack.firstword.session("demo").listener()
        await put(stack, PARTITION, text="One. ")
        await put(stack, PARTITION, text=MARK)
        await speaks(stack, neighbour())
        await put(stack, PARTITION, text="Two.", end="1")
        seen = await until_done(events)
        assert [e.text for e in seen if isinstance(e, m.SegmentStarted)] == ["One.", "Two."]
        assert codes(seen) == ["failed"]
        assert await letters(stack) == [(PARTITION, "failed")]
        await speaks(stack, "demo")


@pytest.mark.parametrize("stream", [PARTITION, keys.DOOR])
async def test_an_entry_that_fails_while_it_is_read_is_put_aside(
    redis_url: str, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "decode_ingress", failing(codec.decode_ingress))
    async with Stack(redis_url) as stack:
        await put(stack, stream, text=MARK)
        await speaks(stack, neighbour())

        async def put_aside() -> bool:
            return await letters(stack) == [(stream, "failed")]

        await eventually(put_aside, "it is put aside")
        await speaks(stack, "demo")


@pytest.mark.parametrize("part", ["tick", "snapshot"])
async def test_a_turn_that_cannot_go_on_ends(
    redis_url: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(Session, part)

    def fail(session: Session, *args: Any) -> Any:
        if any(turn.name == MARK and not turn.ended for turn in session._turns):
            raise KeyError(MARK)
        return original(session, *args)

    monkeypatch.setattr(Session, part, fail)
    async with Stack(redis_url) as stack:
        events = await stack.firstword.session("demo").listener()
        await put(stack, PARTITION, turn=MARK, text="A sentence that stalls.")
        await put(stack, PARTITION, turn="u", text="And one behind it.", end="1")
        await speaks(stack, neighbour())
        first, second = await until_done(events), await until_done(events)
        end = first[-1]
        assert isinstance(end, m.TurnDone)
        assert (end.turn, end.reason) == (MARK, "failed")
        assert "failed" in codes(first)
        assert isinstance(second[-1], m.TurnDone)
        await speaks(stack, "demo")


async def test_a_stored_state_that_makes_no_sense_is_put_aside_and_told(redis_url: str) -> None:
    async with Stack(redis_url) as stack:
        session = stack.firstword.session("demo")
        await put(stack, PARTITION, text="Not a whole sentence")
        streams = stack.firstword.streams

        async def stored() -> bool:
            return bool(await streams.commands.hexists(keys.text_state("demo"), "state"))

        await eventually(stored, "the session is stored")
    streams = Streams(redis_url)
    await streams.commands.hset(keys.text_state("demo"), "state", b"\xc1")
    await streams.close()
    async with Stack(redis_url) as stack:
        session = stack.firstword.session("demo")
        events = await session.listener("0-0")
        await speaks(stack, neighbour())
        async for event in events:
            if isinstance(event.message, m.ErrorEvent):
                assert event.message.code == "state_lost"
                break
        await speaks(stack, "demo")
        assert await letters(stack) == [(keys.text_state("demo"), "broken_state")]


async def test_a_server_that_is_away_is_no_failure_of_what_was_being_done(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For more tries than an entry has."""
    tries = 0
    async with Stack(redis_url) as stack:
        session = stack.firstword.session("demo")
        events = await session.listener()
        await put(stack, PARTITION, text="Said before. ")
        script = Streams.script

        async def away(streams: Streams, name: str, *args: Any) -> Any:
            nonlocal tries
            if name == "commit_text" and tries < 2 * TRIES:
                tries += 1
                raise ConnectionError
            return await script(streams, name, *args)

        monkeypatch.setattr(Streams, "script", away)
        await put(stack, PARTITION, text="Said while it was away.", end="1")
        seen = await until_done(events)
        assert tries == 2 * TRIES
        assert codes(seen) == []
        assert [e.text for e in seen if isinstance(e, m.SegmentStarted)] == [
            "Said before.",
            "Said while it was away.",
        ]
        assert await letters(stack) == []
