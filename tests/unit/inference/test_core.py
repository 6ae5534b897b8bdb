"""What a connection decides, without a connection."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.session_protocol import (
    Cancel,
    Cancelled,
    ClientConnection,
    Close,
    Closing,
    Error,
    Ping,
    Pong,
    SynthesisComplete,
    SynthesisStart,
    Synthesize,
    decode_server,
    encode_client,
)
from services.inference.core import (
    FIRST_RETRY_MS,
    Action,
    Disconnect,
    Limits,
    Send,
    Session,
    Start,
    Stop,
    refusal,
)

LIMITS = Limits(max_text_chars=100, max_queued=2)


def said(actions: list[Action]) -> list[Any]:
    """The actions with control frames decoded, so that tests read as messages."""
    return [
        decode_server(a.frame, text=True)
        if isinstance(a, Send) and isinstance(a.frame, str)
        else a.frame
        if isinstance(a, Send)
        else a
        for a in actions
    ]


def ask(id: str = "1", text: str = "Hi.", **fields: Any) -> Synthesize:
    return Synthesize(id=id, text=text, **fields)


class Peer:
    """A session with a shorthand for what its peer says and its engine does."""

    def __init__(self) -> None:
        self.session = Session(LIMITS)

    def says(self, message: Any) -> list[Any]:
        frame = message if isinstance(message, str | bytes) else encode_client(message)
        return said(self.session.receive(frame))

    def completes(self) -> list[Any]:
        return said(
            self.session.completed(duration_s=1.5, words=(), synthesis_ms=2.0, queue_ms=3.0)
        )


@pytest.fixture
def peer() -> Peer:
    return Peer()


def test_one_request_from_start_to_end(peer: Peer) -> None:
    assert peer.says(ask()) == [Start(ask())]
    assert said(peer.session.started("p")) == [SynthesisStart("1", 24_000, "p")]
    assert said(peer.session.audio(b"1234")) == [b"1234"]
    assert said(peer.session.audio(b"56")) == [b"56"]
    assert peer.completes() == [SynthesisComplete("1", 3, 1.5, (), 2.0, 3.0)]
    assert peer.says(ask("2")) == [Start(ask("2"))]
    assert peer.completes() == [SynthesisComplete("2", 0, 1.5, (), 2.0, 3.0)]


def test_requests_wait_in_their_order_up_to_a_bound(peer: Peer) -> None:
    peer.says(ask("1"))
    assert peer.says(ask("2")) == []
    assert peer.says(ask("3")) == []
    [busy] = peer.says(ask("4"))
    assert (busy.id, busy.code, busy.retryable) == ("4", "busy", True)
    assert busy.retry_after_ms == FIRST_RETRY_MS
    assert peer.completes()[1:] == [Start(ask("2"))]
    assert peer.completes()[1:] == [Start(ask("3"))]


def test_who_is_told_to_wait_is_told_for_how_long_by_what_the_last_request_took(peer: Peer) -> None:
    for number in range(1, 4):
        peer.says(ask(str(number)))
    peer.completes()  # after 2 ms of work and 3 ms in the queue
    assert peer.says(ask("4")) == []
    [busy] = peer.says(ask("5"))
    assert (busy.code, busy.retry_after_ms) == ("busy", 5)


def test_an_id_is_used_once_at_a_time(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.says(ask("2"))
    for id in ("1", "2"):
        [error] = peer.says(ask(id))
        assert (error.id, error.code) == (id, "id_in_use")
    assert peer.completes()[1:] == [Start(ask("2"))]


def test_requests_without_an_id_are_served_in_turn(peer: Peer) -> None:
    assert peer.says('{"text": "One."}') == [Start(Synthesize("", "One."))]
    assert peer.says(b'{"text": "Two."}') == []
    assert peer.completes() == [
        SynthesisComplete("", 0, 1.5, (), 2.0, 3.0),
        Start(Synthesize("", "Two.")),
    ]


@pytest.mark.parametrize(
    "frame", ["no json", b"\xff", "[]", '{"type": "x", "id": "7"}', "x" * 2**21]
)
def test_a_bad_frame_gets_an_error_and_the_next_sentence_speaks(
    peer: Peer, frame: str | bytes
) -> None:
    [error] = peer.says(frame)
    assert isinstance(error, Error)
    assert error.id == ("7" if "type" in str(frame) else None)
    assert peer.says(ask()) == [Start(ask())]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ask(text=""), "empty_text"),
        (ask(text=" \n\t"), "empty_text"),
        (ask(text="x" * 101), "text_too_long"),
        (ask(speed=0.49), "bad_field"),
        (ask(speed=2.01), "bad_field"),
        (ask(sample_rate=7_999), "bad_field"),
        (ask(sample_rate=48_001), "bad_field"),
    ],
)
def test_what_cannot_be_spoken_is_refused(peer: Peer, request_: Synthesize, code: str) -> None:
    [error] = peer.says(request_)
    assert (error.id, error.code, error.retryable) == ("1", code, False)
    [action] = peer.session.receive(encode_client(request_))
    assert isinstance(action, Send) and action.error == code
    assert peer.says(ask()) == [Start(ask())]


def test_refusals_never_repeat_the_text() -> None:
    refused = refusal(ask(text="secret " * 50), 100)
    assert refused is not None and "secret" not in refused.message
    assert refusal(ask(text="fine"), 100) is None


def test_a_failure_ends_the_request_and_the_next_one_runs(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.says(ask("2"))
    actions = peer.session.failed("unknown_voice", "see the list", retryable=False)
    assert said(actions) == [Error("1", "unknown_voice", "see the list"), Start(ask("2"))]


def test_a_request_without_an_id_fails_without_one(peer: Peer) -> None:
    peer.says('{"text": "One."}')
    assert said(peer.session.failed("x", "y", retryable=True)) == [Error(None, "x", "y", True)]


def test_cancel_stops_what_runs_and_says_how_much_was_sent(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.session.started("p")
    peer.session.audio(b"1234")
    assert peer.says(Cancel("1")) == [Stop()]
    assert peer.says(Cancel("1")) == []
    assert said(peer.session.audio(b"56")) == []
    assert said(peer.session.stopped()) == [Cancelled("1", 2)]


def test_cancel_before_the_start(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.says(Cancel("1"))
    assert said(peer.session.started("p")) == []
    assert peer.completes() == [Cancelled("1", 0)]


def test_a_failure_after_a_cancel_counts_as_cancelled(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.says(Cancel("1"))
    assert said(peer.session.failed("x", "y", retryable=False)) == [Cancelled("1", 0)]


def test_cancel_of_what_waits_leaves_the_others(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.says(ask("2"))
    peer.says(ask("3"))
    assert peer.says(Cancel("2")) == [Cancelled("2", 0)]
    assert peer.says(Cancel("gone")) == []
    assert peer.completes()[1:] == [Start(ask("3"))]


def test_cancel_without_an_id_cancels_all(peer: Peer) -> None:
    assert peer.says(Cancel("")) == []
    peer.says(ask("1"))
    peer.says(ask("2"))
    assert peer.says(Cancel("")) == [Cancelled("2", 0), Stop()]
    assert said(peer.session.stopped()) == [Cancelled("1", 0)]


def test_the_next_request_may_follow_a_cancel_at_once(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.says(Cancel("1"))
    assert peer.says(ask("2")) == []
    assert said(peer.session.stopped()) == [Cancelled("1", 0), Start(ask("2"))]


def test_ping(peer: Peer) -> None:
    peer.says(ask())
    assert peer.says(Ping()) == [Pong()]


def test_close_lets_what_is_queued_end(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.says(ask("2"))
    assert peer.says(Close()) == []
    [late] = peer.says(ask("3"))
    assert late.code == "draining"
    assert peer.completes()[1:] == [Start(ask("2"))]
    assert peer.completes()[1:] == [Disconnect(1000)]


def test_close_of_an_idle_connection_is_obeyed_once(peer: Peer) -> None:
    assert peer.says(Close()) == [Disconnect(1000)]
    assert peer.says(Close()) == []
    assert said(peer.session.drain()) == []


def test_drain_finishes_what_runs_and_refuses_the_rest(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.says(ask("2"))
    [refused] = said(peer.session.drain())
    assert (refused.id, refused.code, refused.retryable) == ("2", "draining", True)
    assert peer.completes()[1:] == [Closing("drain"), Disconnect(1012)]


def test_drain_of_an_idle_connection(peer: Peer) -> None:
    assert said(peer.session.drain()) == [Closing("drain"), Disconnect(1012)]


def test_a_peer_that_is_gone_stops_everything(peer: Peer) -> None:
    peer.says(ask("1"))
    peer.says(ask("2"))
    assert said(peer.session.disconnected()) == [Stop()]
    assert said(peer.session.stopped()) == []
    assert said(Session(LIMITS).disconnected()) == []


def test_an_outcome_of_nothing_is_a_bug(peer: Peer) -> None:
    with pytest.raises(RuntimeError):
        peer.session.started("p")


steps = st.sampled_from(["speak", "cancel", "cancel_all", "audio", "complete", "fail", "nonsense"])


@given(st.lists(steps, max_size=40))
def test_both_halves_agree_whatever_happens(script: list[str]) -> None:
    """Our client and our session, joined: each request ends once, audio arrives as it was sent."""
    client, session = ClientConnection(), Session(LIMITS)
    to_client: list[Any] = []
    running: list[Synthesize] = []
    ends: dict[str, int] = {}
    heard: dict[str, bytes] = {}
    made: dict[str, bytes] = {}

    def do(actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(frame):
                    to_client.extend(client.receive(frame, isinstance(frame, str)))
                case Start(request):
                    assert not running
                    running.append(request)
                    do(session.started("p"))
                case Stop():
                    running.clear()
                    do(session.stopped())

    for number, step in enumerate(script):
        if step == "speak" and not client.busy:
            id = str(number)
            do(session.receive(client.synthesize(ask(id))))
        elif step == "cancel" and (frame := client.cancel()):
            do(session.receive(frame))
        elif step == "cancel_all":
            do(session.receive(json.dumps({"type": "cancel"})))
        elif step == "nonsense" and not client.busy:
            do(session.receive(b"\xff"))
        elif step in ("audio", "complete", "fail") and running:
            id = running[0].id
            if step == "audio":
                made[id] = made.get(id, b"") + bytes([number, 0])
                do(session.audio(bytes([number, 0])))
                continue
            running.clear()
            if step == "complete":
                do(session.completed(duration_s=0, words=(), synthesis_ms=0, queue_ms=0))
            else:
                do(session.failed("x", "y", retryable=True))
    for event in to_client:
        if isinstance(event, SynthesisComplete | Cancelled | Error) and event.id is not None:
            ends[event.id] = ends.get(event.id, 0) + 1
        elif hasattr(event, "data"):
            heard[event.id] = heard.get(event.id, b"") + event.data
    assert set(ends.values()) <= {1}
    assert heard == made
