"""Golden session frames: what version 1 wrote must be read, and written, for ever."""

from __future__ import annotations

import pytest

from firstword.session_protocol import (
    Cancel,
    Cancelled,
    ClientMessage,
    Close,
    Closing,
    Error,
    Ping,
    Pong,
    ServerMessage,
    SynthesisComplete,
    SynthesisStart,
    Synthesize,
    decode_client,
    decode_server,
    encode_client,
    encode_server,
)

CLIENT: list[tuple[str, ClientMessage]] = [
    (
        '{"type":"synthesize","id":"demo-1","text":"Grüß dich, \\"Ann\\"!","speed":1.25,'
        '"sample_rate":16000,"seed":7,"skip_samples":4800,"voice":"af_heart","lang":"en-us",'
        '"deadline_ms":250,"plan":"3f9c"}',
        Synthesize(
            id="demo-1",
            text='Grüß dich, "Ann"!',
            voice="af_heart",
            speed=1.25,
            lang="en-us",
            sample_rate=16_000,
            seed=7,
            deadline_ms=250,
            skip_samples=4_800,
            plan="3f9c",
        ),
    ),
    (
        '{"type":"synthesize","id":"2","text":"Hi.","speed":1.0,"sample_rate":24000,"seed":0,'
        '"skip_samples":0}',
        Synthesize(id="2", text="Hi."),
    ),
    (
        '{"type":"synthesize","id":"3","text":"Hi.","speed":1.0,"sample_rate":24000,"seed":0,'
        '"skip_samples":0,"deadline_ms":0,"first":true}',
        Synthesize(id="3", text="Hi.", deadline_ms=0, first=True),
    ),
    (
        '{"type":"synthesize","id":"4","text":"Hi.","speed":1.0,"sample_rate":24000,"seed":0,'
        '"skip_samples":0,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}',
        Synthesize(
            id="4",
            text="Hi.",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ),
    ('{"type":"cancel","id":"demo-1"}', Cancel("demo-1")),
    ('{"type":"ping"}', Ping()),
    ('{"type":"close"}', Close()),
]

SERVER: list[tuple[str, ServerMessage]] = [
    (
        '{"type":"synthesis_start","id":"demo-1","sample_rate":24000,"plan":"3f9c"}',
        SynthesisStart("demo-1", 24_000, "3f9c"),
    ),
    (
        '{"type":"synthesis_start","id":"2","sample_rate":24000,"plan":"3f9c","voice":"ef_dora"}',
        SynthesisStart("2", 24_000, "3f9c", "ef_dora"),
    ),
    (
        '{"type":"synthesis_complete","id":"demo-1","samples":36000,"duration_s":1.5,'
        '"words":[[0,4,0.03,0.41],[5,9,0.41,0.8]],"synthesis_ms":912.5,"queue_ms":3.0}',
        SynthesisComplete(
            "demo-1", 36_000, 1.5, ((0, 4, 0.03, 0.41), (5, 9, 0.41, 0.8)), 912.5, 3.0
        ),
    ),
    ('{"type":"cancelled","id":"demo-1","samples":9600}', Cancelled("demo-1", 9_600)),
    (
        '{"type":"error","id":null,"code":"bad_json","message":"x","retryable":false}',
        Error(None, "bad_json", "x"),
    ),
    (
        '{"type":"error","id":"3","code":"busy","message":"try again","retryable":true}',
        Error("3", "busy", "try again", retryable=True),
    ),
    (
        '{"type":"error","id":"4","code":"busy","message":"try again","retryable":true,'
        '"retry_after_ms":250}',
        Error("4", "busy", "try again", retryable=True, retry_after_ms=250),
    ),
    ('{"type":"pong"}', Pong()),
    ('{"type":"closing","reason":"drain"}', Closing("drain")),
]


@pytest.mark.parametrize(("frame", "message"), CLIENT)
def test_client_frames(frame: str, message: ClientMessage) -> None:
    assert decode_client(frame) == message
    assert encode_client(message) == frame


@pytest.mark.parametrize(("frame", "message"), SERVER)
def test_server_frames(frame: str, message: ServerMessage) -> None:
    assert decode_server(frame, text=True) == message
    assert encode_server(message) == frame


def test_unknown_fields_are_ignored() -> None:
    assert decode_client('{"type":"cancel","id":"1","why":"barge-in"}') == Cancel("1")
    assert decode_server('{"type":"cancelled","id":"1","at":3}', text=True) == Cancelled("1")
