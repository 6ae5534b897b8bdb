"""The session frames: the codec, and the gateway's half of a connection."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.session_protocol import (
    MAX_FRAME_BYTES,
    MAX_NAME_CHARS,
    MAX_SERVER_FRAME_BYTES,
    Audio,
    Cancel,
    Cancelled,
    ClientConnection,
    ClientMessage,
    Close,
    Closing,
    Error,
    FrameError,
    LocalProtocolError,
    Ping,
    Pong,
    RemoteProtocolError,
    ServerMessage,
    SynthesisComplete,
    SynthesisStart,
    Synthesize,
    decode_client,
    decode_server,
    encode_client,
    encode_server,
)

names = st.text(max_size=MAX_NAME_CHARS).filter(str.isprintable)
texts = st.text()
whole = st.integers(min_value=0, max_value=2**53 - 1)
seconds = st.floats(min_value=0, max_value=1e6)

client_messages: st.SearchStrategy[ClientMessage] = st.one_of(
    st.builds(
        Synthesize,
        id=names,
        text=texts,
        voice=st.none() | names,
        speed=st.floats(min_value=0.01, max_value=100),
        lang=st.none() | names,
        sample_rate=whole,
        seed=st.integers(min_value=-(2**53) + 1, max_value=2**53 - 1),
        deadline_ms=st.none() | st.integers(min_value=-1000, max_value=10**6),
        skip_samples=whole,
        plan=st.none() | names,
        first=st.booleans(),
        lexicon=st.none() | st.dictionaries(names, names, min_size=1, max_size=3),
        traceparent=st.none() | names,
    ),
    st.builds(Cancel, id=names),
    st.just(Ping()),
    st.just(Close()),
)

server_messages: st.SearchStrategy[ServerMessage] = st.one_of(
    st.builds(SynthesisStart, id=names, sample_rate=whole, plan=st.none() | names),
    st.builds(
        SynthesisComplete,
        id=names,
        samples=st.none() | whole,
        duration_s=seconds,
        words=st.lists(st.tuples(whole, whole, seconds, seconds)).map(tuple),
        synthesis_ms=seconds,
        queue_ms=seconds,
    ),
    st.builds(Cancelled, id=names, samples=whole),
    st.builds(
        Error,
        id=st.none() | names.filter(bool),
        code=texts,
        message=texts,
        retryable=st.booleans(),
        retry_after_ms=st.none() | whole,
    ),
    st.just(Pong()),
    st.builds(Closing, reason=texts),
)


class TestCodec:
    @given(client_messages)
    def test_client_messages_survive_the_wire_as_text_and_as_binary(
        self, message: ClientMessage
    ) -> None:
        frame = encode_client(message)
        assert decode_client(frame) == message
        assert decode_client(frame.encode()) == message

    @given(server_messages)
    def test_server_messages_survive_the_wire_marked_and_unmarked(
        self, message: ServerMessage
    ) -> None:
        frame = encode_server(message)
        assert decode_server(frame, text=True) == message
        assert decode_server(frame) == message
        assert decode_server(frame.encode(), text=True) == message
        assert decode_server(frame.encode()) == message

    @given(st.binary() | st.text() | st.text().map(str.encode))
    def test_any_frame_gives_a_message_or_a_frame_error(self, frame: str | bytes) -> None:
        for text in (True, False, None):
            try:
                decode_server(frame, text)
            except FrameError as error:
                assert error.code and error.message
        try:
            decode_client(frame)
        except FrameError as error:
            assert error.code and error.message

    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )
    field_names = st.sampled_from(
        "id request_id text voice speed lang sample_rate seed deadline_ms skip_samples plan "
        "first samples duration_s total_duration_s words synthesis_ms queue_ms code message "
        "retryable retry_after_ms".split()
    )
    kinds = st.sampled_from(
        "synthesize cancel ping close synthesis_start synthesis_complete cancelled error pong "
        "closing".split()
    )

    @given(kinds, st.dictionaries(field_names, json_values))
    def test_any_fields_give_a_message_or_a_frame_error(
        self, kind: str, fields: dict[str, Any]
    ) -> None:
        frame = json.dumps({"type": kind, **fields})
        for decode in (decode_client, decode_server):
            try:
                decode(frame)
            except FrameError as error:
                assert error.code in {"bad_json", "bad_field", "unknown_type"}

    @pytest.mark.parametrize(
        ("frame", "code"),
        [
            (b"\xff\xfe{}", "bad_utf8"),
            (b'{"type": "synthesize", "text": "\x00"}', "bad_json"),
            ("", "bad_json"),
            ("hello", "bad_json"),
            ("[" * 100_000, "bad_json"),
            ('{"speed": ' + "1" * 5000 + "}", "bad_json"),
            ('{"text": "a", "speed": NaN}', "bad_json"),
            ('{"text": "a", "speed": -Infinity}', "bad_json"),
            ('{"text": "a", "speed": 1e999}', "bad_field"),
            ('{"text": "a", "speed": 0}', "bad_field"),
            ('{"text": "a", "speed": "1"}', "bad_field"),
            ('{"text": "a", "speed": true}', "bad_field"),
            ("[]", "bad_message"),
            ('"text"', "bad_message"),
            ("null", "bad_message"),
            ("{}", "bad_message"),
            ('{"type": null}', "bad_message"),
            ('{"type": "speak"}', "unknown_type"),
            ('{"type": 3}', "unknown_type"),
            ('{"type": ["cancel"]}', "unknown_type"),
            ('{"type": "synthesize", "id": "1"}', "bad_field"),
            ('{"text": 3}', "bad_field"),
            ('{"text": "a", "lexicon": ["SQL"]}', "bad_field"),
            ('{"text": "a", "traceparent": 5}', "bad_field"),
            ('{"text": "a", "lexicon": {"SQL": 5}}', "bad_field"),
            (json.dumps({"text": "a", "lexicon": {str(n): "x" for n in range(201)}}), "bad_field"),
            ('{"text": "a", "id": 3}', "bad_field"),
            ('{"text": "a", "id": "a\\u0000b"}', "bad_field"),
            ('{"text": "a", "voice": ["af_heart"]}', "bad_field"),
            ('{"text": "a", "lang": "' + "x" * (MAX_NAME_CHARS + 1) + '"}', "bad_field"),
            ('{"text": "a", "sample_rate": 24000.5}', "bad_field"),
            ('{"text": "a", "sample_rate": true}', "bad_field"),
            ('{"text": "a", "skip_samples": -1}', "bad_field"),
            ('{"text": "a", "seed": 9007199254740992}', "bad_field"),
            ("x" * (MAX_FRAME_BYTES + 1), "frame_too_large"),
            (b"x" * (MAX_FRAME_BYTES + 1), "frame_too_large"),
            ("é" * (MAX_FRAME_BYTES // 2 + 1), "frame_too_large"),
        ],
    )
    def test_bad_client_frames_are_refused_with_a_reason(
        self, frame: str | bytes, code: str
    ) -> None:
        with pytest.raises(FrameError) as caught:
            decode_client(frame)
        assert caught.value.code == code
        assert caught.value.message
        assert not caught.value.retryable

    @pytest.mark.parametrize(
        ("fields", "id"),
        [
            ({"id": "7"}, "7"),
            ({"request_id": "r"}, "r"),
            ({}, None),
            ({"id": ""}, None),
            ({"id": 7}, None),
            ({"id": "x" * 300}, None),
            ({"id": "a\nb"}, None),
        ],
    )
    def test_an_error_names_the_synthesis_where_it_can(
        self, fields: dict[str, Any], id: str | None
    ) -> None:
        with pytest.raises(FrameError) as caught:
            decode_client(json.dumps({**fields, "type": "nonsense"}))
        assert caught.value.id == id

    def test_no_error_repeats_the_spoken_text(self) -> None:
        for frame in ('{"text": "secret", "speed": "fast"}', '{"text": "secret"', b"secret\xff"):
            with pytest.raises(FrameError) as caught:
                decode_client(frame)
            assert "secret" not in str(caught.value)

    def test_the_type_may_be_left_out_where_text_is(self) -> None:
        frame = '{"text": "Hi", "voice": "af_heart", "request_id": "r1", "request_timestamp": 1.5}'
        assert decode_client(frame) == Synthesize(id="r1", text="Hi", voice="af_heart")

    def test_null_is_the_same_as_absent(self) -> None:
        frame = '{"text": "Hi", "id": null, "speed": null, "voice": null, "plan": null}'
        assert decode_client(frame) == Synthesize(id="", text="Hi")

    def test_whole_doubles_are_integers(self) -> None:
        message = decode_client('{"text": "Hi", "sample_rate": 16000.0, "deadline_ms": -3.0}')
        assert message == Synthesize(id="", text="Hi", sample_rate=16000, deadline_ms=-3)

    def test_escaped_surrogates_are_joined_or_replaced(self) -> None:
        message = decode_client(r'{"text": "\ud83d\ude00 \ud83d x"}')
        assert message == Synthesize(id="", text="\U0001f600 � x")

    def test_a_lone_surrogate_never_leaves_as_a_frame(self) -> None:
        frame = encode_client(Synthesize(id="1", text="a\ud83d"))
        assert frame.encode()
        assert decode_client(frame) == Synthesize(id="1", text="a�")

    @pytest.mark.parametrize(
        "data",
        [
            b"{}",
            b"",
            b"\x00\x00",
            b"{",
            b' {"a": 1}',
            b"[]",
            b'{"type":"audio"}',
            b'{"type":["pong"]}',
            b'{"type":"pong"}' + b"\x00",
            b"\xff{}",
        ],
    )
    def test_unmarked_frames_are_audio_unless_all_of_them_is_control(self, data: bytes) -> None:
        assert decode_server(data) == data
        assert decode_server(data, text=False) == data

    def test_a_marked_frame_is_what_the_transport_says(self) -> None:
        pong = encode_server(Pong())
        assert decode_server(pong.encode(), text=False) == pong.encode()
        with pytest.raises(FrameError, match="unknown_type"):
            decode_server(b"{}", text=True)
        with pytest.raises(FrameError, match="bad_json"):
            decode_server("\x00\x00", text=True)

    @pytest.mark.parametrize(
        "words",
        ["x", [3], [[1, 2, 3]], [[1, 2, 0.5, -1]], [[1, 2, 0.5, "x"]], [[-1, 2, 0.5, 1]]],
    )
    def test_bad_words_are_refused(self, words: object) -> None:
        frame = json.dumps({"type": "synthesis_complete", "words": words})
        with pytest.raises(FrameError, match="words"):
            decode_server(frame)

    def test_a_bad_boolean_is_refused(self) -> None:
        with pytest.raises(FrameError, match="retryable"):
            decode_server('{"type": "error", "retryable": 1}')

    def test_the_published_containers_frames_are_understood(self) -> None:
        assert decode_server('{"type": "synthesis_start", "request_id": "r"}') == SynthesisStart(
            "r"
        )
        complete = (
            '{"type": "synthesis_complete", "request_id": "r", "total_duration_s": 1.5, '
            '"elapsed_s": 0.2}'
        )
        assert decode_server(complete) == SynthesisComplete("r", None, duration_s=1.5)

    def test_an_oversized_server_frame_is_refused(self) -> None:
        with pytest.raises(FrameError, match="frame_too_large"):
            decode_server(" " * (MAX_SERVER_FRAME_BYTES + 1), text=True)


def audio(samples: int) -> bytes:
    return bytes(2 * samples)


def request(id: str = "1", **fields: Any) -> Synthesize:
    return Synthesize(id=id, text="Hi.", **fields)


class Upstream:
    """A connection with a shorthand for what the container says."""

    def __init__(self) -> None:
        self.connection = ClientConnection()

    def hears(self, message: ServerMessage | bytes) -> list[Any]:
        if isinstance(message, bytes):
            return list(self.connection.receive(message, text=False))
        return list(self.connection.receive(encode_server(message), text=True))


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


class TestClientConnection:
    def test_one_synthesis_from_start_to_end(self, upstream: Upstream) -> None:
        connection = upstream.connection
        assert decode_client(connection.synthesize(request())) == request()
        assert connection.busy
        assert upstream.hears(SynthesisStart("1", plan="p")) == [SynthesisStart("1", plan="p")]
        assert upstream.hears(audio(3)) == [Audio("1", 0, audio(3))]
        assert upstream.hears(b"") == []
        assert upstream.hears(audio(2)) == [Audio("1", 3, audio(2))]
        done = SynthesisComplete("1", 5, 0.1)
        assert upstream.hears(done) == [done]
        assert not connection.busy

    def test_a_second_synthesis_waits_for_the_first(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request("1"))
        with pytest.raises(LocalProtocolError, match="synthesis_running"):
            upstream.connection.synthesize(request("2"))

    def test_ids_are_not_used_twice_at_a_time(self, upstream: Upstream) -> None:
        with pytest.raises(LocalProtocolError, match="id_in_use"):
            upstream.connection.synthesize(request(""))
        upstream.connection.synthesize(request("1"))
        upstream.connection.cancel()
        with pytest.raises(LocalProtocolError, match="id_in_use"):
            upstream.connection.synthesize(request("1"))

    def test_audio_resumes_where_it_broke_off_under_the_same_plan(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request(skip_samples=100, plan="p"))
        upstream.hears(SynthesisStart("1", plan="p"))
        assert upstream.hears(audio(2)) == [Audio("1", 100, audio(2))]
        assert upstream.hears(SynthesisComplete("1", 2)) == [SynthesisComplete("1", 2)]

    @pytest.mark.parametrize(("asked", "answered"), [("p", "q"), ("p", None), (None, None)])
    def test_audio_starts_at_0_under_another_plan(
        self, upstream: Upstream, asked: str | None, answered: str | None
    ) -> None:
        upstream.connection.synthesize(request(skip_samples=100, plan=asked))
        upstream.hears(SynthesisStart("1", plan=answered))
        assert upstream.hears(audio(2)) == [Audio("1", 0, audio(2))]

    def test_a_wrong_count_is_an_error_to_retry(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request())
        upstream.hears(SynthesisStart("1"))
        upstream.hears(audio(4))
        [error] = upstream.hears(SynthesisComplete("1", 5))
        assert (error.id, error.code, error.retryable) == ("1", "samples_mismatch", True)
        assert not upstream.connection.busy

    def test_a_container_that_does_not_count_is_believed(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request())
        upstream.hears(SynthesisStart(""))
        upstream.hears(audio(4))
        assert upstream.hears(SynthesisComplete("", None)) == [SynthesisComplete("1", 4)]

    def test_audio_without_a_start_is_refused(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request())
        with pytest.raises(RemoteProtocolError, match="audio_unannounced") as caught:
            upstream.hears(audio(1))
        assert caught.value.retryable

    def test_half_a_sample_is_refused(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request())
        upstream.hears(SynthesisStart("1"))
        with pytest.raises(RemoteProtocolError, match="audio_torn"):
            upstream.hears(b"\x00\x00\x00")

    @pytest.mark.parametrize("id", ["", "9"])
    def test_a_start_of_nothing_is_refused(self, upstream: Upstream, id: str) -> None:
        with pytest.raises(RemoteProtocolError, match="start_unexpected"):
            upstream.hears(SynthesisStart(id))

    def test_a_second_start_is_refused(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request())
        upstream.hears(SynthesisStart("1"))
        with pytest.raises(RemoteProtocolError, match="start_unexpected"):
            upstream.hears(SynthesisStart("1"))

    def test_a_complete_of_nothing_started_is_refused(self, upstream: Upstream) -> None:
        with pytest.raises(RemoteProtocolError, match="complete_unexpected"):
            upstream.hears(SynthesisComplete("1", 0))
        upstream.connection.synthesize(request())
        with pytest.raises(RemoteProtocolError, match="complete_unexpected"):
            upstream.hears(SynthesisComplete("1", 0))

    def test_cancel_with_nothing_to_cancel(self, upstream: Upstream) -> None:
        assert upstream.connection.cancel() is None
        upstream.connection.synthesize(request())
        assert upstream.connection.cancel() == encode_client(Cancel("1"))
        assert upstream.connection.cancel() is None

    def test_frames_under_way_at_a_cancel_are_dropped(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request())
        upstream.hears(SynthesisStart("1"))
        upstream.hears(audio(2))
        upstream.connection.cancel()
        assert upstream.hears(audio(2)) == []
        assert upstream.hears(Cancelled("1", 4)) == [Cancelled("1", 4)]
        assert upstream.hears(Cancelled("1", 4)) == []
        with pytest.raises(RemoteProtocolError, match="audio_unannounced"):
            upstream.hears(audio(2))

    def test_the_next_synthesis_may_follow_a_cancel_at_once(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request("1"))
        upstream.connection.cancel()
        upstream.connection.synthesize(request("2"))
        assert upstream.hears(SynthesisStart("1")) == []
        assert upstream.hears(audio(2)) == []
        assert upstream.hears(Cancelled("1", 2)) == [Cancelled("1", 2)]
        assert upstream.hears(SynthesisStart("2")) == [SynthesisStart("2")]
        assert upstream.hears(audio(1)) == [Audio("2", 0, audio(1))]

    def test_a_completion_quicker_than_its_cancel_counts_as_cancelled(
        self, upstream: Upstream
    ) -> None:
        upstream.connection.synthesize(request())
        upstream.hears(SynthesisStart("1"))
        upstream.hears(audio(2))
        upstream.connection.cancel()
        assert upstream.hears(SynthesisComplete("1", 9)) == [Cancelled("1", 2)]

    def test_an_error_quicker_than_its_cancel_counts_as_cancelled(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request())
        upstream.connection.cancel()
        assert upstream.hears(Error("1", "busy", "later", True)) == [Cancelled("1", 0)]

    def test_a_cancelled_synthesis_without_an_answer_ends_when_the_next_starts(
        self, upstream: Upstream
    ) -> None:
        upstream.connection.synthesize(request("1"))
        upstream.connection.cancel()
        upstream.connection.synthesize(request("2"))
        events = upstream.hears(SynthesisStart("2"))
        assert events == [Cancelled("1", 0), SynthesisStart("2")]

    def test_an_error_ends_the_synthesis_and_the_next_one_runs(self, upstream: Upstream) -> None:
        upstream.connection.synthesize(request("1"))
        error = Error("1", "unknown_voice", "see `firstword voices`")
        assert upstream.hears(error) == [error]
        upstream.connection.synthesize(request("2"))
        assert upstream.hears(Error(None, "engine_failed", "x")) == [
            Error("2", "engine_failed", "x")
        ]
        assert not upstream.connection.busy

    def test_errors_that_belong_to_nothing_we_wait_for(self, upstream: Upstream) -> None:
        assert upstream.hears(Error(None, "bad_json", "x")) == [Error(None, "bad_json", "x")]
        assert upstream.hears(Error("9", "busy", "x")) == []

    def test_pong_and_closing_pass(self, upstream: Upstream) -> None:
        assert upstream.hears(Pong()) == [Pong()]
        assert upstream.hears(Closing("drain")) == [Closing("drain")]

    def test_unknown_control_is_counted_and_skipped(self, upstream: Upstream) -> None:
        assert upstream.connection.receive('{"type": "visemes"}', text=True) == []
        assert upstream.connection.skipped == 1
        with pytest.raises(FrameError, match="bad_json"):
            upstream.connection.receive("nonsense", text=True)


@given(st.lists(st.binary(max_size=40), max_size=12), st.booleans())
def test_joined_audio_equals_what_was_sent_whatever_the_bytes(
    chunks: list[bytes], marked: bool
) -> None:
    chunks = [chunk[: len(chunk) // 2 * 2] for chunk in chunks]
    connection = ClientConnection()
    connection.synthesize(request())
    connection.receive(encode_server(SynthesisStart("1")), text=True)
    received: list[Audio] = []
    for chunk in chunks:
        events = connection.receive(chunk, text=False if marked else None)
        received.extend(event for event in events if isinstance(event, Audio))
    assert b"".join(event.data for event in received) == b"".join(chunks)
    assert [event.offset for event in received] == [
        sum(len(earlier.data) // 2 for earlier in received[:i]) for i in range(len(received))
    ]
