"""The client without an event loop: in a thread, as a script uses it, beside the double."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

import pytest

from firstword import messages as m
from firstword.audio import TurnAudio
from firstword.errors import FirstwordError
from firstword.sync import Firstword
from tests.doubles.path import PathDouble, heard

pytestmark = pytest.mark.streams

T = TypeVar("T")


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    async with PathDouble(redis_url) as double:
        yield double


async def script(url: str, lines: Callable[[Firstword], T]) -> T:
    """Run `lines` as a script would: in a thread without a loop."""

    def run() -> T:
        with Firstword(url) as firstword:
            return lines(firstword)

    return await asyncio.to_thread(run)


async def test_a_script_speaks_and_hears(redis_url: str, path: PathDouble) -> None:
    def lines(firstword: Firstword) -> TurnAudio:
        with firstword.session("demo", voice="af_bella") as session:
            turn = session.stream(iter(["Hello", " there", ".", " Bye"]))
            return session.collect(turn, timeout_s=20)

    audio = await script(redis_url, lines)
    assert heard(audio.pcm) == "Hello there. Bye"
    assert isinstance(audio.end, m.TurnDone)


async def test_a_turn_in_ones_own_hands_and_its_events(redis_url: str, path: PathDouble) -> None:
    def lines(firstword: Firstword) -> list[type[m.Audio]]:
        with firstword.session("demo") as session:
            session.text("One.", "t1")
            session.flush("t1")
            session.end("t1")
            session.say("Two.", turn="t2")
            session.close()
            return [type(event.message) for event in session.listen()]

    kinds = await script(redis_url, lines)
    assert kinds.count(m.TurnDone) == 2
    assert kinds[-1] is m.Closed, "listening ends with the session"


async def test_a_listener_may_stop_in_the_middle(redis_url: str, path: PathDouble) -> None:
    def lines(firstword: Firstword) -> str:
        with firstword.session("demo") as session:
            session.say("One. Two.", turn="t1")
            first = next(session.listen())
            again = next(session.listen(from_id="0"))
            assert first == again
            return first.id

    assert await script(redis_url, lines)


async def test_what_the_pieces_raise_comes_out_and_what_came_is_spoken(
    redis_url: str, path: PathDouble
) -> None:
    def broken() -> Iterator[str]:
        yield "So far"
        raise LookupError("the model is gone")

    def lines(firstword: Firstword) -> TurnAudio:
        with firstword.session("demo") as session:
            with pytest.raises(LookupError, match="the model is gone"):
                session.stream(broken(), turn="t1")
            return session.collect("t1", timeout_s=20)

    assert heard((await script(redis_url, lines)).pcm) == "So far"


async def test_a_cancel_answers_with_its_receipt(redis_url: str, path: PathDouble) -> None:
    def lines(firstword: Firstword) -> m.TurnCancelled:
        with firstword.session("demo") as session:
            session.text("Never mind", "t1")
            return session.cancel("t1")

    assert (await script(redis_url, lines)).turn == "t1"


async def test_who_waits_may_set_a_limit(redis_url: str) -> None:
    def lines(firstword: Firstword) -> None:
        with firstword.session("demo") as session:
            with pytest.raises(TimeoutError):
                session.collect("t1", timeout_s=0.01)
            assert session.say("The connection lives on.")

    await script(redis_url, lines)


def test_a_session_needs_its_connection() -> None:
    session = Firstword("redis://127.0.0.1:1").session("demo")
    with pytest.raises(FirstwordError, match="enter it first"):
        session.say("Hello.")


def test_a_bad_url_is_told_at_once_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(FirstwordError, match="is no Redis URL"):
        Firstword("gopher://x").__enter__()
    assert threading.active_count() == before
