"""msgpack <-> messages, and the plain string fields that one line of a shell can write.

An entry is one field `m`: a map {v: 1, type, session, …}. Readers accept every version, ignore
fields they do not know, tell unknown types apart (`None`) and refuse what is malformed or too
large with a DecodeError; a setting that is malformed is no reason to refuse its text
(`messages.UNREADABLE`). Text travels as UTF-8; bytes that are not, because a publisher cut
inside a character, become lone surrogates (surrogateescape) and are joined again downstream.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgpack

from firstword import messages as m
from firstword.errors import DecodeError
from firstword.ids import is_entry_id
from firstword.keys import NAME, check_name

VERSION = 1
MAX_ENTRY_BYTES = 1_048_576
MAX_INT = 2**63 - 1

T = TypeVar("T")

INGRESS: dict[str, type[m.Ingress]] = {
    "open": m.Open,
    "text": m.Text,
    "flush": m.Flush,
    "end": m.End,
    "cancel": m.Cancel,
    "resume": m.Resume,
    "close": m.Close,
}
SEGMENTS: dict[str, type[m.Segments]] = {
    "open": m.SessionOpen,
    "segment": m.Segment,
    "tentative": m.Tentative,
    "revoke": m.Revoke,
    "turn_end": m.TurnEnd,
    "close": m.SessionClose,
}
AUDIO: dict[str, type[m.Audio]] = {
    "turn_started": m.TurnStarted,
    "segment_started": m.SegmentStarted,
    "audio": m.AudioChunk,
    "segment_restarted": m.SegmentRestarted,
    "segment_done": m.SegmentDone,
    "turn_done": m.TurnDone,
    "turn_cancelled": m.TurnCancelled,
    "error": m.ErrorEvent,
    "gap": m.Gap,
    "closed": m.Closed,
}
TYPE_OF: dict[type, str] = {
    cls: name for family in (INGRESS, SEGMENTS, AUDIO) for name, cls in family.items()
}
_STAND_INS: dict[type, dict[str, Any]] = {
    cls: {"traceparent": None, **(m.UNREADABLE if cls in (m.Open, m.Text) else {})}
    for cls in INGRESS.values()
}
"""By message: what is taken for a field that cannot be read, where that costs no more than the
field. A setting is refused further on; who traces begins a trace of its own."""


# -- writing --------------------------------------------------------------------------------------


def fields_of(message: Any) -> dict[str, Any]:
    """The message as a map with its `type`, without fields that are None."""
    out: dict[str, Any] = {"type": TYPE_OF[type(message)]}
    for name in _spec(type(message)):
        value = getattr(message, name)
        if value is not None:
            out[name] = value
    return out


def pack(message: Any, session: str) -> bytes:
    """The `m` field of an entry."""
    body = {"v": VERSION, "session": session, **fields_of(message)}
    packed: bytes = msgpack.packb(body, use_bin_type=True, unicode_errors="surrogateescape")
    return packed


# -- reading --------------------------------------------------------------------------------------


def unpack(data: bytes, family: Mapping[str, type[T]]) -> T | None:
    """Decode an `m` field; None for a type this version does not know."""
    body = _unpack_map(data)
    cls = family.get(str(body.get("type")))
    return None if cls is None else _build(cls, body)


def decode_ingress(entry: Mapping[bytes, bytes]) -> list[m.Ingress]:
    """The messages in one ingress entry, enveloped or in plain string fields, in order.

    One plain entry may carry text and its end: `session demo text "Hello." end 1`.
    An unknown type gives an empty list. Raises DecodeError.
    """
    packed = entry.get(b"m")
    raw = {_text(k): _text(v) for k, v in entry.items() if k != b"m"}
    body = raw if packed is None else _unpack_map(packed)
    try:
        if sum(len(k) + len(v) for k, v in entry.items()) > MAX_ENTRY_BYTES:
            raise DecodeError(
                "too_large", f"an entry holds at most {MAX_ENTRY_BYTES} bytes: publish in pieces"
            )
        found = _plain(raw) if packed is None else [_enveloped(body | _src(raw))]
        messages = [message for message in found if message is not None]
        for message in messages:
            _check(message)
    except DecodeError as error:
        session = body.get("session")
        if isinstance(session, str) and NAME.fullmatch(session):
            error.session = session
        raise
    return messages


def _check(message: m.Ingress) -> None:
    """Names and ids are used in keys, scripts and arithmetic: only good ones go further."""
    check_name("session", message.session)
    turn = getattr(message, "turn", None)
    if turn is not None:
        check_name("turn", turn)
    if message.src is not None and not is_entry_id(message.src):
        raise DecodeError("bad_field", "src must be an entry id: only the door sets it")


def _enveloped(body: Mapping[str, Any]) -> m.Ingress | None:
    cls = INGRESS.get(str(body.get("type")))
    return None if cls is None else _build(cls, body)


def _src(raw: Mapping[str, str]) -> dict[str, str]:
    """The door's mark on a copied entry stands beside `m`."""
    return {"src": raw["src"]} if "src" in raw else {}


def _unpack_map(data: bytes) -> dict[str, Any]:
    try:
        body = msgpack.unpackb(data, raw=False, unicode_errors="surrogateescape")
    except Exception as error:  # msgpack raises many kinds for bytes that are not its own
        raise DecodeError("bad_msgpack", "field m must be a msgpack map") from error
    if not isinstance(body, dict) or not all(isinstance(key, str) for key in body):
        raise DecodeError("bad_msgpack", "field m must be a msgpack map with string keys")
    return body


def _plain(given: Mapping[str, str]) -> list[m.Ingress | None]:
    raw = dict(given)
    if "session" not in raw:
        raise DecodeError("no_session", "an entry needs the field m, or session and text")
    kind = raw.pop("type", None)
    if kind is not None:
        cls = INGRESS.get(kind)
        return [None if cls is None else _build(cls, _parse_strings(cls, raw))]
    kinds = [k for k in ("open", "text", "flush", "cancel", "end", "close") if k in raw]
    kinds = [k for k in kinds if k == "text" or raw[k] not in ("", "0")]
    if not kinds:
        raise DecodeError(
            "nothing_to_do", "give text, or one of open, flush, end, cancel, close as 1"
        )
    if len(kinds) > 1 and "seq" in raw:
        raise DecodeError("ambiguous_seq", "with seq, publish text and end as entries of their own")
    return [_build(INGRESS[k], _parse_strings(INGRESS[k], raw)) for k in kinds]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _parse_strings(cls: type[Any], raw: Mapping[str, str]) -> dict[str, Any]:
    """The fields of `cls` among plain strings; numbers as numbers, where they are some."""
    out: dict[str, Any] = {name: raw[name] for name in _spec(cls) if name in raw}
    for name in out:
        wanted, _required = _spec(cls)[name]
        if wanted in (int, float):
            with contextlib.suppress(ValueError):
                out[name] = wanted(raw[name])
    return out


def _build(cls: type[T], body: Mapping[str, Any]) -> T:
    values: dict[str, Any] = {}
    stand_ins = _STAND_INS.get(cls, {})
    for name, (wanted, required) in _spec(cls).items():
        value = body.get(name)
        if value is None:
            if required:
                raise DecodeError("missing_field", f"{TYPE_OF[cls]} needs {name}")
            continue
        if wanted is float and type(value) is int:
            value = float(value)
        if type(value) is not wanted or not _in_range(value):
            if name not in stand_ins:
                raise _bad_field(cls, name, wanted)
            value = stand_ins[name]
        values[name] = value
    return cls(**values)


def _in_range(value: Any) -> bool:
    """Numbers count or measure something, and must fit wherever they are stored again."""
    if type(value) is int:
        return 0 <= value <= MAX_INT
    return type(value) is not float or math.isfinite(value)


_WORDS = {
    str: "text",
    int: "a whole number, 0 or more",
    float: "a finite number",
    bool: "true or false",
    bytes: "binary",
    dict: "a map",
    list: "a list",
}


def _bad_field(cls: type[Any], name: str, wanted: type) -> DecodeError:
    return DecodeError("bad_field", f"{TYPE_OF[cls]}.{name} must be {_WORDS[wanted]}")


_Spec = dict[str, tuple[type, bool]]
_specs: dict[type, _Spec] = {}


def _spec(cls: type[Any]) -> _Spec:
    """Per field: its type, and whether it must be given. A field that may be None need not."""
    if cls not in _specs:
        hints = get_type_hints(cls)
        _specs[cls] = {
            field.name: (
                _plain_type(hints[field.name]),
                field.default is dataclasses.MISSING
                and field.default_factory is dataclasses.MISSING,
            )
            for field in dataclasses.fields(cls)
        }
    return _specs[cls]


def _plain_type(hint: Any) -> type:
    """`dict` of `dict[str, Any] | None`."""
    hint = next((a for a in get_args(hint) if type(None) in get_args(hint)), hint)
    origin: type = get_origin(hint) or hint
    return origin
