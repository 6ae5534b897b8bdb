"""The gateway's scripts on a real server: one step each, twice the same as once, fenced."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from firstword import keys
from firstword.ids import id_after, id_key
from firstword.streams import Streams

pytestmark = pytest.mark.streams

pytestmark = pytest.mark.streams

STATE, AUDIO, SEGMENTS = keys.speech_state("s"), keys.audio("s"), keys.segments("s")
DONE, REPEATED, FENCED, LOST, CANCELLED = 1, 0, -1, -2, -3


class Side:
    """A worker's hold on the session `s`."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.commands = streams.commands

    async def acquire(self, token: str = "mine", worker: str = "w") -> dict[str, bytes]:
        return await self.streams.acquire([STATE, SEGMENTS, AUDIO], token, worker)

    async def commit(
        self,
        rev: int,
        *payloads: str,
        token: str = "mine",
        guard: str = "",
        done_to: str = "",
        keep_from: str = "",
        **fields: str,
    ) -> tuple[int, str]:
        """Status and the id of the first event."""
        pairs = [part for pair in fields.items() for part in pair]
        args: list[Any] = [token, rev, guard, done_to, keep_from, *pairs, "", *payloads]
        key_list = [STATE, AUDIO, SEGMENTS]
        status, first = await self.streams.script("commit_speech", key_list, args)
        return status, first.decode()

    async def vacate(self, position: str = "", *expiry_s: int, token: str = "mine") -> int:
        args = [token, position, *(expiry_s or (0, 0, 0))]
        status: int = await self.streams.script("vacate", [STATE, SEGMENTS, AUDIO], args)
        return status

    async def audio(self) -> list[tuple[str, str]]:
        found = await self.commands.xrange(AUDIO)
        return [(entry_id.decode(), fields[b"m"].decode()) for entry_id, fields in found]

    async def snapshot(self) -> object:
        """Everything there is."""
        streams = [await self.commands.xrange(key) for key in (AUDIO, SEGMENTS)]
        return await self.streams.state(STATE), streams


@pytest.fixture
async def side(redis_url: str) -> AsyncIterator[Side]:
    streams = Streams(redis_url)
    side = Side(streams)
    await side.acquire()
    yield side
    await streams.close()


# -- commit_speech.lua ----------------------------------------------------------------------------


async def test_events_fields_and_revision_go_together(side: Side) -> None:
    status, first = await side.commit(1, "one", "two", position="7-0", samples="12")
    audio = await side.audio()
    assert (status, first) == (DONE, audio[0][0])
    assert [payload for _, payload in audio] == ["one", "two"]
    assert await side.streams.state(STATE) == {
        "token": b"mine",
        "worker": b"w",
        "rev": b"1",
        "first_id": first.encode(),
        "position": b"7-0",
        "samples": b"12",
    }


async def test_a_commit_without_events_has_no_first_id(side: Side) -> None:
    assert await side.commit(1, position="7-0") == (DONE, "")
    assert await side.audio() == []


async def test_a_repeated_commit_changes_nothing_and_tells_the_same_id(side: Side) -> None:
    done = await side.commit(1, "one", position="7-0")
    before = await side.snapshot()
    assert await side.commit(1, "one", position="7-0") == (REPEATED, done[1])
    assert await side.snapshot() == before
    assert (await side.commit(2, "two"))[0] == DONE
    assert [payload for _, payload in await side.audio()] == ["one", "two"]


async def test_a_worker_without_the_token_changes_nothing(side: Side) -> None:
    await side.commit(1, "one")
    await side.acquire("theirs", "other")
    before = await side.snapshot()
    assert await side.commit(2, "late") == (FENCED, "")
    assert await side.commit(1, "one") == (FENCED, "")
    assert await side.snapshot() == before
    assert (await side.commit(2, "two", token="theirs"))[0] == DONE


async def test_a_state_that_is_gone_is_told(side: Side) -> None:
    await side.commands.flushall()
    assert await side.commit(1, "one") == (LOST, "")
    assert await side.snapshot() == ({}, [[], []])
    # What another stage has written since makes no owner of us.
    await side.commands.hset(STATE, "cancelled:t", 1)
    assert await side.commit(1, "one") == (LOST, "")


@pytest.mark.parametrize("rev", [1, 2, 5, 0])
async def test_a_state_of_another_revision_is_told(side: Side, rev: int) -> None:
    for i in (1, 2, 3):
        await side.commit(i)
    before = await side.snapshot()
    assert await side.commit(rev, "one") == (LOST, "")
    assert await side.snapshot() == before


async def test_nothing_of_a_cancelled_turn_is_published(side: Side) -> None:
    await side.commands.hset(STATE, "cancelled:t", 1)
    before = await side.snapshot()
    assert await side.commit(1, "one", guard="t", position="7-0") == (CANCELLED, "")
    assert await side.snapshot() == before
    # The revision is still free: what follows is another turn's, or has no turn.
    assert (await side.commit(1, "two", guard="u"))[0] == DONE
    assert (await side.commit(2, position="7-0"))[0] == DONE


async def test_a_field_may_take_the_first_events_id_and_may_go(side: Side) -> None:
    _, first = await side.commit(1, "one", "two", turn="t", turn_at="@first")
    state = await side.streams.state(STATE)
    assert state["turn_at"] == first.encode()
    await side.commit(2, turn="\0", turn_at="\0")
    assert not {"turn", "turn_at"} & set(await side.streams.state(STATE))


async def test_values_are_kept_byte_by_byte(side: Side) -> None:
    raw = bytes(range(256))
    args = ["mine", 1, "", "", "", "settings", raw, "", raw]
    await side.streams.script("commit_speech", [STATE, AUDIO, SEGMENTS], args)
    assert (await side.streams.state(STATE))["settings"] == raw
    ((_, fields),) = await side.commands.xrange(AUDIO)
    assert fields == {b"m": raw}


async def test_entries_that_are_done_with_go_exactly(side: Side) -> None:
    ids = [await side.streams.append(SEGMENTS, {"m": str(i)}) for i in range(5)]
    await side.commit(1, "one")
    assert await side.commands.xlen(SEGMENTS) == 5
    await side.commit(2, "two", done_to=id_after(ids[2]))
    assert [entry.id for entry in await side.streams.range(SEGMENTS, "0-0")] == ids[3:]


async def test_audio_goes_up_to_the_oldest_to_keep_and_says_so(side: Side) -> None:
    for i in (1, 2, 3):
        await side.commit(i, f"event {i}")
    (first, _), (second, _), (third, _) = await side.audio()
    await side.commit(4, keep_from=first)
    assert "kept_from" not in await side.streams.state(STATE)  # nothing had to go
    await side.commit(5, "event 5", keep_from=third)
    audio = await side.audio()
    assert [payload for _, payload in audio] == ["event 3", "event 5"]
    assert (await side.streams.state(STATE))["kept_from"] == third.encode()
    await side.commit(6, keep_from=second)
    assert (await side.streams.state(STATE))["kept_from"] == third.encode()


async def test_ids_grow_within_and_across_commits(side: Side) -> None:
    for i in range(1, 20):
        await side.commit(i, *"abc")
    ids = [id_key(entry_id) for entry_id, _ in await side.audio()]
    assert ids == sorted(set(ids))
    assert len(ids) == 57


# -- acquire.lua ----------------------------------------------------------------------------------


async def test_a_new_owner_gets_what_was_committed(side: Side) -> None:
    await side.commit(1, "one", position="7-0")
    saved = await side.acquire("theirs", "other")
    assert (saved["position"], saved["rev"], saved["token"]) == (b"7-0", b"1", b"mine")
    state = await side.streams.state(STATE)
    assert (state["token"], state["worker"]) == (b"theirs", b"other")


async def test_a_session_with_an_owner_does_not_expire(side: Side) -> None:
    await side.streams.append(SEGMENTS, {"m": "x"})
    await side.commit(1, "one")
    assert await side.vacate("", 100, 200, 300) == 1
    assert [await side.commands.ttl(key) for key in (STATE, SEGMENTS, AUDIO)] == [
        pytest.approx(seconds, abs=1) for seconds in (100, 200, 300)
    ]
    await side.acquire("again")
    assert [await side.commands.ttl(key) for key in (STATE, SEGMENTS, AUDIO)] == [-1, -1, -1]


# -- vacate.lua -----------------------------------------------------------------------------------


async def test_leaving_keeps_all_but_the_owner(side: Side) -> None:
    await side.commit(1, "one", position="7-0")
    assert await side.vacate() == 1
    state = await side.streams.state(STATE)
    assert sorted(state) == ["first_id", "position", "rev"]
    assert await side.commands.ttl(STATE) == -1
    assert await side.commit(2, "late") == (LOST, "")


async def test_a_session_with_work_beyond_the_position_is_not_left(side: Side) -> None:
    seen = await side.streams.append(SEGMENTS, {"m": "seen"})
    unseen = await side.streams.append(SEGMENTS, {"m": "unseen"})
    before = await side.snapshot()
    assert await side.vacate(seen, 100, 100, 100) == 0
    assert await side.snapshot() == before
    assert await side.commands.ttl(STATE) == -1
    assert await side.vacate(unseen, 100, 100, 100) == 1


async def test_a_handed_over_session_is_left_with_its_work(side: Side) -> None:
    await side.streams.append(SEGMENTS, {"m": "unseen"})
    assert await side.vacate("", 0, 0, 0) == 1
    assert await side.commands.ttl(SEGMENTS) == -1


async def test_another_owners_session_is_left_alone(side: Side) -> None:
    await side.acquire("theirs", "other")
    before = await side.snapshot()
    assert await side.vacate("", 100, 100, 100) == -1
    assert await side.snapshot() == before
    assert await side.commands.ttl(STATE) == -1


async def test_a_session_that_is_gone_is_nobodys(side: Side) -> None:
    await side.commands.flushall()
    assert await side.vacate("", 100, 100, 100) == -1
    assert await side.snapshot() == ({}, [[], []])
