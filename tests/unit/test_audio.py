"""The audio of one turn out of a session's events."""

from __future__ import annotations

import io
import wave

from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from firstword.audio import TurnAudio, wav_bytes

STARTED = m.TurnStarted(turn="a", voice="af_heart", sample_rate=24_000)
DONE = m.TurnDone(turn="a", segments=1, samples=0, ttfa_ms=1.0, reason="complete")


def chunk(n: int, offset: int, data: bytes, turn: str = "a") -> m.AudioChunk:
    return m.AudioChunk(turn=turn, n=n, offset=offset, data=data)


def fed(*messages: m.Audio) -> TurnAudio:
    audio = TurnAudio("a")
    for message in messages:
        audio.feed(message)
    return audio


@given(st.lists(st.lists(st.binary(min_size=1).map(lambda half: half * 2))))
def test_chunks_come_out_as_they_went_in(segments: list[list[bytes]]) -> None:
    audio = TurnAudio("a")
    for n, chunks in enumerate(segments):
        offset = 0
        for data in chunks:
            assert audio.feed(chunk(n, offset, data)) is False
            offset += len(data) // 2
    expected = b"".join(b"".join(chunks) for chunks in segments)
    assert audio.pcm == expected
    assert audio.samples == len(expected) // 2


def test_rate_and_end_are_told() -> None:
    audio = fed(STARTED, chunk(4, 0, b"ab"), m.SegmentDone(turn="a", n=4, samples=1))
    assert audio.sample_rate == 24_000
    assert audio.end is None
    assert audio.feed(DONE) is True
    assert audio.end == DONE


def test_other_turns_are_not_heard() -> None:
    other = m.TurnDone(turn="b", segments=0, samples=0, ttfa_ms=None, reason="complete")
    audio = fed(STARTED, chunk(1, 0, b"xy", turn="b"), other, chunk(2, 0, b"ab"))
    assert audio.pcm == b"ab"
    assert audio.end is None


def test_a_restarted_segment_is_dropped_and_taken_again() -> None:
    audio = fed(
        chunk(1, 0, b"abcd"),
        chunk(2, 0, b"old!"),
        m.SegmentRestarted(turn="a", n=2),
        chunk(2, 0, b"new"),
    )
    assert audio.pcm == b"abcdnew"


def test_what_comes_twice_is_held_once() -> None:
    assert fed(chunk(1, 0, b"abcd"), chunk(1, 1, b"cdef")).pcm == b"abcdef"


def test_a_turn_that_comes_again_with_other_numbers_is_held_once_and_in_order() -> None:
    """A server that lost its state counts from 1 again."""

    def said(n: int, start: int, data: bytes) -> list[m.Audio]:
        began = m.SegmentStarted(turn="a", n=n, text="x", start=start, end=start + 9)
        return [began, chunk(n, 0, data)]

    def done(n: int) -> m.SegmentDone:
        return m.SegmentDone(turn="a", n=n, samples=2)

    before = [STARTED, *said(4, 0, b"abcd"), done(4), *said(5, 10, b"ef")]
    after = [STARTED, *said(2, 0, b"abcd"), done(2), *said(3, 10, b"efgh"), done(3)]
    assert fed(*before, *after, *said(4, 20, b"ijkl")).pcm == b"abcdefghijkl"


def test_what_was_missed_is_silence() -> None:
    assert fed(chunk(1, 0, b"ab"), chunk(1, 3, b"cd")).pcm == b"ab\0\0\0\0cd"


def test_a_cancel_ends_the_turn_and_an_error_does_not() -> None:
    error = m.ErrorEvent(code="timeout", message="too slow", retryable=True, turn="a", n=1)
    cancelled = m.TurnCancelled(turn="a", sent={}, already_done=False)
    audio = fed(chunk(1, 0, b"ab"), error)
    assert audio.errors == [error]
    assert audio.feed(cancelled) is True
    assert audio.end == cancelled
    several = m.TurnCancelled(turn="x", sent={}, already_done=False, turns=["x", "a"])
    assert fed(several).end == several
    assert fed(m.TurnCancelled(turn="x", sent={}, already_done=False)).end is None


def test_the_end_of_the_session_ends_the_turn_but_not_one_that_had_ended() -> None:
    closed = m.Closed(reason="closed")
    assert fed(closed).end == closed
    assert fed(DONE, closed).end == DONE


@given(st.binary().map(lambda half: half * 2), st.sampled_from([8_000, 24_000, 48_000]))
def test_wav_holds_the_same_samples(pcm: bytes, rate: int) -> None:
    with wave.open(io.BytesIO(wav_bytes(pcm, rate))) as file:
        assert file.getparams()[:3] == (1, 2, rate)
        assert file.readframes(file.getnframes()) == pcm
