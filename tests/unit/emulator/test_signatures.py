"""Signatures: what a client signs is accepted, and whatever does not match is named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.emulator.eventstream import Message, Timestamp, Value, decode, encode
from firstword.emulator.signatures import (
    EventChain,
    KeyPair,
    Request,
    SignatureRefused,
    verify_request,
)
from tests.doubles.emulator_signer import PATH, Signer, part

KEY = KeyPair("AKEY", "a/secret+key")
TEMPORARY = KeyPair("TEMPORARY", "another", "token")
KEYS = {key.access_key_id: key for key in (KEY, TEMPORARY)}
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def verify(request: Request, now: datetime = NOW) -> EventChain:
    return verify_request(request, KEYS, "us-east-1", now)


def changed(request: Request, **headers: str | None) -> Request:
    """The request with other headers; None drops one."""
    new = dict(request.headers)
    for name, value in headers.items():
        new.pop(name.replace("_", "-"), None)
        if value is not None:
            new[name.replace("_", "-")] = value
    return Request(request.method, request.path, request.query, list(new.items()))


@pytest.mark.parametrize("key", [KEY, TEMPORARY])
def test_a_signed_request_and_its_events_are_accepted(key: KeyPair) -> None:
    signer = Signer(key, at=NOW)
    chain = verify(signer.request(x_amzn_sagemaker_target_variant="AllTraffic"))
    inner = part(b"hello", "UTF8")
    assert chain.verify(decode(signer.event(inner)), NOW) == encode(inner)
    assert chain.verify(decode(signer.end()), NOW) is None


def test_a_repeated_header_is_signed_as_one() -> None:
    request = Request("POST", "/", "", [("a", "1"), ("a", "2"), ("b", "")])
    assert (request.header("a"), request.header("b"), request.header("c")) == ("1,2", "", None)


def test_a_query_is_signed_in_order() -> None:
    signer = Signer(KEY, at=NOW)
    request = signer.request(query="a=1&b=%20")
    verify(Request(request.method, request.path, "b=%20&a=1", request.headers))


@given(st.lists(st.binary(max_size=40), min_size=2, max_size=5), st.data())
def test_events_lost_repeated_moved_or_changed_are_refused(
    payloads: list[bytes], data: st.DataObject
) -> None:
    signer = Signer(KEY, at=NOW)
    chain = verify(signer.request())
    events = [decode(signer.event(part(payload))) for payload in payloads]
    at = data.draw(st.integers(0, len(events) - 2))
    wrong: dict[str, list[Message]] = {
        "lost": events[:at] + events[at + 1 :],
        "repeated": [*events[: at + 1], *events[at:]],
        "moved": [*events[:at], events[at + 1], events[at]],
        "changed": [*events[:at], Message(events[at].headers, events[at].payload + b"x")],
    }
    with pytest.raises(SignatureRefused, match="does not match"):
        for event in wrong[data.draw(st.sampled_from(sorted(wrong)))]:
            chain.verify(event, NOW)


def test_nothing_comes_after_the_end() -> None:
    signer = Signer(KEY, at=NOW)
    chain = verify(signer.request())
    chain.verify(decode(signer.end()), NOW)
    with pytest.raises(SignatureRefused, match="event 2 came after"):
        chain.verify(decode(signer.event(part(b""))), NOW)


def test_events_are_signed_on_the_day_they_are_sent() -> None:
    evening = datetime(2026, 11, 29, 23, 59, tzinfo=UTC)
    signer = Signer(KEY, at=evening)
    chain = verify(signer.request(), evening)
    after = Signer(KEY, at=evening + timedelta(minutes=2))
    after.prior = signer.prior
    assert chain.verify(decode(after.event(part(b"x"))), evening + timedelta(minutes=2))


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({}, "no :date"),
        ({":date": Timestamp(0)}, "no :chunk-signature"),
        ({":date": "today", ":chunk-signature": b""}, "no :date"),
        ({":date": Timestamp(2**62), ":chunk-signature": b""}, "no date"),
        ({":date": Timestamp(0), ":chunk-signature": b""}, "more than 5 minutes"),
    ],
)
def test_an_event_without_a_date_or_a_signature(headers: dict[str, Value], why: str) -> None:
    chain = verify(Signer(KEY, at=NOW).request())
    with pytest.raises(SignatureRefused, match=why):
        chain.verify(Message(headers), NOW)


def other_service() -> Request:
    signer = Signer(KEY, at=NOW)
    signer.service = "s3"
    return signer.request()


def unsigned(header: str) -> Request:
    """A request with a header that nothing covers."""
    return changed(Signer(KEY, at=NOW).request(), **{header: "x"})


def without_host() -> Request:
    request = Signer(KEY, at=NOW).request()
    value = request.header("authorization") or ""
    return changed(request, authorization=value.replace("host;", ""))


CASES: list[tuple[Callable[[], Request], str, str]] = [
    (lambda: changed(good(), authorization=None), "MissingAuthenticationToken", "no Authorization"),
    (lambda: changed(good(), authorization="Bearer x"), "IncompleteSignature", "AWS4-HMAC-SHA256"),
    (lambda: Signer(KeyPair("WHO", "x"), at=NOW).request(), "UnrecognizedClient", "no access key"),
    (lambda: Signer(KeyPair("AKEY", "x"), at=NOW).request(), "InvalidSignature", "wrong secret"),
    (lambda: changed(good(), host="elsewhere"), "InvalidSignature", "a changed header"),
    (
        lambda: Signer(KeyPair("TEMPORARY", "another"), at=NOW).request(),
        "UnrecognizedClient",
        "token is missing",
    ),
    (
        lambda: Signer(KeyPair("TEMPORARY", "another", "old"), at=NOW).request(),
        "UnrecognizedClient",
        "is not that of",
    ),
    (
        lambda: Signer(KeyPair("AKEY", "a/secret+key", "x"), at=NOW).request(),
        "UnrecognizedClient",
        "which has none",
    ),
    (other_service, "InvalidSignature", "service s3"),
    (lambda: Signer(KEY, region="eu-west-1", at=NOW).request(), "InvalidSignature", "eu-west-1"),
    (lambda: changed(good(), x_amz_date="now"), "InvalidSignature", "x-amz-date"),
    (lambda: changed(good(), x_amz_date=None), "InvalidSignature", "x-amz-date"),
    (lambda: changed(good(), x_amz_date="20261128T120000Z"), "InvalidSignature", "the day"),
    (
        lambda: Signer(KEY, at=NOW - timedelta(minutes=6)).request(),
        "InvalidSignature",
        "more than 5 minutes",
    ),
    (lambda: changed(good(), x_amz_content_sha256="x"), "InvalidSignature", "content-sha256"),
    (lambda: unsigned("x-amz-more"), "InvalidSignature", "x-amz-more"),
    (without_host, "InvalidSignature", "not among the signed headers: host"),
    (lambda: changed(good(), host=None), "InvalidSignature", "not among the headers: host"),
]


def good() -> Request:
    return Signer(KEY, at=NOW).request()


@pytest.mark.parametrize(("request_of", "code", "why"), CASES)
def test_a_request_that_does_not_match_is_refused_with_the_reason(
    request_of: Callable[[], Request], code: str, why: str
) -> None:
    verify(good())
    with pytest.raises(SignatureRefused, match=why) as caught:
        verify(request_of())
    assert caught.value.code == f"{code}Exception"
    assert KEY.secret not in str(caught.value)


def test_secrets_do_not_stand_in_what_is_printed() -> None:
    assert "another" not in repr(TEMPORARY)
    assert "token'" not in repr(TEMPORARY)
    assert PATH in repr(good())
