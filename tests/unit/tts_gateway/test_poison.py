"""Entries that our own code broke on: each ends, with an error where somebody waits for it."""

from __future__ import annotations

from firstword import messages as m
from services.tts_gateway.actions import Action, Commit, Limits
from services.tts_gateway.core import Speech
from tests.unit.tts_gateway.world import ENTRY, segment, session_open, turn_end

AT = ENTRY.format(7)


def put_aside(speech: Speech, message: m.Segments | None) -> Commit:
    made: list[Action] = speech.put_aside(AT, message)
    [commit] = [action for action in made if isinstance(action, Commit)]
    assert commit.done_to == AT
    assert commit.fields["position"] == AT
    return commit


def told(commit: Commit) -> list[tuple[str, str | None, int | None]]:
    return [(e.code, e.turn, e.n) for e in commit.events if isinstance(e, m.ErrorEvent)]


def test_a_segment_ends_and_a_cancel_is_still_obeyed() -> None:
    speech = Speech("s", Limits(), {})
    commit = put_aside(speech, segment(3))
    assert told(commit) == [("failed", "t", 3)]
    assert commit.guard == "t"
    [passed] = [action for action in speech.cancelled() if isinstance(action, Commit)]
    assert (passed.done_to, passed.events) == (AT, ())
    speech.committed(passed, "1-0")
    assert speech.idle


def test_a_turns_end_is_told_with_its_reason() -> None:
    speech = Speech("s", Limits(), {"turn": b"t", "turn_samples": b"800"})
    commit = put_aside(speech, turn_end())
    assert told(commit) == [("failed", "t", None)]
    end = commit.events[-1]
    assert isinstance(end, m.TurnDone)
    assert (end.turn, end.reason, end.samples) == ("t", "failed", 800)
    speech.committed(commit, "1-0")
    assert speech.idle


def test_what_is_no_part_of_a_turn_is_passed_over() -> None:
    for message in (session_open(), None):
        assert told(put_aside(Speech("s", Limits(), {}), message)) == [("failed", None, None)]
