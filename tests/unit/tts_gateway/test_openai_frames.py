"""Session frames as requests of a speech server, and its answers as frames."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword import session_protocol as wire
from firstword.errors import SettingsError, UpstreamError
from firstword.session_protocol import Cancel, Close, Ping, Synthesize, encode_client
from services.tts_gateway.openai_frames import (
    Abort,
    Action,
    End,
    Exchange,
    Give,
    Post,
    Target,
    read_target,
)

TARGET = Target("http://host:8880/v1")
PCM = bytes(range(16))


def ask(exchange: Exchange, id: str = "1", text: str = "Hello.", **fields: object) -> list[Action]:
    return exchange.client(encode_client(Synthesize(id, text, **fields)))  # type: ignore[arg-type]


def told(actions: list[Action]) -> list[wire.ServerMessage | bytes]:
    """The frames that are given, read."""
    return [wire.decode_server(a.frame, a.text) for a in actions if isinstance(a, Give)]


def complete(id: str, samples: int, rate: int = 24_000) -> wire.SynthesisComplete:
    return wire.SynthesisComplete(id, samples, samples / rate)


# -- the URL --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("openai+http://host:8880/v1", TARGET),
        ("openai+http://host:8880/v1/", TARGET),
        ("openai+https://api.host/v1?model=tts-1", Target("https://api.host/v1", model="tts-1")),
        (
            "openai+http://host:1/v1?voice=alloy&rate=16000&model=a%2Fb",
            Target("http://host:1/v1", "a/b", "alloy", 16_000),
        ),
        ("openai+http://[::1]:8880/v1?model=&voice=", Target("http://[::1]:8880/v1")),
    ],
)
def test_the_url_names_server_model_voice_and_rate(url: str, target: Target) -> None:
    assert read_target(url) == target


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("openai://host/v1", "openai\\+http"),
        ("openai+http:///v1", "openai\\+http"),
        ("openai+http://host:99999/v1", "[Pp]ort"),
        ("openai+http://[host/v1", "IPv6"),
        ("openai+http://host/v1?speed=2&modell=x", "not modell, speed"),
        ("openai+http://host/v1?rate=fast", "8000 to 48000"),
        ("openai+http://host/v1?rate=96000", "8000 to 48000"),
    ],
)
def test_a_wrong_url_is_told(url: str, what: str) -> None:
    with pytest.raises(SettingsError, match=what):
        read_target(url)


def test_a_key_in_the_url_is_refused_and_not_told() -> None:
    with pytest.raises(SettingsError) as raised:
        read_target("openai+https://sk-secret@host/v1")
    assert "secret" not in str(raised.value)
    assert "FIRSTWORD_OPENAI_API_KEY" in str(raised.value)


# -- requests -------------------------------------------------------------------------------------


def test_a_synthesis_is_a_request_and_its_body_the_audio() -> None:
    exchange = Exchange(TARGET)
    body = {
        "model": "kokoro",
        "input": "Guten Tag 👋",
        "voice": "am_adam",
        "response_format": "pcm",
        "speed": 1.25,
        "stream": True,
    }
    actions = ask(exchange, text="Guten Tag 👋", voice="am_adam", speed=1.25)
    assert actions == [Post(body)]
    assert exchange.answered("audio/pcm") == []
    assert told(exchange.came(PCM[:5])) == [wire.SynthesisStart("1"), PCM[:4]]
    assert told(exchange.came(PCM[5:7])) == [PCM[4:6]]
    assert told(exchange.came(PCM[7:8])) == [PCM[6:8]]
    assert told(exchange.came(b"\0")) == []
    assert told(exchange.came(b"\0")) == [b"\0\0"]
    assert told(exchange.ended()) == [complete("1", 5)]


def test_a_session_without_a_voice_has_the_servers() -> None:
    (post,) = ask(Exchange(Target("http://h/v1", voice="alloy")), voice="")
    assert isinstance(post, Post) and post.body["voice"] == "alloy"


def test_the_rate_is_what_the_server_says() -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    exchange.answered("audio/pcm;rate=16000")
    assert told(exchange.came(PCM)) == [wire.SynthesisStart("1", 16_000), PCM]
    assert told(exchange.ended()) == [complete("1", 8, 16_000)]


def test_an_empty_body_is_a_synthesis_without_audio() -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    exchange.answered("audio/pcm")
    assert told(exchange.ended()) == [wire.SynthesisStart("1"), complete("1", 0)]


def test_requests_follow_each_other() -> None:
    exchange = Exchange(TARGET)
    assert len(ask(exchange, "1")) == 1
    assert ask(exchange, "2", "Two.") == []
    exchange.answered("")
    last, post = exchange.ended()[-2:]
    assert told([last]) == [complete("1", 0)]
    assert isinstance(post, Post) and post.body["input"] == "Two."


# -- other frames ---------------------------------------------------------------------------------


def test_pings_are_answered_while_a_request_runs() -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    assert told(exchange.client(encode_client(Ping()))) == [wire.Pong()]


def test_a_bad_frame_is_told_and_the_link_goes_on() -> None:
    exchange = Exchange(TARGET)
    (error,) = told(exchange.client('{"id": "7", "type": "sing"}'))
    assert isinstance(error, wire.Error) and (error.id, error.code) == ("7", "unknown_type")
    assert ask(exchange)


def test_a_cancel_closes_the_answer_and_the_next_request_goes_out() -> None:
    exchange = Exchange(TARGET)
    ask(exchange, "1")
    exchange.answered("audio/pcm")
    exchange.came(PCM)
    ask(exchange, "2")
    ask(exchange, "3")
    assert told(exchange.client(encode_client(Cancel("2")))) == [wire.Cancelled("2")]
    actions = exchange.client(encode_client(Cancel("1")))
    assert actions[0] == Abort()
    assert told(actions) == [wire.Cancelled("1", 8)]
    assert isinstance(actions[-1], Post)
    assert exchange.client(encode_client(Cancel("1"))) == []
    assert told(exchange.client(encode_client(Cancel("")))) == [wire.Cancelled("3")]
    assert exchange.client(encode_client(Cancel(""))) == []


def test_close_ends_the_link_after_what_is_queued() -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    assert exchange.client(encode_client(Close())) == []
    exchange.answered("")
    end = exchange.ended()[-1]
    assert isinstance(end, End) and end.error.code == "upstream_lost"
    assert isinstance(Exchange(TARGET).client(encode_client(Close()))[0], End)


# -- what goes wrong ------------------------------------------------------------------------------


def test_a_broken_wire_ends_the_link() -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    error = UpstreamError("upstream_lost", "it broke", retryable=True)
    assert exchange.broke(error) == [End(error)]


def test_a_body_with_half_a_sample_is_never_complete() -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    exchange.answered("audio/pcm")
    exchange.came(PCM + b"\1")
    (error,) = told(exchange.ended())
    assert isinstance(error, wire.Error) and (error.code, error.retryable) == ("audio_torn", True)


@pytest.mark.parametrize("at_once", [True, False])
def test_audio_of_another_kind_is_refused(at_once: bool) -> None:
    exchange = Exchange(TARGET)
    ask(exchange, "1")
    ask(exchange, "2")
    stereo = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0\1\0\0\0\1\0\0\0\2\0\x10\0"
    if at_once:
        actions = exchange.answered("audio/mpeg")
    else:
        exchange.answered("audio/wav")
        actions = exchange.came(stereo)
    (error,) = told(actions)
    assert actions[0] == Abort()
    assert isinstance(error, wire.Error)
    assert (error.id, error.code, error.retryable) == ("1", "unsupported_audio", False)
    assert isinstance(actions[-1], Post), "the next one is asked for"


@pytest.mark.parametrize(
    ("status", "code", "retryable", "advice"),
    [
        (302, "bad_answer", False, "final address"),
        (400, "bad_request", False, "voice"),
        (401, "not_permitted", False, "FIRSTWORD_OPENAI_API_KEY"),
        (403, "not_permitted", False, "FIRSTWORD_OPENAI_API_KEY"),
        (404, "not_found", False, "http://host:8880/v1/audio/speech"),
        (422, "bad_request", False, "model="),
        (429, "busy", True, "less"),
        (500, "upstream_failed", True, "log"),
        (502, "upstream_unreachable", True, "is it up"),
        (503, "busy", True, "no room"),
    ],
)
def test_a_status_says_what_to_do(status: int, code: str, retryable: bool, advice: str) -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    (error,) = told(exchange.refused(status, "", b""))
    assert isinstance(error, wire.Error)
    assert (error.id, error.code, error.retryable) == ("1", code, retryable)
    assert advice in error.message and str(status) in error.message


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        ("2", 2_000),
        ("9" * 50, 86_400_000),
        ("", None),
        ("-1", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_how_long_to_stay_away_is_passed_on(header: str, wait_ms: int | None) -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    (error,) = told(exchange.refused(429, header, b""))
    assert isinstance(error, wire.Error) and error.retry_after_ms == wait_ms


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": {"message": "no voice bob"}}, "no voice bob"),
        ({"error": "no voice bob"}, "no voice bob"),
        ({"detail": {"error": "validation_error", "message": "x"}}, "validation_error"),
        ({"detail": [{"msg": "field required", "loc": ["body"]}]}, "field required"),
        ({"message": "line\nbreak"}, "line break"),
        ({"message": "x" * 1000}, "x" * 200),
        ({"detail": []}, ""),
        ({"detail": 7}, ""),
        ([], ""),
        ("no voice", "no voice"),
    ],
)
def test_the_servers_own_reason_is_told(body: object, reason: str) -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    (error,) = told(exchange.refused(400, "", json.dumps(body).encode()))
    assert isinstance(error, wire.Error)
    assert f"(400: {reason})" in error.message if reason else "(400)" in error.message


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[" * 100_000])
def test_a_reason_that_cannot_be_read_is_none(body: bytes) -> None:
    exchange = Exchange(TARGET)
    ask(exchange)
    (error,) = told(exchange.refused(400, "", body))
    assert isinstance(error, wire.Error) and "(400)" in error.message


def test_answers_to_nothing_are_bugs_of_the_shell() -> None:
    with pytest.raises(RuntimeError):
        Exchange(TARGET).refused(500, "", b"")
    with pytest.raises(RuntimeError):
        Exchange(TARGET).came(b"")


# -- against the gateway's half -------------------------------------------------------------------


@given(st.data())
def test_the_gateways_half_understands_all_of_it(data: st.DataObject) -> None:
    """Each synthesis ends exactly once, with the samples that came, whatever the server does."""
    exchange, half = Exchange(TARGET), wire.ClientConnection()
    ended: list[str] = []
    heard: dict[str, bytes] = {}
    sent: dict[str, bytes] = {}
    open_body: str | None = None

    def do(actions: list[Action]) -> None:
        nonlocal open_body
        for action in actions:
            match action:
                case Post():
                    open_body = str(action.body["input"])
                    exchange.answered("audio/pcm")
                case Abort():
                    open_body = None
                case Give(frame, text):
                    for event in half.receive(frame, text):
                        note(event)
                case End():
                    raise AssertionError("nothing broke")

    def note(event: wire.Event) -> None:
        match event:
            case wire.Audio(id, _, audio):
                heard[id] = heard.get(id, b"") + audio
            case wire.SynthesisComplete(id) | wire.Cancelled(id):
                ended.append(id)
                if isinstance(event, wire.SynthesisComplete):
                    assert heard.get(id, b"") == sent.get(id, b"")
            case wire.Error():
                assert event.id is not None
                ended.append(event.id)
            case _:
                pass

    for number in range(data.draw(st.integers(1, 6))):
        do(exchange.client(half.synthesize(Synthesize(str(number), str(number)))))
        for step in data.draw(st.lists(st.sampled_from(["audio", "cancel"]), max_size=4)):
            if step == "audio" and open_body is not None:
                piece = data.draw(st.binary(max_size=9)).replace(b"R", b"r")
                sent[open_body] = sent.get(open_body, b"") + piece
                do(exchange.came(piece))
            elif step == "cancel" and (frame := half.cancel()) is not None:
                do(exchange.client(frame))
        if open_body is not None:
            if data.draw(st.booleans()):
                do(exchange.ended())
            else:
                do(exchange.refused(500, "", b""))
    assert sorted(ended) == [str(number) for number in range(number + 1)]
