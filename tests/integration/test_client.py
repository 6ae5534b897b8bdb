"""Publishing and listening with the client, on a real server; the path between is a double."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from firstword import codec, keys
from firstword import messages as m
from firstword.audio import TurnAudio
from firstword.client import PIECE_CHARACTERS, Event, Firstword, Manner, TurnOver, collect
from firstword.errors import FirstwordError
from firstword.streams import Streams
from firstword.tokens import tokens
from tests.doubles.path import SAMPLE_RATE, PathDouble, heard
from tests.doubles.proxy import Proxy
from tests.support import eventually

pytestmark = pytest.mark.streams

STORY = "The rain had stopped. Nobody noticed, at first"


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    async with PathDouble(redis_url) as double:
        yield double


@pytest.fixture
async def firstword(redis_url: str) -> AsyncIterator[Firstword]:
    async with Firstword(redis_url) as connected:
        yield connected


async def story() -> AsyncIterator[str]:
    for piece in tokens(STORY):
        yield piece


async def put(streams: Streams, session: str, message: m.Audio) -> str:
    return await streams.append(keys.audio(session), {"m": codec.pack(message, session)})


async def door_length(firstword: Firstword, wanted: int) -> bool:
    return bool(await firstword.streams.commands.xlen(keys.DOOR) == wanted)


async def until(events: AsyncIterator[Event], kind: type[m.Audio]) -> list[Event]:
    """Events up to the first of a kind."""
    seen: list[Event] = []
    async for event in events:
        seen.append(event)
        if isinstance(event.message, kind):
            break
    return seen


def audio_of(events: list[Event], turn: str) -> bytes:
    audio = TurnAudio(turn)
    for event in events:
        audio.feed(event.message)
    return audio.pcm


def numbers(messages: list[m.Ingress], turn: str) -> list[int | None]:
    return [
        message.seq
        for message in messages
        if isinstance(message, m.Text | m.Flush | m.End) and message.turn == turn
    ]


async def test_a_turn_is_heard_whole(path: PathDouble, firstword: Firstword) -> None:
    async with firstword.session(voice="am_adam") as session:
        turn = await session.say("One. Two.")
        audio = await collect(session.listen(), turn)
    assert heard(audio.pcm) == "One. Two."
    assert audio.sample_rate == SAMPLE_RATE
    assert isinstance(audio.end, m.TurnDone)
    opening = path.of(session.name)[0]
    assert isinstance(opening, m.Open)
    assert opening.voice == "am_adam"


async def test_a_stream_is_numbered_piece_by_piece(path: PathDouble, firstword: Firstword) -> None:
    published: list[tuple[str, str]] = []
    async with firstword.session() as session:
        turn = await session.stream(
            story(), turn="reply-1", on_published=lambda piece, at: published.append((piece, at))
        )
        audio = await collect(session.listen(), turn)
    assert turn == "reply-1"
    assert heard(audio.pcm) == STORY
    assert [piece for piece, _ in published] == tokens(STORY)
    assert numbers(path.of(session.name), turn) == list(range(len(published) + 1))


async def test_a060_a_stream_that_pauses_says_that_its_turn_is_still_written(
    path: PathDouble, firstword: Firstword, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a tool; a turn without any input would be taken for abandoned."""
    monkeypatch.setattr("firstword.publisher.KEEP_OPEN_S", 0.02)

    def empty() -> int:
        texts = [each for each in path.of("pauses") if isinstance(each, m.Text)]
        return sum(not each.text for each in texts)

    async def pauses() -> AsyncIterator[str]:
        yield "Let me look. "
        await eventually(lambda: empty() >= 3, "the turn is kept open")
        yield "Here it is."

    async with firstword.session("pauses") as session:
        turn = await session.stream(pauses())
        audio = await collect(session.listen(), turn)
    assert heard(audio.pcm) == "Let me look. Here it is."
    seen = numbers(path.of("pauses"), turn)
    assert seen == list(range(len(seen)))


async def test_a060_a_stream_that_hangs_is_not_kept_open_for_ever(
    path: PathDouble, firstword: Firstword, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstword.publisher.KEEP_OPEN_S", 0.01)
    monkeypatch.setattr("firstword.publisher.MOST_SILENCES", 2)
    session = firstword.session("hangs")
    await session.text("Let me look. ", "t")
    await asyncio.wait_for(session._publisher.keep_open("t"), 10)
    await eventually(lambda: numbers(path.of("hangs"), "t") == [0, 1, 2], "two pieces, no more")


async def test_building_blocks_and_empty_pieces(path: PathDouble, firstword: Firstword) -> None:
    async with firstword.session("blocks") as session:
        assert await session.text("", "t") is None
        for piece in ("Half a ", "", "sentence"):
            await session.text(piece, "t")
        await session.flush("t")
        await session.end("t")
        audio = await collect(session.listen(), "t")
    assert heard(audio.pcm) == "Half a sentence"
    assert numbers(path.of("blocks"), "t") == [0, 1, 2, 3]


async def test_a_turn_may_have_its_own_voice(path: PathDouble, firstword: Firstword) -> None:
    async with firstword.session(voice="af_heart") as session:
        own = Manner(voice="am_adam", speed=1.2, lang="en-gb")
        turn = await session.stream(story(), manner=own)
        await collect(session.listen(), turn)
    texts = [message for message in path.of(session.name) if isinstance(message, m.Text)]
    assert {(text.voice, text.speed, text.lang) for text in texts} == {("am_adam", 1.2, "en-gb")}


async def test_a_long_piece_goes_out_in_parts(path: PathDouble, firstword: Firstword) -> None:
    text = "ab" * PIECE_CHARACTERS
    async with firstword.session("long") as session:
        path.speaking.clear()
        await session.say(text, turn="t")
        await eventually(lambda: numbers(path.of("long"), "t") == [0, 1, 2], "two parts and an end")
    parts = [message.text for message in path.of("long") if isinstance(message, m.Text)]
    assert "".join(parts) == text


async def test_a_new_session_has_a_new_name(firstword: Firstword) -> None:
    assert firstword.session().name != firstword.session().name


async def test_partitions_are_used_when_there_are_some(
    redis_url: str, firstword: Firstword
) -> None:
    async with PathDouble(redis_url, partitions=4), firstword.session("demo") as session:
        turn = await session.say("Hello.")
        assert heard((await collect(session.listen(), turn)).pcm) == "Hello."
        lengths = [await firstword.streams.commands.xlen(keys.ingress(p)) for p in range(4)]
    assert lengths[keys.partition_of("demo", 4)] == 3
    assert sum(lengths) == 3


async def test_a_session_that_began_at_the_door_stays_there(
    redis_url: str, firstword: Firstword
) -> None:
    async with firstword.session("early") as session:
        await session.text("Before ", "t")
        async with PathDouble(redis_url, partitions=2):
            await session.text("and after.", "t")
            await session.end("t")
            assert heard((await collect(session.listen(), "t")).pcm) == "Before and after."


# -- turns that end otherwise ---------------------------------------------------------------------


async def test_a_cancel_has_a_receipt_and_ends_the_stream(
    path: PathDouble, firstword: Firstword
) -> None:
    waiting = asyncio.Event()
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "And "
                waiting.set()
                await asyncio.sleep(0)
        finally:
            closed.set()

    async with firstword.session() as session:
        speaking = asyncio.create_task(session.stream(endless(), turn="long"))
        await waiting.wait()
        receipt = await session.cancel("long")
        assert await speaking == "long"
    assert closed.is_set()
    assert (receipt.turn, receipt.already_done) == ("long", False)
    with pytest.raises(TurnOver, match="begin another one"):
        await session.text("more", "long")
    with pytest.raises(TurnOver):
        await session.say("more", turn="long")


async def test_a_cancel_without_a_name_stops_what_is_open(
    path: PathDouble, firstword: Firstword
) -> None:
    async with firstword.session() as session:
        await session.text("Open ended", "a")
        receipt = await session.cancel(played={"turn": "a", "n": 0, "samples": 0})
        assert receipt.turn == "a"
        with pytest.raises(TurnOver):
            await session.end("a")


async def test_cancelling_what_is_over_is_answered_too(
    path: PathDouble, firstword: Firstword
) -> None:
    async with firstword.session() as session:
        turn = await session.say("Short.")
        await collect(session.listen(), turn)
        assert (await session.cancel(turn)).already_done is True


async def test_a_cancel_nobody_answers_says_so(firstword: Firstword) -> None:
    async with firstword.session() as session:
        with pytest.raises(FirstwordError, match="is one running") as raised:
            await session.cancel("t", timeout_s=0.05)
    assert raised.value.code == "no_receipt"


async def test_a_cancel_in_a_session_that_closes_says_so(firstword: Firstword) -> None:
    async with firstword.session("bye") as session:
        cancel = asyncio.create_task(session.cancel("t"))
        await eventually(lambda: door_length(firstword, 2), "the cancel is published")
        await put(firstword.streams, "bye", m.Closed(reason="closed"))
        with pytest.raises(FirstwordError) as raised:
            await cancel
    assert raised.value.code == "session_closed"


async def test_a_source_that_fails_ends_the_turn(path: PathDouble, firstword: Firstword) -> None:
    async def failing() -> AsyncIterator[str]:
        yield "So far"
        raise RuntimeError("the model is gone")

    async with firstword.session() as session:
        with pytest.raises(RuntimeError, match="the model is gone"):
            await session.stream(failing(), turn="t")
        assert heard((await collect(session.listen(), "t")).pcm) == "So far"


@pytest.mark.parametrize("half", ["\ud83d", "long enough \ud83d" + " " * PIECE_CHARACTERS])
async def test_half_a_character_is_refused(firstword: Firstword, half: str) -> None:
    async with firstword.session() as session:
        with pytest.raises(FirstwordError, match="surrogate") as raised:
            await session.say(half)
    assert raised.value.code == "bad_text"


# -- a wire that breaks ---------------------------------------------------------------------------


async def test_a_lost_reply_is_published_again_with_the_same_number(
    redis_url: str, path: PathDouble
) -> None:
    async with Proxy(redis_url) as proxy, Firstword(proxy.url) as firstword:
        async with firstword.session("wire") as session:
            await session.text("Once ", "t")
            proxy.lose_reply_to(lambda request: b"XADD" in request)
            await session.text("only", "t")
            await session.end("t")
            audio = await collect(session.listen(), "t")
    assert proxy.lost == 1
    assert heard(audio.pcm) == "Once only"
    assert numbers(path.of("wire"), "t") == [0, 1, 1, 2]


async def test_listening_goes_on_after_a_cut(redis_url: str, path: PathDouble) -> None:
    async with Proxy(redis_url) as proxy, Firstword(proxy.url) as firstword:
        async with firstword.session() as session:
            events = session.listen()
            turn = await session.say("First half. Second half.")
            seen = await until(events, m.AudioChunk)
            before = proxy.connections
            proxy.cut()
            rest = await until(events, m.TurnDone)
            whole = await until(session.listen(), m.TurnDone)
    assert proxy.connections > before
    assert seen + rest == whole
    assert heard(audio_of(whole, turn)) == "First half. Second half."


async def test_a_call_that_is_cancelled_uses_its_number_up(
    redis_url: str, path: PathDouble
) -> None:
    async with Proxy(redis_url) as proxy, Firstword(proxy.url) as firstword:
        async with firstword.session("given-up") as session:
            await session.text("a", "t")
            proxy.hold_reply_to(lambda request: b"XADD" in request)
            call = asyncio.create_task(session.text("b", "t"))
            await eventually(lambda: numbers(path.of("given-up"), "t") == [0, 1], "b is out")
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
            await session.text("c", "t")
            await session.end("t")
            assert heard((await collect(session.listen(), "t")).pcm) == "abc"


async def test_a_server_that_stays_away_is_told(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstword.server_errors.PATIENCE_S", 0)
    async with Proxy(redis_url) as proxy:
        gone = proxy.url
    async with Firstword(gone) as firstword:
        with pytest.raises(FirstwordError, match="firstword up") as raised:
            await firstword.session().open()
    assert raised.value.code == "unreachable"


async def test_a_server_that_is_full_is_told(redis_url: str, firstword: Firstword) -> None:
    commands = firstword.streams.commands
    limit = (await commands.config_get("maxmemory"))["maxmemory"]
    await commands.config_set("maxmemory", "1")
    try:
        with pytest.raises(FirstwordError) as raised:
            await firstword.session().open()
    finally:
        await commands.config_set("maxmemory", limit)
    assert (raised.value.code, raised.value.retryable) == ("busy", True)
