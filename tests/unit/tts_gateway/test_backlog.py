"""How much speech waits in a session."""

from __future__ import annotations

import pytest

from firstword import codec
from firstword import messages as m
from firstword.streams import Entry
from services.tts_gateway.backlog import Backlog


def entry(number: int, message: m.Segments) -> Entry:
    return Entry(f"{number}-0", {b"m": codec.pack(message, "s")})


def segment(spoken: str, speed: float = 1.0) -> m.Segment:
    return m.Segment(
        turn="t",
        n=1,
        text=spoken,
        spoken=spoken,
        start=0,
        end=len(spoken),
        voice="af_heart",
        speed=speed,
        lang="en",
        first=True,
        last=False,
        opened_at="1-0",
    )


def test_seconds_are_those_of_the_segments_that_wait() -> None:
    backlog: Backlog[Entry] = Backlog()
    backlog.add([entry(1, segment("a" * 30)), entry(2, segment("a" * 30, speed=2.0))])
    backlog.add([entry(3, m.TurnEnd(turn="t", segments=2))])
    assert len(backlog) == 3
    assert backlog.seconds == pytest.approx(3.0)
    assert backlog.next.id == "1-0"
    backlog.drop()
    assert backlog.next.id == "2-0"
    assert backlog.seconds == pytest.approx(1.0)
    backlog.drop()
    backlog.drop()
    assert (len(backlog), backlog.seconds) == (0, 0.0)


@pytest.mark.parametrize("fields", [{}, {b"m": b"\xff not msgpack"}])
def test_what_cannot_be_read_is_no_speech(fields: dict[bytes, bytes]) -> None:
    backlog: Backlog[Entry] = Backlog()
    backlog.add([Entry("1-0", fields)])
    assert (len(backlog), backlog.seconds) == (1, 0.0)
