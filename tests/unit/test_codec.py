"""msgpack and plain fields <-> messages: what is written is read, and nothing else crashes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, get_args, get_origin, get_type_hints

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firstword import codec
from firstword import messages as m
from firstword.codec import AUDIO, INGRESS, MAX_ENTRY_BYTES, MAX_INT, SEGMENTS, decode_ingress
from firstword.errors import DecodeError
from firstword.ids import is_entry_id
from firstword.keys import NAME

FAMILIES = (INGRESS, SEGMENTS, AUDIO)


def refused(entry: dict[bytes, bytes]) -> DecodeError:
    with pytest.raises(DecodeError) as raised:
        decode_ingress(entry)
    return raised.value


def enveloped(**body: Any) -> dict[bytes, bytes]:
    return {b"m": msgpack.packb({"v": 1, "session": "demo", **body})}


# -- strategies -----------------------------------------------------------------------------------

names = st.from_regex(NAME, fullmatch=True)
entry_ids = st.builds("{}-{}".format, st.integers(0, 10**13), st.integers(0, 2**64 - 1))
texts = st.one_of(
    st.text(st.characters(codec="utf-8")),
    st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")),
)
floats = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(0, MAX_INT)
plain_values = st.recursive(
    st.none() | st.booleans() | whole | floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
OF_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    int: whole,
    float: floats,
    bool: st.booleans(),
    bytes: st.binary(),
    dict[str, Any]: st.dictionaries(texts, plain_values, max_size=4),
    dict[str, int]: st.dictionaries(texts, whole, max_size=4),
    list[str]: st.lists(texts, max_size=3),
    list[list[float]]: st.lists(st.lists(floats, max_size=4), max_size=4),
}
OF_NAME = {"session": names, "turn": names, "src": entry_ids}


def values_of(name: str, hint: Any) -> st.SearchStrategy[Any]:
    optional = type(None) in get_args(hint)
    inner = get_args(hint)[0] if optional else hint
    values = OF_NAME.get(name, OF_TYPE[inner])
    return st.none() | values if optional else values


def instances(cls: type[Any]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls)
    fields = {f.name: values_of(f.name, hints[f.name]) for f in dataclasses.fields(cls)}
    return st.builds(cls, **fields)


def any_of(family: dict[str, type[Any]]) -> st.SearchStrategy[Any]:
    return st.one_of(*map(instances, family.values()))


field_names = sorted(
    {f.name for family in FAMILIES for cls in family.values() for f in dataclasses.fields(cls)}
)
wild_values = st.one_of(
    plain_values, names, st.integers(-(2**63), 2**64 - 1), st.floats(), st.binary(), st.just({})
)
wild_bodies = st.builds(
    lambda kind, fields: {**fields, **({} if kind is None else {"type": kind})},
    st.none() | st.sampled_from(sorted({name for family in FAMILIES for name in family})) | texts,
    st.dictionaries(st.sampled_from(field_names), wild_values, max_size=8),
)

# -- enveloped ------------------------------------------------------------------------------------


@given(any_of(INGRESS))
def test_an_ingress_message_comes_back_as_it_was(message: Any) -> None:
    packed = codec.pack(message, message.session)
    assert decode_ingress({b"m": packed}) == [message]
    assert codec.unpack(packed, INGRESS) == message


@given(any_of(SEGMENTS))
def test_a_message_to_the_gateway_comes_back_as_it_was(message: Any) -> None:
    assert codec.unpack(codec.pack(message, "demo"), SEGMENTS) == message


@given(any_of(AUDIO))
def test_a_message_to_listeners_comes_back_as_it_was(message: Any) -> None:
    assert codec.unpack(codec.pack(message, "demo"), AUDIO) == message


def test_no_field_of_any_message_is_of_a_type_the_codec_has_no_word_for() -> None:
    for family in FAMILIES:
        for name, cls in family.items():
            for hint in get_type_hints(cls).values():
                inner = get_args(hint)[0] if type(None) in get_args(hint) else hint
                assert (get_origin(inner) or inner) in codec._WORDS, (name, hint)


def test_what_is_none_is_not_written() -> None:
    body = msgpack.unpackb(codec.pack(m.Flush(session="demo"), "demo"))
    assert body == {"v": 1, "type": "flush", "session": "demo"}


@pytest.mark.parametrize("version", [0, 2, "next", None])
def test_every_version_is_read(version: Any) -> None:
    assert decode_ingress(enveloped(v=version, type="close")) == [m.Close(session="demo")]


def test_unknown_fields_are_ignored() -> None:
    assert decode_ingress(enveloped(type="end", turn="t1", why="done")) == [
        m.End(session="demo", turn="t1")
    ]
    revoke = msgpack.packb({"type": "revoke", "turn": "t1", "n": 3, "why": [1, {"a": None}]})
    assert codec.unpack(revoke, SEGMENTS) == m.Revoke(turn="t1", n=3)


@pytest.mark.parametrize("kind", ["sing", "", None, 7, ["text"], "segment"])
def test_an_unknown_type_is_nothing(kind: Any) -> None:
    assert decode_ingress(enveloped(type=kind, text="Hi.")) == []
    assert codec.unpack(msgpack.packb({"type": kind}), AUDIO) is None


def test_a_message_without_a_type_is_of_an_unknown_one() -> None:
    assert decode_ingress(enveloped(text="Hi.")) == []


@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        ({"type": "text"}, "missing_field", "text needs text"),
        ({"type": "text", "text": None}, "missing_field", "text needs text"),
        ({"type": "text", "text": 7}, "bad_field", "text.text must be text"),
        ({"type": "text", "text": b"raw"}, "bad_field", "text.text must be text"),
        ({"type": "text", "text": "x", "seq": True}, "bad_field", "text.seq must be a whole"),
        ({"type": "text", "text": "x", "seq": 1.0}, "bad_field", "text.seq must be a whole"),
        ({"type": "text", "text": "x", "seq": -1}, "bad_field", "a whole number, 0 or more"),
        ({"type": "text", "text": "x", "seq": 2**63}, "bad_field", "text.seq must be a whole"),
        ({"type": "cancel", "played": "t1"}, "bad_field", "cancel.played must be a map"),
        ({"type": "end", "turn": "a b"}, "bad_name", "turn names are 1 to 128"),
        ({"type": "end", "turn": ""}, "bad_name", "turn names are 1 to 128"),
        ({"type": "end", "turn": "t\0"}, "bad_name", "turn names are 1 to 128"),
        ({"type": "end", "turn": "t1\n"}, "bad_name", "turn names are 1 to 128"),
        ({"type": "end", "turn": "é"}, "bad_name", "turn names are 1 to 128"),
        ({"type": "end", "turn": "t" * 129}, "bad_name", "turn names are 1 to 128"),
        ({"type": "end", "src": "yesterday"}, "bad_field", "src must be an entry id"),
        ({"type": "resume", "turn": "t1", "start": 0}, "missing_field", "resume needs samples"),
    ],
)
def test_what_is_wrong_is_said_and_whose_it_is(body: dict[str, Any], code: str, told: str) -> None:
    error = refused(enveloped(**body))
    assert (error.code, error.session, error.retryable) == (code, "demo", False)
    assert told in error.message


WRONG: dict[str, list[Any]] = {
    "voice": [7, True, b"af_heart", ["af_heart"], {"id": "af_heart"}],
    "speed": [True, math.nan, -math.inf, "1.0", b"1", [1.0], {}],
    "lang": [7, False, b"en", ["en"], {}],
    "sample_rate": [True, 24000.0, "24000", -1, 2**63, [24000], {}],
    "pace": [0, True, b"none", ["none"], {}],
    "meta": [1, True, "{}", b"", [1], [["segmenter", {}]]],
    "traceparent": [7, True, b"00", ["00"], {}],
}
"""Of every setting, and of what marks the trace, values of a type that is not its own."""
HAVING: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "text": ({"text": "Hi."}, ("voice", "speed", "lang", "traceparent")),
    "open": ({}, tuple(WRONG)),
    "end": ({}, ("traceparent",)),
}


def test_the_settings_that_may_be_wrong_are_all_that_there_are() -> None:
    known = {f.name for cls in (m.Open, m.Text) for f in dataclasses.fields(cls)}
    no_settings = {"session", "src", "text", "turn", "seq", "again"}
    assert set(WRONG) == known - no_settings == set(m.UNREADABLE) | {"traceparent"}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (kind, name, value)
        for kind, (_, settings) in HAVING.items()
        for name in settings
        for value in WRONG[name]
    ],
)
def test_a_setting_that_cannot_be_read_costs_no_message(kind: str, name: str, value: Any) -> None:
    needed, _ = HAVING[kind]
    [message] = decode_ingress(enveloped(type=kind, **needed, **{name: value}))
    as_refused: Any = {**needed, "session": "demo", name: m.UNREADABLE.get(name)}
    assert message == INGRESS[kind](**as_refused)
    # It may wait for a gap to be filled, and is stored meanwhile.
    assert codec.unpack(codec.pack(message, "demo"), INGRESS) == message


@pytest.mark.parametrize("name", ["voice", "speed", "lang"])
def test_other_messages_than_those_of_publishers_need_theirs_readable(name: str) -> None:
    hint = {"voice": "v", "speed": 1.0, "lang": "en", name: []}
    body = {"type": "tentative", "turn": "t", "n": 1, "text": "x", **hint}
    with pytest.raises(DecodeError, match=f"tentative.{name} must be"):
        codec.unpack(msgpack.packb(body), SEGMENTS)


def test_a_whole_number_is_a_fine_speed() -> None:
    [message] = decode_ingress(enveloped(type="open", speed=2))
    assert isinstance(message, m.Open)
    assert (message.speed, type(message.speed)) == (2.0, float)


@pytest.mark.parametrize(
    "session", [None, 7, "", "two words", "nul\0", "x" * 129, "a{b}", b"demo", ["demo"]]
)
def test_without_a_good_session_nobody_can_be_told(session: Any) -> None:
    error = refused(enveloped(session=session, type="close"))
    assert error.code in {"missing_field", "bad_field", "bad_name"}
    assert error.session is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"hello",
        msgpack.packb([1]),
        msgpack.packb({1: 2}),
        b"\x81\xa1x",
        b"\x91" * 9999,
    ],
)
def test_what_is_no_map_is_refused(data: bytes) -> None:
    assert refused({b"m": data}).code == "bad_msgpack"
    with pytest.raises(DecodeError):
        codec.unpack(data, SEGMENTS)


@given(st.dictionaries(st.binary(max_size=8), st.binary(max_size=64), max_size=4))
@example({})
@example({b"m": b"\x80"})
def test_any_fields_give_messages_or_a_refusal(entry: dict[bytes, bytes]) -> None:
    _read(entry)


@given(st.binary())
def test_any_bytes_give_a_message_or_a_refusal(data: bytes) -> None:
    _read({b"m": data})
    for family in FAMILIES:
        _read_family(data, family)


@given(wild_bodies)
def test_any_map_gives_messages_or_a_refusal(body: dict[str, Any]) -> None:
    data = msgpack.packb(body, unicode_errors="surrogateescape")
    _read({b"m": data})
    for family in FAMILIES:
        _read_family(data, family)


@given(any_of(INGRESS), st.data())
def test_a_damaged_message_is_a_message_or_a_refusal(message: Any, data: st.DataObject) -> None:
    packed = bytearray(codec.pack(message, message.session))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] = data.draw(st.integers(0, 255))
    _read({b"m": bytes(packed)})
    _read({b"m": bytes(packed[:at])})


def _read(entry: dict[bytes, bytes]) -> None:
    """Whatever is taken can be named in a key and written again."""
    try:
        messages = decode_ingress(entry)
    except DecodeError as error:
        assert error.session is None or NAME.fullmatch(error.session)
        return
    for message in messages:
        assert NAME.fullmatch(message.session)
        assert message.src is None or is_entry_id(message.src)
        assert codec.unpack(codec.pack(message, message.session), INGRESS) == message


def _read_family(data: bytes, family: dict[str, type[Any]]) -> None:
    try:
        message = codec.unpack(data, family)
    except DecodeError:
        return
    assert message is None or type(message) in family.values()


# -- sizes ----------------------------------------------------------------------------------------


def test_an_entry_may_hold_so_much_and_no_more() -> None:
    frame = len(b"session" + b"demo" + b"text")
    fits = {b"session": b"demo", b"text": b"x" * (MAX_ENTRY_BYTES - frame)}
    [message] = decode_ingress(fits)
    assert isinstance(message, m.Text)
    assert len(message.text) == MAX_ENTRY_BYTES - frame
    error = refused({**fits, b"end": b""})
    assert (error.code, error.session) == ("too_large", "demo")
    assert "publish in pieces" in error.message


def test_a_large_envelope_is_refused_by_name() -> None:
    error = refused(enveloped(type="text", text="x" * MAX_ENTRY_BYTES))
    assert (error.code, error.session) == ("too_large", "demo")


# -- characters cut between entries ---------------------------------------------------------------


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.data())
def test_bytes_cut_inside_a_character_are_whole_again_when_joined(
    text: str, data: st.DataObject
) -> None:
    raw = text.encode()
    at = data.draw(st.integers(0, len(raw)))
    pieces: list[str] = []
    for part in (raw[:at], raw[at:]):
        [plain] = decode_ingress({b"session": b"demo", b"text": part})
        assert isinstance(plain, m.Text)
        packed = codec.pack(plain, "demo")
        assert decode_ingress({b"m": packed}) == [plain]
        pieces.append(plain.text)
    assert "".join(pieces).encode("utf-8", "surrogateescape") == raw


def test_msgpack_text_that_is_not_utf8_is_kept() -> None:
    body = b"\x83\xa4type\xa4text\xa7session\xa4demo\xa4text\xa2\xc3("
    [message] = decode_ingress({b"m": body})
    assert isinstance(message, m.Text)
    assert message.text == "\udcc3("


# -- plain fields ---------------------------------------------------------------------------------


def plain(*words: str) -> dict[bytes, bytes]:
    """As a shell gives them: name, value, name, value …"""
    return {k.encode(): v.encode() for k, v in zip(words[::2], words[1::2], strict=True)}


DEMO = ("session", "demo")


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (("text", "Hi."), [m.Text(session="demo", text="Hi.")]),
        (("text", ""), [m.Text(session="demo", text="")]),
        (("text", " a\0b "), [m.Text(session="demo", text=" a\0b ")]),
        (
            ("end", "1", "text", "Hi.", "turn", "t1"),
            [m.Text(session="demo", text="Hi.", turn="t1"), m.End(session="demo", turn="t1")],
        ),
        (
            ("text", "Hi.", "flush", "1"),
            [m.Text(session="demo", text="Hi."), m.Flush(session="demo")],
        ),
        (("text", "Hi.", "end", "0", "flush", ""), [m.Text(session="demo", text="Hi.")]),
        (
            ("close", "1", "text", "Bye.", "end", "1"),
            [m.Text(session="demo", text="Bye."), m.End(session="demo"), m.Close(session="demo")],
        ),
        (("cancel", "1"), [m.Cancel(session="demo")]),
        (("cancel", "yes", "turn", "t1"), [m.Cancel(session="demo", turn="t1")]),
        (("flush", "1", "seq", "4", "turn", "t"), [m.Flush(session="demo", turn="t", seq=4)]),
        (
            ("text", "Hi.", "seq", "0", "turn", "t", "voice", "af_bella", "speed", "1.25"),
            [m.Text(session="demo", text="Hi.", turn="t", seq=0, voice="af_bella", speed=1.25)],
        ),
        (
            ("type", "open", "speed", "2", "sample_rate", "16000", "pace", "none"),
            [m.Open(session="demo", speed=2.0, sample_rate=16_000, pace="none")],
        ),
        (
            ("open", "1", "voice", "af_bella", "text", "Hi."),
            [
                m.Open(session="demo", voice="af_bella"),
                m.Text(session="demo", text="Hi.", voice="af_bella"),
            ],
        ),
        (
            ("type", "resume", "turn", "t", "start", "3", "samples", "4"),
            [m.Resume(session="demo", turn="t", start=3, samples=4)],
        ),
        (("type", "text", "text", "0"), [m.Text(session="demo", text="0")]),
        (("type", "sing", "text", "La."), []),
        (("text", "Hi.", "colour", "red"), [m.Text(session="demo", text="Hi.")]),
    ],
)
def test_plain_fields(words: tuple[str, ...], messages: list[m.Ingress]) -> None:
    assert decode_ingress(plain(*DEMO, *words)) == messages


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("text", "Hi.", "seq", "0", "end", "1"), "ambiguous_seq", "entries of their own"),
        ((), "nothing_to_do", "give text"),
        (("end", "0"), "nothing_to_do", "give text"),
        (("type", "text"), "missing_field", "text needs text"),
        (("text", "x", "seq", "first"), "bad_field", "text.seq must be a whole number"),
        (("text", "x", "seq", "-1"), "bad_field", "text.seq must be a whole number"),
        (("text", "x", "seq", "9" * 400), "bad_field", "text.seq must be a whole number"),
        (("text", "x", "seq", "9" * 9999), "bad_field", "text.seq must be a whole number"),
        (("text", "x", "seq", "1.5"), "bad_field", "text.seq must be a whole number"),
        (("text", "x", "seq", ""), "bad_field", "text.seq must be a whole number"),
        (("text", "x", "turn", "my turn"), "bad_name", "turn names"),
        (("text", "x", "src", "5"), "bad_field", "src must be an entry id"),
    ],
)
def test_plain_fields_that_make_no_sense(words: tuple[str, ...], code: str, told: str) -> None:
    error = refused(plain(*DEMO, *words))
    assert (error.code, error.session) == (code, "demo")
    assert told in error.message


@pytest.mark.parametrize("speed", ["", "fast", "nan", "-inf", "1e999", "1,5", "9" * 9999])
def test_a_plain_speed_that_is_none_costs_no_text(speed: str) -> None:
    unreadable = m.UNREADABLE["speed"]
    assert decode_ingress(plain(*DEMO, "text", "Hi.", "speed", speed, "end", "1")) == [
        m.Text(session="demo", text="Hi.", speed=unreadable),
        m.End(session="demo"),
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("sample_rate", ""), ("sample_rate", "24k"), ("sample_rate", "-1"), ("meta", "{}")],
)
def test_a_plain_setting_of_an_open_that_cannot_be_read_is_one(name: str, value: str) -> None:
    opened = m.Open(**{"session": "demo", "voice": "af_heart", name: m.UNREADABLE[name]})
    words = ("open", "1", "voice", "af_heart", name, value)
    assert decode_ingress(plain(*DEMO, *words)) == [opened]


@pytest.mark.parametrize("name", ["two words", "", "nul\0", "ünï", "a/b", "x" * 129])
def test_a_plain_session_with_a_bad_name_is_refused(name: str) -> None:
    error = refused(plain("session", name, "text", "Hi."))
    assert (error.code, error.session) == ("bad_name", None)


@pytest.mark.parametrize("entry", [{}, {b"text": b"Hi."}, {b"Session": b"demo", b"text": b"Hi."}])
def test_a_plain_entry_needs_a_session(entry: dict[bytes, bytes]) -> None:
    error = refused(entry)
    assert (error.code, error.session) == ("no_session", None)
    assert "session and text" in error.message


def test_numbers_that_are_no_text_at_all_are_refused() -> None:
    error = refused({b"session": b"demo", b"text": b"x", b"seq": b"\xff", b"speed": b"\xff"})
    assert error.code == "bad_field"


# -- the door's mark ------------------------------------------------------------------------------


def test_a_copy_of_an_envelope_has_the_mark_beside_it() -> None:
    end = m.End(session="demo", turn="t1")
    copied = {b"m": codec.pack(end, "demo"), b"src": b"1700000000000-3"}
    assert decode_ingress(copied) == [dataclasses.replace(end, src="1700000000000-3")]


def test_the_doors_mark_wins_over_one_of_the_publisher() -> None:
    end = m.End(session="demo", src="9999999999999-0")
    [copy] = decode_ingress({b"m": codec.pack(end, "demo"), b"src": b"1700000000000-3"})
    assert copy.src == "1700000000000-3"


def test_a_copy_of_plain_fields_has_the_mark_on_every_message() -> None:
    entry = plain(*DEMO, "text", "Hi.", "end", "1", "src", "1700000000000-3")
    assert [message.src for message in decode_ingress(entry)] == ["1700000000000-3"] * 2


def test_other_fields_beside_an_envelope_are_ignored() -> None:
    entry = {**enveloped(type="flush"), b"text": b"not this", b"\xff": b"\xff"}
    assert decode_ingress(entry) == [m.Flush(session="demo")]
