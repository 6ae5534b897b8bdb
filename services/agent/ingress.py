"""Requests of publishers without Redis, read as stream messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstword import messages as m
from services.agent.core import (
    Limits,
    RequestError,
    is_count,
    json_object,
    label,
    number,
    played,
    well_formed,
    word,
)

KINDS = ("open", "text", "flush", "end", "cancel", "close")
SAMPLE_RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)
PACES = ("realtime", "none")

Published = m.Open | m.Text | m.Flush | m.End | m.Close


def read(kind: str, body: bytes, session: str, limits: Limits) -> list[Published] | m.Cancel:
    """The messages in the body of `POST /v1/sessions/{id}/KIND`, in order. Raises RequestError.

    An empty body is an object without fields. `text` with `end` gives two messages.
    """
    given = json_object(body) if body.strip() else {}
    match kind:
        case "open":
            return [_open(given, session)]
        case "text":
            return _text(given, session, limits)
        case "flush":
            return [m.Flush(session=session, **_place(given))]
        case "end":
            return [m.End(session=session, **_place(given))]
        case "cancel":
            heard = played(given.get("played"))
            return m.Cancel(session=session, turn=label(given, "turn"), played=heard)
        case _:
            return [m.Close(session=session)]


def _open(given: Mapping[str, Any], session: str) -> m.Open:
    rate, pace, meta = given.get("sample_rate"), given.get("pace"), given.get("meta")
    if rate is not None and (isinstance(rate, bool) or rate not in SAMPLE_RATES):
        known = ", ".join(map(str, SAMPLE_RATES))
        raise RequestError("bad_field", f"sample_rate is one of {known}")
    if pace is not None and pace not in PACES:
        raise RequestError("bad_field", "pace is realtime or none")
    if meta is not None and not isinstance(meta, dict):
        raise RequestError("bad_field", "meta is an object")
    return m.Open(session=session, sample_rate=rate, pace=pace, meta=meta, **_manner(given))


def _text(given: Mapping[str, Any], session: str, limits: Limits) -> list[Published]:
    text, ends = given.get("text"), given.get("end", False)
    if not isinstance(text, str) or not text:
        raise RequestError("missing_text", "text must be a string that is not empty")
    if len(text) > limits.max_text_chars:
        limit = limits.max_text_chars
        raise RequestError("too_large", f"text may have {limit} characters: send it in parts")
    if not isinstance(ends, bool):
        raise RequestError("bad_field", "end is true or false")
    place = _place(given)
    messages: list[Published] = [
        m.Text(session=session, text=well_formed(text), **place, **_manner(given))
    ]
    if ends:
        if place["seq"] is not None:
            place["seq"] += 1
        messages.append(m.End(session=session, **place))
    return messages


def _place(given: Mapping[str, Any]) -> dict[str, Any]:
    """The turn, and the number in it; a number needs a turn."""
    place = {"turn": label(given, "turn"), "seq": given.get("seq"), "again": given.get("again")}
    for name in ("seq", "again"):
        if place[name] is not None and not is_count(place[name]):
            raise RequestError("bad_field", f"{name} must be a whole number, 0 or more")
    if place["seq"] is not None and place["turn"] is None:
        raise RequestError("bad_field", "seq counts the pieces of a turn: name the turn")
    if place["again"] is not None and place["seq"] is None:
        raise RequestError("bad_field", "what is published again has the seq that it had")
    return place


def _manner(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "voice": word(given, "voice"),
        "speed": number(given, "speed", *m.SPEEDS),
        "lang": word(given, "lang"),
    }
