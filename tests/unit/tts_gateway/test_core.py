"""The happy path of one session's speech, action by action, and what is stored on the way."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import codec
from firstword import messages as m
from firstword import session_protocol as wire
from services.tts_gateway.actions import Close, Commit, Connect, Disconnect, Limits, Send
from services.tts_gateway.core import Speech
from services.tts_gateway.said import Said
from tests.doubles.ear import Ear
from tests.unit.tts_gateway.world import (
    RATE,
    Backend,
    World,
    segment,
    session_open,
    turn_end,
    voice,
)


def audio(*messages: m.Segments, **options: object) -> World:
    return World([session_open(), *messages], **options).run()  # type: ignore[arg-type]


def kinds(world: World) -> list[str]:
    return [codec.TYPE_OF[type(event)] for event in world.store.events]


def chunks(world: World) -> list[m.AudioChunk]:
    return [event for event in world.store.events if isinstance(event, m.AudioChunk)]


# -- the path of a turn ---------------------------------------------------------------------------


def test_the_pronunciations_of_a_session_go_with_each_request() -> None:
    speech = Speech("demo", Limits(), {})
    speech.begin("1-0", replace(session_open(), lexicon={"SQL": "sequel"}), 1.0)
    speech.begin("2-0", segment(1, "SQL."), 2.0)
    (send,) = speech.connected(False, 2.0)
    assert isinstance(send, Send)
    assert json.loads(send.frame)["lexicon"] == {"SQL": "sequel"}


def test_a_turn_action_by_action() -> None:
    """One session, one segment, one turn: everything the core ever says, in order."""
    speech = Speech("demo", Limits(), {})
    opened = session_open()
    packed = codec.pack(opened, "demo")

    assert speech.begin("1-0", opened, 1.0) == [
        Commit((), {"position": "1-0", "settings": packed, "closed": None}, done_to="1-0"),
        Connect(),
    ]
    assert speech.connected(True, 1.1) == []

    said = segment(1, "Hi.")
    assert speech.idle
    assert speech.begin("2-0", said, 2.0) == [Connect()]
    assert not speech.idle
    (send,) = speech.connected(False, 2.0)
    assert isinstance(send, Send)
    assert json.loads(send.frame) == {
        "type": "synthesize",
        "id": "1.1",
        "text": "Hi.",
        "voice": "af_heart",
        "speed": 1.0,
        "lang": "en-us",
        "sample_rate": RATE,
        "seed": 2_798_546_095,
        "deadline_ms": 0,
        "first": True,
        "skip_samples": 0,
    }

    start = wire.encode_server(wire.SynthesisStart("1.1", RATE, "plan"))
    assert speech.receive(start, True, 2.1) == []
    progress: dict[str, str | bytes | None] = {
        "position": "1-0",
        "turn": "t",
        "turn_rate": str(RATE),
        "turn_segments": "0",
        "turn_samples": "3",
        "n": "1",
        "samples": "3",
        "plan": "plan",
    }
    begun = Commit(
        (
            m.TurnStarted(turn="t", voice="af_heart", sample_rate=RATE),
            m.SegmentStarted(
                turn="t",
                n=1,
                text="*Hi.*",
                start=10,
                end=13,
                committed_at="2-0",
                ttfb_ms=250.0,
                spoken="Hi.",
            ),
            m.AudioChunk(turn="t", n=1, offset=0, data=b"abcdef"),
        ),
        {**progress, "turn_at": "@first", **Said({}).begin(said, RATE)},
        guard="t",
        speech_s=3 / RATE,
    )
    assert speech.receive(b"abcdef", False, 2.25) == [begun]
    speech.committed(begun, "1000000000312-0")
    more = Commit(
        (m.AudioChunk(turn="t", n=1, offset=3, data=b"gh"),),
        {**progress, "turn_samples": "4", "samples": "4"},
        guard="t",
        speech_s=1 / RATE,
    )
    assert speech.receive(b"gh", False, 2.3) == [more]
    speech.committed(more, "1000000000313-0")
    complete = wire.encode_server(wire.SynthesisComplete("1.1", 4, words=((0, 2, 0.0, 0.5),)))
    done = Commit(
        (m.SegmentDone(turn="t", n=1, samples=4, words=[[0, 2, 0.0, 0.5]]),),
        {
            **more.fields,
            "turn_segments": "1",
            "position": "2-0",
            **Said({}).done(said, 4, ((0, 2, 0.0, 0.5),), RATE),
        },
        guard="t",
        done_to="2-0",
    )
    assert speech.receive(complete, True, 2.4) == [done]
    speech.committed(done, "1000000000314-0")
    assert speech.idle

    end = Commit(
        (m.TurnDone(turn="t", segments=1, samples=4, ttfa_ms=312.0, reason="complete"),),
        {
            "position": "3-0",
            "done_turn": "t",
            "cancelled:t": None,
            **dict.fromkeys(
                ("turn", "turn_at", "turn_rate", "turn_segments", "turn_samples", "n", "samples"),
            ),
            "plan": None,
        },
        guard="t",
        done_to="3-0",
    )
    assert speech.begin("3-0", turn_end(), 3.0) == [end]
    assert speech.turn == "t"
    speech.committed(end, "1000000000315-0")
    assert (speech.idle, speech.turn, speech.position) == (True, "", "3-0")

    assert speech.begin("4-0", m.SessionClose(), 4.0) == [
        Commit((m.Closed(reason="closed"),), {"position": "4-0", "closed": "1"}, done_to="4-0"),
        Disconnect(),
        Close(),
    ]


def test_a_turn_as_listeners_hear_it() -> None:
    world = audio(segment(1, "One."), segment(2, "Two."), turn_end(segments=2))
    assert kinds(world) == [
        "turn_started",
        "segment_started",
        "audio",
        "segment_done",
        "segment_started",
        "audio",
        "segment_done",
        "turn_done",
    ]
    ear = Ear(world.store.events)
    assert ear.segments == {1: voice("one", "One."), 2: voice("one", "Two.")}
    assert world.store.events[-1] == m.TurnDone(
        turn="t", segments=2, samples=800, ttfa_ms=1_000_000_000_000, reason="complete"
    )
    assert len(world.backends) == 1
    assert world.store.trimmed_to == "1000000000003-0"


def test_the_state_of_a_session_at_rest_is_small() -> None:
    world = audio(segment(1), turn_end())
    assert world.store.at_rest == {"done_turn", "position", "settings"}


def test_each_turn_says_its_own_start_and_samples() -> None:
    world = audio(
        segment(1, "One.", turn="a"),
        turn_end("a"),
        segment(2, "Three.", turn="b", first=True),
        turn_end("b"),
    )
    ends = [event for event in world.store.events if isinstance(event, m.TurnDone)]
    assert [(end.turn, end.samples) for end in ends] == [("a", 400), ("b", 600)]
    assert Ear(world.store.events).turns == ["a", "b"]


@pytest.mark.parametrize("chosen", ["ef_dora", None])
def test_a_segment_that_names_no_voice_is_told_by_whom_it_is_spoken(chosen: str | None) -> None:
    speech = Speech("demo", Limits(), {})
    speech.begin("2-0", replace(segment(1, "Hola."), voice="", lang="es"), 2.0)
    (send,) = speech.connected(False, 2.0)
    assert isinstance(send, Send)
    asked = json.loads(send.frame)
    assert ("voice" in asked, asked["lang"]) == (False, "es")
    rate = asked["sample_rate"]
    speech.receive(wire.encode_server(wire.SynthesisStart("1.1", rate, "p", chosen)), True, 2.1)
    (begun,) = speech.receive(b"abcdef", False, 2.2)
    assert isinstance(begun, Commit)
    assert begun.events[0] == m.TurnStarted(turn="t", voice=chosen or "", sample_rate=rate)


def test_a_turn_without_a_segment_is_done_without_having_started() -> None:
    world = audio(turn_end(segments=0))
    assert world.store.events == [
        m.TurnDone(turn="t", segments=0, samples=0, ttfa_ms=None, reason="complete")
    ]


def test_a_silent_segment_ends_without_having_started() -> None:
    world = audio(segment(1, "…"), turn_end())
    assert kinds(world) == ["segment_done", "turn_done"]
    assert world.store.events == [
        m.SegmentDone(turn="t", n=1, samples=0, words=[[0, 1, 0.0, 0.1]]),
        m.TurnDone(turn="t", segments=1, samples=0, ttfa_ms=None, reason="complete"),
    ]


def test_a_turn_starts_with_its_first_sound_not_with_its_silence() -> None:
    world = audio(segment(1, "…"), segment(2, "Two.", first=False), turn_end(segments=2))
    assert kinds(world)[:3] == ["segment_done", "turn_started", "segment_started"]
    silent_inside = audio(segment(1, "One."), segment(2, "…"), turn_end(segments=2))
    done = silent_inside.store.events[4]
    assert done == m.SegmentDone(turn="t", n=2, samples=0, words=[[0, 1, 0.0, 0.1]])


# -- chunks ---------------------------------------------------------------------------------------


def test_the_first_chunk_is_short() -> None:
    world = audio(segment(1, "x" * 100), make_backend=lambda: Backend(frame_bytes=[20_000]))
    sizes = [len(chunk.data) for chunk in chunks(world)]
    assert sizes == [1_600, 5_120, 5_120, 5_120, 3_040]  # 100 ms, then 320 ms at 8 kHz


@given(
    frames=st.lists(st.integers(1, 30_000).map(lambda n: 2 * n), max_size=6),
    rate=st.sampled_from([8_000, 22_050, 24_000, 48_000]),
)
def test_chunks_have_their_sizes_whatever_those_of_the_frames(frames: list[int], rate: int) -> None:
    world = World(
        [session_open(rate), segment(1, "x" * 300), segment(2, "y" * 30)],
        make_backend=lambda: Backend(frame_bytes=frames),
    ).run()
    heard = Ear(world.store.events)
    assert heard.segments == {1: voice("one", "x" * 300), 2: voice("one", "y" * 30)}
    for n in (1, 2):
        sizes = [len(chunk.data) for chunk in chunks(world) if chunk.n == n]
        assert sizes[0] <= 0.1 * rate * 2
        assert all(size <= min(0.32 * rate * 2, 16_000) for size in sizes)
        assert all(size % 2 == 0 for size in sizes)


def test_limits_smaller_than_a_sample_still_make_progress() -> None:
    limits = Limits(first_chunk_s=0, chunk_bytes=1)
    world = audio(segment(1, "x"), limits=limits)
    assert {len(chunk.data) for chunk in chunks(world)} == {2}


# -- one synthesis at a time, requests ------------------------------------------------------------


def test_the_next_segment_is_asked_for_when_this_one_is_complete() -> None:
    world = World([session_open(), segment(1), segment(2)])
    world.run(until=lambda: bool(chunks(world)))
    assert not world.can_begin
    world.run()
    assert [request.id for request in world.backends[0].asked] == ["1.1", "2.2"]


def test_requests_say_how_much_audio_is_ahead() -> None:
    world = World([session_open(), segment(1, "x" * 160), segment(2)])
    world.run(until=lambda: Ear(world.store.events).ends.keys() == {1})
    world.now += 0.5
    world.run()
    assert [r.deadline_ms for r in world.backends[0].asked] == [0, 1_500]  # 2 s were made
    world.entries += [turn_end(), segment(3, turn="u", first=True)]
    world.run()
    assert world.backends[0].asked[2].deadline_ms == 0  # a new turn has nothing ahead
    assert [r.first for r in world.backends[0].asked] == [True, False, True]


def test_a_segment_has_the_same_seed_whoever_asks() -> None:
    one, two = audio(segment(1)), audio(segment(1))
    assert one.backends[0].asked[0].seed == two.backends[0].asked[0].seed
    other = Speech("other", Limits(), {})
    other.begin("1-0", segment(1), 0.0)
    (send,) = other.connected(True, 0.0)
    assert isinstance(send, Send)
    assert json.loads(send.frame)["seed"] != one.backends[0].asked[0].seed


def test_a_language_that_is_to_be_found_out_is_not_named() -> None:
    said = replace(segment(1), lang="auto")
    assert audio(said).backends[0].asked[0].lang is None


def test_settings_that_change_inside_a_turn_wait_for_the_next() -> None:
    world = audio(
        segment(1),
        session_open(16_000),
        segment(2),
        turn_end(),
        segment(3, turn="u", first=True),
    )
    assert [r.sample_rate for r in world.backends[0].asked] == [RATE, RATE, 16_000]
    rates = [e.sample_rate for e in world.store.events if isinstance(e, m.TurnStarted)]
    assert rates == [RATE, 16_000]


def test_settings_are_kept_for_a_successor() -> None:
    world = audio()
    assert Speech("s", Limits(), world.store.fields).settings == session_open()
    other = codec.pack(m.SessionClose(), "s")
    assert Speech("s", Limits(), {"settings": other}).settings.sample_rate == 24_000
    assert Speech("s", Limits(), {}).settings.sample_rate == 24_000


# -- pace -----------------------------------------------------------------------------------------


def test_audio_is_not_made_far_ahead_of_a_realtime_listener() -> None:
    world = World([session_open(), segment(1, "x" * 1_600), segment(2)])
    world.run(until=lambda: world.speech.idle and bool(chunks(world)))
    following = segment(2)
    # 20 s are out, 10 may be ahead.
    assert world.speech.wait_before(following, world.now) == pytest.approx(10)
    assert world.speech.wait_before(following, world.now + 9.5) == pytest.approx(0.5)
    assert world.speech.wait_before(following, world.now + 11) == 0.0
    assert world.speech.wait_before(segment(2, turn="u", first=True), world.now) == 0.0
    assert world.speech.wait_before(turn_end(), world.now) == 0.0


def test_a_file_is_made_as_fast_as_it_can_be() -> None:
    world = World([session_open(pace="none"), segment(1, "x" * 1_600)]).run()
    assert world.speech.wait_before(segment(2), world.now) == 0.0


# -- entries without speech -----------------------------------------------------------------------


def test_what_asks_for_nothing_is_passed_over() -> None:
    speech = Speech("s", Limits(), {})
    assert speech.pass_over("7-0") == Commit((), {"position": "7-0"}, done_to="7-0")
    assert speech.position == "7-0"


def test_nothing_in_hand() -> None:
    speech = Speech("s", Limits(), {})
    assert (speech.idle, speech.turn) == (True, "")
    assert speech.timer() is None
    assert speech.cancelled() == []
    assert speech.receive(b"ab", False, 0.0) == []  # no connection of ours


def test_a_connection_is_freed_when_nothing_is_to_do() -> None:
    world = audio(segment(1), turn_end())
    assert world.speech.rest() == [Disconnect()]
    assert world.speech.rest() == []
    world.backend = None
    world.entries += [segment(2, turn="u", first=True)]
    world.run()
    assert len(world.backends) == 2
    assert Ear(world.store.events).ends == {1: "done", 2: "done"}
