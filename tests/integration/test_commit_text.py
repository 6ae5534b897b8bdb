"""The segmenter's one step on a session, on the real server: the script, the store around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import REGISTRY

from firstword import codec, keys
from firstword import messages as m
from firstword.errors import LeaseLost, StateLost
from firstword.streams import Streams
from services.segmenter.store import GATEWAY, Held, commit, leave, load
from services.segmenter.turns import (
    CancelTurns,
    Defaults,
    ForGateway,
    ForListeners,
    Output,
    Skipped,
)
from services.tts_gateway.said import Said

pytestmark = pytest.mark.streams

SESSION = "demo"
KEYS = [
    keys.text_state(SESSION),
    keys.segments(SESSION),
    keys.audio(SESSION),
    keys.speech_state(SESSION),
]
REVOKE = codec.pack(m.Revoke(turn="a", n=1), SESSION)
ERROR = codec.pack(m.ErrorEvent(code="x", message="y", retryable=False), SESSION)


class Stored:
    """What the segmenter wrote for one session, and the part of the gateway in it."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams

    async def commit_text(
        self, token: str, rev: int, *triples: Sequence[str | bytes], state: str = "s"
    ) -> tuple[int, str, str]:
        """Run the script; returns (status, gateway worker, last segments id)."""
        args: list[Any] = [token, rev, "state", state, "position", f"{rev}-0", ""]
        for triple in triples:
            args += triple
        status, worker, last, _queued = await self.streams.script("commit_text", KEYS, args)
        return status, worker.decode(), last.decode()

    async def gateway(self, **fields: str | int | bytes) -> None:
        """The gateway has come so far."""
        await self.streams.commands.hset(keys.speech_state(SESSION), mapping=fields)

    async def text_state(self) -> dict[str, bytes]:
        return await self.streams.state(keys.text_state(SESSION))

    async def marked(self) -> set[str]:
        """The turns that no more audio of may go out."""
        fields = await self.streams.state(keys.speech_state(SESSION))
        return {name.removeprefix("cancelled:") for name in fields if name.startswith("cancelled:")}

    async def to_gateway(self) -> list[m.Segments | None]:
        found = await self.streams.range(keys.segments(SESSION), "0-0")
        return [codec.unpack(entry.fields[b"m"], codec.SEGMENTS) for entry in found]

    async def to_listeners(self) -> list[m.Audio | None]:
        found = await self.streams.range(keys.audio(SESSION), "0-0")
        return [codec.unpack(entry.fields[b"m"], codec.AUDIO) for entry in found]

    async def everything(self) -> dict[str, Any]:
        """All that the script may touch, to see that it has not."""
        dump = self.streams.commands.dump
        return {key: await dump(key) for key in KEYS}

    async def cancel(self, target: str, known: str, *order: str) -> m.TurnCancelled:
        """Commit a cancel; returns its answer."""
        before = len(await self.to_listeners())
        rev = int((await self.text_state()).get("rev", b"0")) + 1
        status, _worker, _last = await self.commit_text(
            "mine", rev, ("cancel", target, " ".join((known, *order)))
        )
        assert status == 1
        [answer] = (await self.to_listeners())[before:]
        assert isinstance(answer, m.TurnCancelled)
        return answer


@pytest.fixture
async def stored(streams: Streams) -> Stored:
    """A session whose text side is held with the token `mine`."""
    await streams.acquire([keys.text_state(SESSION)], "mine", "w1")
    return Stored(streams)


# -- one step -------------------------------------------------------------------------------------


async def test_outputs_state_and_position_are_written_together(stored: Stored) -> None:
    status, worker, last = await stored.commit_text(
        "mine", 1, ("segments", REVOKE, ""), ("audio", ERROR, ""), ("segments", REVOKE, "")
    )
    assert (status, worker) == (1, "")
    assert await stored.to_gateway() == [m.Revoke(turn="a", n=1)] * 2
    assert await stored.to_listeners() == [m.ErrorEvent(code="x", message="y", retryable=False)]
    assert last == await stored.streams.last_id(keys.segments(SESSION))
    state = await stored.text_state()
    assert (state["rev"], state["state"], state["position"]) == (b"1", b"s", b"1-0")
    assert (state["token"], state["worker"]) == (b"mine", b"w1")


async def test_a_step_run_twice_changes_nothing_and_answers_the_same(stored: Stored) -> None:
    await stored.gateway(worker="g7")
    step = (("segments", REVOKE, ""), ("cancel", "a", "done a"), ("audio", ERROR, ""))
    first = await stored.commit_text("mine", 1, *step)
    written = await stored.everything()
    again = await stored.commit_text("mine", 1, *step)
    assert (first[0], again[0]) == (1, 0)
    assert again[1:] == first[1:]
    assert first[1] == "g7"
    assert await stored.everything() == written


async def test_a_step_without_segments_has_no_last_one(stored: Stored) -> None:
    await stored.commit_text("mine", 1, ("segments", REVOKE, ""))
    assert (await stored.commit_text("mine", 2, ("audio", ERROR, "")))[2] == ""
    assert (await stored.commit_text("mine", 2, ("audio", ERROR, "")))[2] == ""


async def test_another_owner_writes_nothing(stored: Stored) -> None:
    await stored.commit_text("mine", 1, ("segments", REVOKE, ""))
    await stored.streams.acquire([keys.text_state(SESSION)], "theirs", "w2")
    written = await stored.everything()
    step = (("segments", REVOKE, ""), ("cancel", "a", "done a"), ("audio", ERROR, ""))
    for rev in (1, 2):
        assert (await stored.commit_text("mine", rev, *step))[0] == -1
    assert await stored.everything() == written
    assert (await stored.commit_text("theirs", 2, ("segments", REVOKE, "")))[0] == 1


async def test_a_session_the_server_lost_is_not_written(streams: Streams) -> None:
    stored = Stored(streams)
    assert await stored.commit_text("mine", 1, ("audio", ERROR, "")) == (-2, "", "")
    assert set((await stored.everything()).values()) == {None}


@pytest.mark.parametrize("rev", [0, 1, 4])
async def test_a_step_that_does_not_follow_is_not_written(stored: Stored, rev: int) -> None:
    for done in (1, 2):
        await stored.commit_text("mine", done)
    written = await stored.everything()
    step = (("segments", REVOKE, ""), ("cancel", "a", "done a"))
    assert (await stored.commit_text("mine", rev, *step))[0] == -2
    assert await stored.everything() == written


# -- cancel ---------------------------------------------------------------------------------------


NOTHING = {"segments": 0, "n": 0, "samples": 0}


async def test_a_cancel_marks_the_turn_and_tells_what_had_gone_out(stored: Stored) -> None:
    await stored.gateway(turn="b", turn_segments=2, n=9, samples=4_800, done_turn="a")
    answer = await stored.cancel("b", "done", "a", "b")
    assert answer == m.TurnCancelled(
        turn="b", sent={"segments": 2, "n": 9, "samples": 4_800}, already_done=False
    )
    assert await stored.marked() == {"b"}


async def test_a_turn_that_has_not_begun_has_sent_nothing(stored: Stored) -> None:
    await stored.gateway(turn="a", turn_segments=2, n=9, samples=4_800)
    answer = await stored.cancel("b", "done", "a", "b")
    assert answer == m.TurnCancelled(turn="b", sent=NOTHING, already_done=False)
    assert await stored.marked() == {"b"}


async def test_a_turn_before_any_gateway_came_is_marked(stored: Stored) -> None:
    answer = await stored.cancel("a", "done", "a")
    assert answer == m.TurnCancelled(turn="a", sent=NOTHING, already_done=False)
    assert await stored.marked() == {"a"}


async def test_a_turn_spoken_to_its_end_is_not_marked(stored: Stored) -> None:
    await stored.gateway(done_turn="b", turn="c", turn_segments=0, n=5, samples=100)
    for turn in ("a", "b"):
        answer = await stored.cancel(turn, "done", "a", "b", "c")
        assert answer == m.TurnCancelled(turn=turn, sent=NOTHING, already_done=True)
    assert await stored.marked() == set()


async def test_a_cancel_of_all_marks_what_is_still_to_be_spoken(stored: Stored) -> None:
    await stored.gateway(done_turn="a", turn="b", turn_segments=1, n=4, samples=50)
    answer = await stored.cancel("", "done", "a", "b", "c", "d")
    assert answer == m.TurnCancelled(
        turn="b",
        sent={"segments": 1, "n": 4, "samples": 50},
        already_done=False,
        turns=["b", "c", "d"],
    )
    assert await stored.marked() == {"b", "c", "d"}


async def test_a_cancel_of_all_when_the_last_finished_turn_is_long_forgotten(
    stored: Stored,
) -> None:
    await stored.gateway(done_turn="long-ago")
    await stored.cancel("", "done", "y", "z")
    assert await stored.marked() == {"y", "z"}


async def test_a_cancel_of_all_when_all_is_spoken(stored: Stored) -> None:
    await stored.gateway(done_turn="b")
    answer = await stored.cancel("", "done", "a", "b")
    assert answer == m.TurnCancelled(turn="b", sent=NOTHING, already_done=True)
    assert await stored.marked() == set()


async def test_a_cancel_where_nothing_ever_was(stored: Stored) -> None:
    answer = await stored.cancel("", "done")
    assert answer == m.TurnCancelled(turn="", sent=NOTHING, already_done=True)


async def test_every_cancel_has_one_answer_and_only_the_first_does_something(
    stored: Stored,
) -> None:
    await stored.gateway(turn="a", turn_segments=1, n=2, samples=70)
    answers = [await stored.cancel(target, "done", "a", "b") for target in ("a", "a", "", "")]
    assert [(answer.turn, answer.already_done) for answer in answers] == [
        ("a", False),
        ("a", True),
        ("b", False),
        ("b", True),
    ]
    assert answers[1].sent == {"segments": 1, "n": 2, "samples": 70}
    assert len(await stored.to_listeners()) == 4


async def test_a_turn_dropped_while_it_waited_was_not_done(stored: Stored) -> None:
    await stored.gateway(turn="a", turn_segments=1, n=2, samples=70)
    answer = await stored.cancel("w", "waiting", "a")
    assert answer == m.TurnCancelled(turn="w", sent=NOTHING, already_done=False)
    assert await stored.marked() == set()


async def test_all_that_a_cancel_stopped_is_named(stored: Stored) -> None:
    await stored.gateway(done_turn="a")
    step = (("dropped", "w x", ""), ("cancel", "", "done a b c"), ("cancel", "", "done a b c"))
    await stored.commit_text("mine", 1, *step)
    answers = [e for e in await stored.to_listeners() if isinstance(e, m.TurnCancelled)]
    assert [(answer.turn, answer.turns) for answer in answers] == [
        ("b", ["b", "c", "w", "x"]),
        ("c", None),
    ]
    assert answers[0].stopped == ["b", "c", "w", "x"]
    assert answers[1].stopped == ["c"]


async def test_an_unknown_turn_is_answered_and_not_marked(stored: Stored) -> None:
    answer = await stored.cancel("never", "done", "a")
    assert answer == m.TurnCancelled(turn="never", sent=NOTHING, already_done=True)
    assert await stored.marked() == set()


# -- what was heard -------------------------------------------------------------------------------


def said(n: int, turn: str, text: str, **fields: Any) -> dict[str, str | bytes]:
    """What the gateway keeps of a segment that is done: a word takes 100 samples a character."""
    segment = m.Segment(
        turn=turn,
        n=n,
        text=text,
        spoken=fields.pop("spoken", text),
        start=fields.pop("start", 0),
        end=fields.pop("start_of_next", len(text)),
        voice="af_heart",
        speed=1.0,
        lang="en-us",
        first=True,
        last=False,
        opened_at="1-0",
    )
    kept = Said({})
    done = kept.done(segment, 100 * len(segment.spoken), (), 1_500)
    made = kept.begin(segment, 1_500) if fields.pop("in_progress", False) else done
    return {name: value for name, value in made.items() if name.startswith("said:") and value}


async def heard(stored: Stored, turn: str, n: int, samples: int) -> dict[str, Any] | None:
    rev = int((await stored.text_state()).get("rev", b"0")) + 1
    step = (("played", turn, f"{n} {samples}"), ("cancel", turn, f"done {turn}"))
    assert (await stored.commit_text("mine", rev, *step))[0] == 1
    answer = (await stored.to_listeners())[-1]
    assert isinstance(answer, m.TurnCancelled)
    return answer.heard


async def test_a_receipt_says_what_was_heard_up_to_the_last_whole_word(stored: Stored) -> None:
    await stored.gateway(
        **said(7, "a", "Not of this turn."),
        **said(8, "b", "It is **so**.", spoken="It is so."),
        **said(9, "b", "Grüße dich sehr.", start=14, start_of_next=30),
        **said(10, "b", "Unheard.", start=31),
    )
    assert await heard(stored, "b", 9, 1_099) == {
        "turn": "b",
        "text": "It is **so**. Grüße dich",
        "samples": 900 + 1_099,
    }
    assert await heard(stored, "b", 9, 1_600) == {
        "turn": "b",
        "text": "It is **so**. Grüße dich sehr.",
        "samples": 900 + 1_600,
    }
    everything = await heard(stored, "b", 9, 99_999)  # a listener counts its silence too
    assert everything is not None
    assert everything["samples"] == 900 + 1_600
    assert await heard(stored, "b", 9, 100) == {
        "turn": "b",
        "text": "It is **so**.",
        "samples": 1_000,
    }
    assert await heard(stored, "b", 8, 0) == {"turn": "b", "text": "", "samples": 0}


async def test_words_are_joined_as_they_were_written(stored: Stored) -> None:
    await stored.gateway(
        **said(1, "t", "你好。"), **said(2, "t", "世界。", start=3), **said(3, "t", "Yes.", start=8)
    )
    whole = await heard(stored, "t", 3, 400)
    assert whole is not None
    assert whole["text"] == "你好。世界。 Yes."


async def test_of_a_segment_in_the_making_words_are_told_at_a_usual_pace(stored: Stored) -> None:
    await stored.gateway(**said(1, "t", "One two three four.", in_progress=True))
    told = await heard(stored, "t", 1, 1_300)  # thirteen characters
    assert told == {"turn": "t", "text": "One two three", "samples": 1_300}


@pytest.mark.parametrize(("turn", "n"), [("t", 2), ("u", 1), ("t", 0)])
async def test_what_nobody_keeps_is_not_told(stored: Stored, turn: str, n: int) -> None:
    await stored.gateway(**said(1, "t", "One."))
    assert await heard(stored, turn, n, 5) is None


async def test_what_was_heard_is_told_with_its_own_cancel_only(stored: Stored) -> None:
    await stored.gateway(**said(1, "t", "One."))
    step = (
        ("played", "t", "1 400"),
        ("cancel", "", "done t"),
        ("cancel", "", "done t"),
    )
    await stored.commit_text("mine", 1, *step)
    answers = [e for e in await stored.to_listeners() if isinstance(e, m.TurnCancelled)]
    assert [answer.heard is None for answer in answers] == [False, True]


async def test_after_the_answer_no_audio_of_the_turn_can_follow(stored: Stored) -> None:
    speech = [keys.speech_state(SESSION), keys.audio(SESSION), keys.segments(SESSION)]
    await stored.streams.acquire(speech, "gateway", "g7")
    chunk = codec.pack(m.AudioChunk(turn="a", n=1, offset=0, data=b"\0\0"), SESSION)
    fields = ["turn", "a", "n", 1, "samples", 1, "turn_segments", 0, ""]

    async def speak(rev: int) -> int:
        args = ["gateway", rev, "a", "", "", *fields, chunk]
        status, _first = await stored.streams.script("commit_speech", speech, args)
        return int(status)

    assert await speak(1) == 1
    answer = await stored.cancel("a", "done", "a")
    assert answer.sent == {"segments": 0, "n": 1, "samples": 1}
    assert await speak(2) == -3
    assert (await stored.to_listeners())[-1] == answer


# -- the store ------------------------------------------------------------------------------------


def metric(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def held_by(streams: Streams, token: str = "mine") -> Held:
    return await load(streams, SESSION, token, "w1", Defaults(), 0.0)


def say(held: Held, entry_id: str, text: str, turn: str) -> list[Output]:
    """One entry through the session core, as the reader does it."""
    messages: list[m.Ingress] = [
        m.Text(session=SESSION, text=text, turn=turn),
        m.End(session=SESSION, turn=turn),
    ]
    outputs = held.session.handle(entry_id, messages, 0.0)
    held.note(entry_id, 0.0)
    return outputs


async def test_a_new_session_is_stored_with_its_first_step(streams: Streams) -> None:
    held = await held_by(streams)
    assert (held.rev, held.position, held.seen) == (0, "0-0", "0-0")
    outputs = say(held, "5-1", "Hi", "a")
    assert (held.position, held.pending_from) == ("0-0", "5-1")
    segmented = metric("firstword_segmentation_seconds_count")
    await commit(streams, held, outputs)
    assert (held.rev, held.position, held.pending_from) == (1, "5-1", None)
    opened, segment, end = await Stored(streams).to_gateway()
    assert isinstance(opened, m.SessionOpen)
    assert isinstance(segment, m.Segment)
    assert (segment.text, segment.n) == ("Hi", 1)
    assert end == m.TurnEnd(turn="a", segments=1, opened_at="5-1")
    assert metric("firstword_segmentation_seconds_count") == segmented + 1


async def test_the_session_learns_how_much_waits_before_the_gateway(streams: Streams) -> None:
    held = await load(streams, SESSION, "mine", "w1", Defaults(max_queued=5), 0.0)
    await commit(streams, held, say(held, "5-1", "Hi. There.", "a"))
    assert await streams.commands.xlen(keys.segments(SESSION)) == 5
    refused = say(held, "5-2", "More.", "b")
    assert [type(o.message) for o in refused if isinstance(o, ForListeners)] == [m.ErrorEvent]
    await streams.commands.xtrim(keys.segments(SESSION), maxlen=0, approximate=False)
    await commit(streams, held, refused)
    assert await streams.commands.xlen(keys.segments(SESSION)) == 1
    taken = say(held, "5-3", "More.", "c")
    assert not any(isinstance(output, ForListeners) for output in taken)


async def test_what_waits_for_earlier_turns_is_stored_for_publishers_to_see(
    streams: Streams,
) -> None:
    held = await held_by(streams)
    first = m.Text(session=SESSION, text="One", turn="a")
    outputs = held.session.handle("5-1", [first], 0.0)
    held.note("5-1", 0.0)
    await commit(streams, held, [*outputs, *say(held, "5-2", "Two. Three.", "b")])
    assert (await Stored(streams).text_state())["waiting"] == b"2"


async def test_a_successor_gets_all_of_it_and_the_other_can_write_no_more(
    streams: Streams,
) -> None:
    first = await held_by(streams, "first")
    text = m.Text(session=SESSION, text="One. Tw\udcc3", turn="a", voice="\udcff")
    await commit(streams, first, first.session.handle("5-1", [text], 0.0))
    first.note("5-1", 0.0)
    await commit(streams, first, [])
    second = await load(streams, SESSION, "second", "w2", Defaults(), 9.0)
    assert (second.rev, second.position, second.seen) == (2, "5-1", "5-1")
    assert second.session.busy
    fenced = metric("firstword_fenced_commits_total", stage="segmenter")
    with pytest.raises(LeaseLost, match="session demo"):
        await commit(streams, first, say(first, "5-2", " More.", "a"))
    assert metric("firstword_fenced_commits_total", stage="segmenter") == fenced + 1
    assert first.rev == 2
    await commit(streams, second, say(second, "5-2", "\udcb6.", "a"))
    said = [s.text for s in await Stored(streams).to_gateway() if isinstance(s, m.Segment)]
    assert said == ["One.", "Twö."]


@pytest.mark.parametrize("loss", ["all", "the last step"])
async def test_a_server_that_forgot_is_noticed(streams: Streams, loss: str) -> None:
    held = await held_by(streams)
    await commit(streams, held, [])
    await commit(streams, held, [])
    if loss == "all":
        await streams.commands.flushall()
    else:
        await streams.commands.hset(keys.text_state(SESSION), "rev", 1)
    with pytest.raises(StateLost, match="session demo"):
        await commit(streams, held, say(held, "5-1", "Hi", "a"))
    assert await Stored(streams).to_gateway() == []


async def test_a_commit_whose_reply_was_lost_may_be_made_again(streams: Streams) -> None:
    held = await held_by(streams)
    outputs = say(held, "5-1", "Hi", "a")
    await commit(streams, held, outputs)
    held.rev -= 1  # as if the connection had broken before the reply came
    await commit(streams, held, outputs)
    assert held.rev == 1
    assert len(await Stored(streams).to_gateway()) == 3


async def test_a_session_without_a_gateway_is_offered_to_them(streams: Streams) -> None:
    held = await held_by(streams)
    await commit(streams, held, [ForGateway(m.Revoke(turn="a", n=1))])
    assert await streams.commands.zrange(keys.free(GATEWAY), 0, -1) == [b"demo"]


async def test_a_session_with_a_gateway_rings_its_bell(streams: Streams) -> None:
    held = await held_by(streams)
    await Stored(streams).gateway(worker="g7")
    await commit(streams, held, [CancelTurns("a", (), "done")])
    [ring] = await streams.range(keys.bell(GATEWAY, "g7"), "0-0")
    assert ring.fields == {b"u": b"demo"}


async def test_what_is_for_listeners_alone_wakes_no_gateway(streams: Streams) -> None:
    held = await held_by(streams)
    await Stored(streams).gateway(worker="g7")
    told = metric("firstword_errors_total", code="gap")
    error = m.ErrorEvent(code="gap", message="publish again", retryable=True, expected=1)
    await commit(streams, held, [ForListeners(error)])
    assert await Stored(streams).to_listeners() == [error]
    assert await streams.range(keys.bell(GATEWAY, "g7"), "0-0") == []
    assert await streams.commands.exists(keys.free(GATEWAY)) == 0
    assert metric("firstword_errors_total", code="gap") == told + 1


async def test_what_a_cancel_brings_is_stored_with_it(streams: Streams) -> None:
    held = await held_by(streams)
    await Stored(streams).gateway(**said(1, "a", "Hi there."))
    played = {"turn": "a", "n": 1, "samples": 250}
    cancel = m.Cancel(session=SESSION, turn="a", played=played)
    outputs = say(held, "5-1", "Hi there.", "a") + held.session.handle("5-2", [cancel], 0.0)
    await commit(streams, held, outputs)
    [answer] = await Stored(streams).to_listeners()
    assert isinstance(answer, m.TurnCancelled)
    assert not answer.already_done
    assert answer.heard == {"turn": "a", "text": "Hi", "samples": 250}


async def test_what_was_skipped_is_counted_and_not_written(streams: Streams) -> None:
    held = await held_by(streams)
    before = metric("firstword_skipped_messages_total", reason="late")
    await commit(streams, held, [Skipped("late"), Skipped("late")])
    assert metric("firstword_skipped_messages_total", reason="late") == before + 2
    assert await Stored(streams).to_gateway() == []
    assert await Stored(streams).to_listeners() == []


async def test_a_session_that_is_left_expires_and_comes_back_with_its_numbers(
    streams: Streams,
) -> None:
    held = await held_by(streams)
    await commit(streams, held, say(held, "5-1", "Hi", "a"))
    await leave(streams, held, 86_400)
    assert 86_000 < await streams.commands.ttl(keys.text_state(SESSION)) <= 86_400
    with pytest.raises(StateLost):
        await commit(streams, held, [])
    again = await held_by(streams, "again")
    assert await streams.commands.ttl(keys.text_state(SESSION)) == -1
    await commit(streams, again, say(again, "6-0", "Yes", "b"))
    said = [s for s in await Stored(streams).to_gateway() if isinstance(s, m.Segment)]
    assert [(segment.n, segment.text) for segment in said] == [(1, "Hi"), (2, "Yes")]
