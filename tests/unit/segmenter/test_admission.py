"""Who is let in while the server's memory runs short."""

from __future__ import annotations

import pytest

from firstword import messages as m
from services.segmenter.admission import FORGOTTEN_S, Admission, Memory, Verdict

TAKE, REFUSE, DROP = Verdict.TAKE, Verdict.REFUSE, Verdict.DROP
OPEN = m.Open(session="s")
FLUSH = m.Flush(session="s", turn="t")


def text(turn: str | None = "t", session: str = "s") -> m.Text:
    return m.Text(session=session, text="A word", turn=turn)


def end(turn: str | None = "t") -> m.End:
    return m.End(session="s", turn=turn)


@pytest.fixture
def memory() -> Memory:
    return Memory(limit=0.8, share=0.9)


@pytest.fixture
def admission(memory: Memory) -> Admission:
    return Admission(memory)


@pytest.mark.parametrize(
    ("share", "short"), [(0.0, False), (0.79, False), (0.8, True), (1.0, True)]
)
def test_memory_is_short_from_the_limit_on(share: float, short: bool) -> None:
    assert Memory(0.8, share).short is short


@pytest.mark.parametrize("message", [OPEN, text(), text(None)])
def test_a_new_session_is_refused_and_one_that_is_there_goes_on(
    admission: Admission, message: m.Ingress
) -> None:
    assert admission.judge([message], True, 0.0) is TAKE
    assert admission.judge([message], False, 0.0) is REFUSE


def test_with_room_everybody_is_taken(admission: Admission, memory: Memory) -> None:
    memory.share = 0.5
    assert admission.judge([OPEN], False, 0.0) is TAKE
    assert admission.judge([text()], False, 0.0) is TAKE


@pytest.mark.parametrize(
    "message", [m.Cancel(session="s"), m.Close(session="s"), FLUSH, end(), end(None)]
)
def test_what_makes_no_session_is_taken(admission: Admission, message: m.Ingress) -> None:
    assert admission.judge([message], False, 0.0) is TAKE


@pytest.mark.parametrize("turn", ["t", None])
def test_a_refused_turn_is_told_once_and_refused_whole(
    admission: Admission, memory: Memory, turn: str | None
) -> None:
    assert admission.judge([text(turn)], False, 0.0) is REFUSE
    assert admission.judge([text(turn)], False, 1.0) is DROP
    memory.share = 0.1
    assert admission.judge([text(turn)], False, 2.0) is DROP, "not from its middle"
    assert admission.judge([text(turn)], True, 3.0) is DROP, "whatever came in between"
    assert admission.judge([end(turn)], False, 4.0) is DROP
    assert admission.judge([text(turn)], False, 5.0) is TAKE, "the name is free again"


def test_a_whole_turn_in_one_entry_is_over_with_it(admission: Admission, memory: Memory) -> None:
    assert admission.judge([text(None), end(None)], False, 0.0) is REFUSE
    memory.share = 0.1
    assert admission.judge([text(None), end(None)], False, 1.0) is TAKE


def test_another_turn_and_another_session_are_judged_anew(
    admission: Admission, memory: Memory
) -> None:
    assert admission.judge([text()], False, 0.0) is REFUSE
    assert admission.judge([text("u")], False, 0.0) is REFUSE
    assert admission.judge([text(session="other")], False, 0.0) is REFUSE
    memory.share = 0.1
    assert admission.judge([text("v")], False, 0.0) is TAKE
    assert admission.judge([m.Cancel(session="s", turn="t")], False, 0.0) is TAKE


def test_a_refused_turn_that_falls_silent_is_forgotten(
    admission: Admission, memory: Memory
) -> None:
    assert admission.judge([text("old")], False, 0.0) is REFUSE
    assert admission.judge([text("new")], False, 1.0) is REFUSE
    assert admission.judge([m.Flush(session="s", turn="old")], False, 2.0) is DROP
    memory.share = 0.1
    now = 1.0 + FORGOTTEN_S
    assert admission.judge([text("new")], False, now) is TAKE
    assert admission.judge([text("old")], False, now) is DROP, "it had input since"
    assert admission.judge([text("old")], False, now + FORGOTTEN_S) is TAKE
